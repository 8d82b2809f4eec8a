"""Straight-through: the sample goes forward, the gradient of its relaxation back."""

import keras
from keras import ops

from keras_attention.alignments.estimators.estimator import Estimator
from keras_attention.checks.arguments import check_positive


@keras.saving.register_keras_serializable(package="keras_attention")
class StraightThrough(Estimator):
    """A sample; the gradient is that of the Gumbel-softmax of the same noise. For the categorical distribution.

    `weights[t] = one-hot of the maximum of relaxed[t]` with
    `gradient of weights = gradient of relaxed = softmax((scores + Gumbel noise) / temperature)`

    Needs no `ReinforceModel` and has little variance. **Biased**: the gradient is taken at a mixture of positions,
    where the loss was never computed, so that training may settle where the expected loss has no minimum. A linear loss
    at temperature 1 already shows it.

    Args:
        temperature: Positive number; low ones have less bias and more variance.

    Example:
        >>> from keras_attention.alignments import Sampled
        >>> alignment = Sampled("softmax", estimator=StraightThrough(temperature=0.5), seed=3)
        >>> keras.ops.max(alignment(keras.ops.ones((2, 3, 5)), training=True), axis=-1)
        [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]

    References:
        Jang, Gu and Poole, 2017, section 2.2, arXiv:1611.01144.
        Bengio, Léonard and Courville, 2013, section 4, arXiv:1308.3432.
    """

    needs = ("relaxed_sample",)

    def __init__(self, temperature=1.0):
        self.temperature = check_positive("temperature", temperature)

    def weights(self, alignment, scores, mask, seed):
        relaxed = alignment.relaxed_sample(scores, mask, self.temperature, seed)
        selection = alignment.mode(relaxed, mask)
        return selection + (relaxed - ops.stop_gradient(relaxed))

    def get_config(self):
        return {"temperature": self.temperature}
