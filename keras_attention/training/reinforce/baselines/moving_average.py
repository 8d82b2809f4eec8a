"""The mean loss of past batches as a baseline."""

import keras
from keras import ops

from keras_attention.checks.arguments import check_positive_integer, check_rate
from keras_attention.training.reinforce.baselines.baseline import Baseline


@keras.saving.register_keras_serializable(package="keras_attention")
class MovingAverage(Baseline):
    """The mean loss of past batches, one for each output.

    `total ← decay · total + (1 - decay) · mean loss`, `mass ← decay · mass + (1 - decay)`, `baseline = total / mass`

    Division by the mass corrects for the start at zero. A batch is judged by the batches before it; means are taken as
    Keras weighs and masks the losses, and all baselines of a step are read before any is updated.

    Args:
        decay: Float in [0, 1), how slowly it forgets.
        num_losses: Integer, how many losses there are, or `None`: one for each output of the model.

    Example:
        >>> baseline = MovingAverage(decay=0.9)
        >>> baseline.prepare(None, num_losses=1, num_samples=1)
        >>> baseline.update([(5.0, 1.0)])
        >>> baseline.update([(3.0, 1.0)])
        >>> baseline.values(ops.array([4.0]), index=0, predictions=None)[0]
        3.9474

    References:
        Williams, 1992, section 4; Xu et al., 2015, section 4.1, arXiv:1502.03044.
    """

    def __init__(self, decay=0.9, num_losses=None, **kwargs):
        super().__init__(**kwargs)
        self.decay = check_rate("decay", decay)
        self.num_losses = None if num_losses is None else check_positive_integer("num_losses", num_losses)

    def prepare(self, inputs, num_losses, num_samples):
        # Replicas keep the mean of their states.
        options = {"initializer": "zeros", "trainable": False, "dtype": "float32", "aggregation": "mean"}
        shape = (self.num_losses or num_losses,)
        self.total = self.add_weight(shape, name="total", **options)
        self.mass = self.add_weight(shape, name="mass", **options)
        self.built = True

    def values(self, losses, index, predictions):
        if index >= self.total.shape[0]:
            raise ValueError(
                f"The moving average keeps {self.total.shape[0]} baselines, one for each output. Received a loss number "
                f"{index + 1}. Pass `baseline=MovingAverage(num_losses=...)` with the number of losses."
            )
        mass = ops.convert_to_tensor(self.mass)[index]
        return ops.divide_no_nan(ops.convert_to_tensor(self.total)[index], mass), 0.0

    def update(self, measures):
        missing = self.total.shape[0] - len(measures)
        for variable, values in zip((self.total, self.mass), zip(*measures, strict=True), strict=True):
            values = ops.stack([ops.cast(value, "float32") for value in values] + [0.0] * missing)
            variable.assign(self.decay * variable + (1.0 - self.decay) * ops.stop_gradient(values))

    def get_config(self):
        return {**super().get_config(), "decay": self.decay, "num_losses": self.num_losses}
