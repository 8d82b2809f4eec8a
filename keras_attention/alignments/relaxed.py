"""Gumbel-softmax: a sample relaxed to a point between the positions."""

import keras
from keras import ops

from keras_attention.alignments.estimator import Estimator
from keras_attention.checks.arguments import check_positive
from keras_attention.ops.random import with_gumbel_noise
from keras_attention.ops.softmax import masked_softmax


def gumbel_softmax(scores, mask, temperature, seed):
    """`softmax((scores + Gumbel noise) / temperature)` over the positions where `mask` is True.

    Its maximum stands at a sample of `softmax(scores)`; towards temperature 0 it is that sample.
    """
    return ops.cast(masked_softmax(with_gumbel_noise(scores, seed) / temperature, mask), scores.dtype)


@keras.saving.register_keras_serializable(package="keras_attention")
class Relaxed(Estimator):
    """Gumbel-softmax: soft in training, hard at inference.

    `weights[t] = softmax((scores[t] + Gumbel noise) / temperature)`

    **Biased**: it is the exact gradient of another model, whose choices are mixtures of positions. The lower the
    temperature, the nearer that model is to the hard one and the larger the variance of its gradient.

    Args:
        temperature: Positive number.

    Example:
        >>> from keras_attention.alignments import SampledCategorical
        >>> alignment = SampledCategorical(estimator=Relaxed(temperature=0.5), seed=3)
        >>> keras.ops.sum(alignment(keras.ops.ones((2, 3, 5)), training=True), axis=-1)
        [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]

    References:
        Jang, Gu and Poole, 2017, eq. (2), arXiv:1611.01144; Maddison, Mnih and Teh, 2017, arXiv:1611.00712.
    """

    def __init__(self, temperature=1.0):
        self.temperature = check_positive("temperature", temperature)

    def weights(self, alignment, scores, mask, seed):
        return gumbel_softmax(scores, mask, self.temperature, seed)

    def get_config(self):
        return {"temperature": self.temperature}
