"""Learning rates that change with the step."""

import keras
from keras import ops

from keras_attention.checks.arguments import check_positive, check_positive_integer
from keras_attention.saving.lookup import described


@keras.saving.register_keras_serializable(package="keras_attention")
class WarmupInverseSquareRoot(keras.optimizers.schedules.LearningRateSchedule):
    """Learning rate that grows linearly for `warmup_steps` and then falls with the square root of the step.

    `rate = scale · hidden_dim^-0.5 · min(n^-0.5, n · warmup_steps^-1.5)` with `n = step + 1`

    In the paper `hidden_dim` is d_model and n is step_num. It counts from one and Keras from zero, hence the one: the
    first update has a rate above zero. The peak, `scale · (hidden_dim · warmup_steps)^-0.5`, is update number
    `warmup_steps`.

    Args:
        hidden_dim: Positive integer, width of the model.
        warmup_steps: Positive integer, number of updates up to the peak; of batches, where the optimizer accumulates
            gradients.
        scale: Positive number that multiplies every rate.

    Call arguments:
        step: Integer scalar, number of updates made before this one.

    Returns:
        float32 scalar.

    Raises:
        ValueError: If an argument is not positive.

    Example:
        >>> rate = WarmupInverseSquareRoot(hidden_dim=512, warmup_steps=4000)
        >>> f"{float(rate(3999)):.6f}"
        '0.000699'
        >>> optimizer = keras.optimizers.Adam(rate, beta_1=0.9, beta_2=0.98, epsilon=1e-9)

    References:
        Vaswani et al., 2017, equation (3), arXiv:1706.03762.
    """

    def __init__(self, hidden_dim, warmup_steps=4000, scale=1.0):
        super().__init__()
        self.hidden_dim = check_positive_integer("hidden_dim", hidden_dim)
        self.warmup_steps = check_positive_integer("warmup_steps", warmup_steps)
        self.scale = check_positive("scale", scale)

    def __call__(self, step):
        number = ops.cast(step, "float32") + 1.0
        return self.scale * self.hidden_dim**-0.5 * ops.minimum(number**-0.5, number * self.warmup_steps**-1.5)

    def get_config(self):
        return {"hidden_dim": self.hidden_dim, "warmup_steps": self.warmup_steps, "scale": self.scale}

    def __repr__(self):
        return described(self)
