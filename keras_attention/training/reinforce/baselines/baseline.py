"""The interface of the baselines of REINFORCE, with which a loss is compared.

Baselines change the variance of the gradient, never its mean.
"""

import keras
from keras import ops

from keras_attention.checks.arguments import refuse_autocast


class Baseline(keras.layers.Layer):
    """Base class of the baselines of `ReinforceModel`.

    A baseline may depend on anything but the choices that it judges: on the inputs, on earlier batches, on other samples.

    A subclass writes `values`.

    Methods:
        prepare(inputs, num_losses, num_samples): Makes the weights; once, with the model's symbolic inputs.
        predict(inputs): Predictions from the inputs, made before the losses are known, `(B, ...)`, or `None`.
        values(losses, index, predictions): The baseline of the loss number `index` and the terms of its own training,
            float32 tensors that broadcast to `losses (B, ...)`; those of one example are `num_samples` adjacent rows.
        reads_choices: Boolean attribute. If true, the predictions are those recorded with the choices, not those of `predict`.
        update(measures): After all losses are computed: for each a pair, its mean and the mean of ones, which is zero where
            nothing counted.

    Example:
        >>> class Constant(Baseline):
        ...     def values(self, losses, index, predictions):
        ...         return 0.5, 0.0
    """

    reads_choices = False

    def __init__(self, **kwargs):
        refuse_autocast(self, kwargs)
        super().__init__(autocast=False, **kwargs)

    def prepare(self, inputs, num_losses, num_samples):
        self.built = True

    def predict(self, inputs):
        return None

    def values(self, losses, index, predictions):
        raise NotImplementedError(f"{type(self).__name__} must define `values(losses, index, predictions)`.")

    def update(self, measures):
        pass


@keras.saving.register_keras_serializable(package="keras_attention")
class NoBaseline(Baseline):
    """The loss itself is the credit, `baseline=None`: unbiased, with the largest variance.

    Example:
        >>> NoBaseline().values(ops.array([2.0, 3.0]), index=0, predictions=None)
        (0.0, 0.0)
    """

    def values(self, losses, index, predictions):
        return 0.0, 0.0


def squared_errors(losses, predictions):
    """`(losses - predictions)²`, up to 1e30: the square of the loss of a forbidden choice, -LOWEST, would overflow."""
    return ops.square(ops.clip(losses - predictions, -1e15, 1e15))
