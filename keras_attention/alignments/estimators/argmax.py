"""The mode in training, too: a hard choice that does not learn."""

import keras

from keras_attention.alignments.estimators.estimator import Estimator


@keras.saving.register_keras_serializable(package="keras_attention")
class Argmax(Estimator):
    """The mode is attended, in training as at inference. The scores get no gradient from the choice.

    For scores that were trained elsewhere, or that other layers train.

    Example:
        >>> from keras_attention.alignments import Sampled
        >>> Sampled("softmax", estimator=Argmax())(keras.ops.array([[1.0, 3.0, 3.0]]), training=True)
        [[0.0, 1.0, 0.0]]
    """

    def weights(self, alignment, scores, mask, seed):
        return alignment.mode(scores, mask)
