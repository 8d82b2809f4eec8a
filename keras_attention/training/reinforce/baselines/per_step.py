"""A prediction for each choice as its baseline."""

import keras
from keras import ops

from keras_attention.training.reinforce.baselines.baseline import Baseline, squared_errors


@keras.saving.register_keras_serializable(package="keras_attention", name="ChoiceBaseline")  # its name in version 0.1
class PerStepBaseline(Baseline):
    """Each choice is compared with a prediction of its own, made just before it by the layer that chooses.

    `gradient = gradient of loss + sum over choices c of (loss - prediction[c]) · gradient of log p(c)`

    A prediction may depend on the inputs and on all earlier choices. It is
    trained beside the model on `(loss - prediction[c])²`, the mean over the choices, which is not part of the reported
    loss; the layer keeps its gradient out of the rest of the model. In the paper it is b_t.

    For models whose choices come with predictions, as those of `models.GlimpseClassifier` do (`training.record_choice`
    takes them). With several losses each choice has the one prediction, so that it learns their mean.

    Example:
        >>> losses, log_probs, predictions = ops.ones((2,)), ops.zeros((2, 3)), ops.zeros((2, 3))
        >>> PerStepBaseline().values(losses, index=0, predictions=(log_probs, predictions))[1]
        [1.0, 1.0]

    References:
        Mnih, Heess, Graves and Kavukcuoglu, 2014, section 3, "variance reduction", arXiv:1406.6247.
    """

    reads_choices = True

    def values(self, losses, index, predictions):
        if predictions is None:
            raise ValueError(
                'The baseline "per_step" compares each choice with the prediction that was recorded with it. Received '
                "choices without one. Take another baseline, or record the predictions: "
                "`record_choice(log_prob, prediction=prediction)`."
            )
        log_probs, predictions = predictions  # (B, n)
        axes = (-1,) + (1,) * (len(losses.shape) - 1) + (ops.shape(log_probs)[-1],)
        log_probs, predictions = ops.reshape(log_probs, axes), ops.reshape(predictions, axes)
        # (loss - prediction[c]) · log p(c), of which `loss · log p(c)` is what a baseline of zero leaves.
        control = -ops.sum(ops.stop_gradient(predictions) * log_probs, axis=-1)
        return 0.0, control + ops.mean(squared_errors(ops.expand_dims(losses, -1), predictions), axis=-1)


ChoiceBaseline = PerStepBaseline  # its name in version 0.1
