"""Gumbel-softmax: a sample relaxed to a point between the positions."""

import keras

from keras_attention.alignments.estimators.estimator import Estimator
from keras_attention.checks.arguments import check_positive


@keras.saving.register_keras_serializable(package="keras_attention", name="Relaxed")  # its name in files of version 0.1
class GumbelSoftmax(Estimator):
    """A relaxed sample: soft in training, hard at inference. For the categorical distribution.

    `weights[t] = softmax((scores[t] + Gumbel noise) / temperature)`

    **Biased**: it is the exact gradient of another model, whose choices are mixtures of positions. The lower the
    temperature, the nearer that model is to the hard one and the larger the variance of its gradient.

    Args:
        temperature: Positive number.

    Example:
        >>> from keras_attention.alignments import Sampled
        >>> alignment = Sampled("softmax", estimator=GumbelSoftmax(temperature=0.5), seed=3)
        >>> keras.ops.sum(alignment(keras.ops.ones((2, 3, 5)), training=True), axis=-1)
        [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]

    References:
        Jang, Gu and Poole, 2017, eq. (2), arXiv:1611.01144; Maddison, Mnih and Teh, 2017, arXiv:1611.00712.
    """

    needs = ("relaxed_sample",)

    def __init__(self, temperature=1.0):
        self.temperature = check_positive("temperature", temperature)

    def weights(self, alignment, scores, mask, seed):
        return alignment.relaxed_sample(scores, mask, self.temperature, seed)

    def get_config(self):
        return {"temperature": self.temperature}


Relaxed = GumbelSoftmax  # its name in version 0.1
