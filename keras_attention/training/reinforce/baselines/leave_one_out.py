"""The mean loss of the other samples of an example as a baseline."""

import keras
from keras import ops

from keras_attention.training.reinforce.baselines.baseline import Baseline


@keras.saving.register_keras_serializable(package="keras_attention")
class LeaveOneOut(Baseline):
    """The mean loss of the other samples of the same example; needs `num_samples` of 2 or more.

    `baseline[m] = (sum over m' of loss[m'] - loss[m]) / (M - 1)`

    Example:
        >>> baseline = LeaveOneOut()
        >>> baseline.prepare(None, num_losses=1, num_samples=3)
        >>> baseline.values(ops.array([1.0, 2.0, 6.0]), index=0, predictions=None)[0]
        [4.0, 3.5, 1.5]

    References:
        Kool, van Hoof and Welling, 2019, "Buy 4 REINFORCE samples, get a baseline for free".
    """

    def prepare(self, inputs, num_losses, num_samples):
        if num_samples < 2:
            raise ValueError(
                'The baseline "leave_one_out" compares the samples of an example with each other. Received '
                f"num_samples={num_samples}. Pass `num_samples` of 2 or more, or take another baseline."
            )
        self.num_samples = num_samples
        self.built = True

    def values(self, losses, index, predictions):
        samples = ops.reshape(losses, (-1, self.num_samples, *ops.shape(losses)[1:]))
        others = (ops.sum(samples, axis=1, keepdims=True) - samples) / (self.num_samples - 1)
        return ops.reshape(others, ops.shape(losses)), 0.0
