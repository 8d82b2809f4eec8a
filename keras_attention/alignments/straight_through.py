"""Straight-through: the sample goes forward, the gradient of its relaxation back."""

import keras
from keras import ops

from keras_attention.alignments.categorical import one_hot_of_maximum
from keras_attention.alignments.estimator import Estimator
from keras_attention.alignments.relaxed import gumbel_softmax
from keras_attention.checks.arguments import check_positive


@keras.saving.register_keras_serializable(package="keras_attention")
class StraightThrough(Estimator):
    """One position is drawn for each query; the gradient is that of the Gumbel-softmax of the same noise.

    `weights[t] = one-hot of the maximum of relaxed[t]` with
    `gradient of weights = gradient of relaxed = softmax((scores + Gumbel noise) / temperature)`

    Needs no `ReinforceModel` and has little variance. **Biased**: the gradient is taken at a mixture of positions,
    where the loss was never computed, so that training may settle where the expected loss has no minimum. A linear loss
    at temperature 1 already shows it.

    Args:
        temperature: Positive number; low ones have less bias and more variance.

    Example:
        >>> from keras_attention.alignments import SampledCategorical
        >>> alignment = SampledCategorical(estimator=StraightThrough(temperature=0.5), seed=3)
        >>> keras.ops.max(alignment(keras.ops.ones((2, 3, 5)), training=True), axis=-1)
        [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]

    References:
        Jang, Gu and Poole, 2017, section 2.2, arXiv:1611.01144.
        Bengio, Léonard and Courville, 2013, section 4, arXiv:1308.3432.
    """

    def __init__(self, temperature=1.0):
        self.temperature = check_positive("temperature", temperature)

    def weights(self, alignment, scores, mask, seed):
        relaxed = gumbel_softmax(scores, mask, self.temperature, seed)
        selection = ops.stop_gradient(one_hot_of_maximum(relaxed, mask))
        return selection + (relaxed - ops.stop_gradient(relaxed))

    def get_config(self):
        return {"temperature": self.temperature}
