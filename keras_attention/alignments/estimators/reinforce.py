"""REINFORCE: the choice is a sample, and its log-probability is recorded for the loss to weigh."""

import keras

from keras_attention.alignments.estimators.estimator import Estimator
from keras_attention.alignments.estimators.recorder import enumerated_selection, record_choice


@keras.saving.register_keras_serializable(package="keras_attention")
class Reinforce(Estimator):
    """A selection is drawn; the scores learn by the score-function gradient. Unbiased, for any distribution.

    `gradient = loss gradient at the sample + (loss - baseline) · gradient of log p(sample)`

    The weights are the sample, through which no gradient flows. Its log-probability and entropy, float32, go to the open
    recorder; `keras_attention.training.ReinforceModel`, which knows the loss, makes the second term of them. In any other
    model the scores get no gradient.

    Example:
        >>> from keras_attention.alignments import Sampled
        >>> alignment = Sampled("softmax", estimator=Reinforce(), seed=3)
        >>> keras.ops.sum(alignment(keras.ops.ones((2, 3, 5)), training=True), axis=-1)
        [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]

    References:
        Williams, 1992, section 4.
        Xu et al., 2015, section 4.1, arXiv:1502.03044.
    """

    needs = ("sample", "log_prob")

    def weights(self, alignment, scores, mask, seed):
        selection = enumerated_selection(alignment, scores, mask)
        if selection is None:
            selection = alignment.sample(scores, mask, seed)
        entropy = alignment.entropy(scores, mask) if hasattr(alignment, "entropy") else None
        record_choice(alignment.log_prob(selection, scores, mask), entropy)
        return selection
