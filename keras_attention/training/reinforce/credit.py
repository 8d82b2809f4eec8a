"""Credit of random choices for a loss: its gradient gains `(loss - baseline) · gradient of log p`, its value stays.

The rewrite is done on every element of a loss before Keras weighs, masks and reduces it, so that all three apply to both terms:
the gradient is unbiased for the very scalar that Keras reports.
"""

import contextlib
import contextvars

import keras
from keras import ops

from keras_attention.checks.shapes import sizes_differ
from keras_attention.training.token_means import TokenMean, reduced, replaced

_OPEN = contextvars.ContextVar("open credit", default=None)


def score_function_surrogate(losses, baseline, log_prob):
    """`(losses - baseline) · log_prob`, whose gradient is taken of `log_prob` alone.

    Its expected gradient over the choices is the gradient of the expected loss.

    Example:
        >>> surrogate = score_function_surrogate(-2.0, -0.5, ops.log([1 / 3]))
        >>> surrogate
        [1.6479]

    References:
        Williams, 1992, eq. (11).
    """
    return ops.stop_gradient(losses - baseline) * log_prob


def without_value(tensor):
    """A zero with the gradient of `tensor`."""
    return tensor - ops.stop_gradient(tensor)


class Credit:
    """The choices of one training step, for its losses.

    Args:
        log_prob: float32 `(B,)`, log-probability of all choices of an example.
        entropy: float32 `(B,)`.
        entropy_weight: Number; `entropy_weight · entropy` is taken off every element of every loss.
        baseline: A `Baseline`.
        predictions: Predictions of the baseline, one row for each example, or `None`.
        count: Integer, rows of each example.
    """

    def __init__(self, log_prob, entropy, entropy_weight, baseline, predictions, count=1):
        self.count = count
        self.log_prob = log_prob
        self.entropy = entropy
        self.entropy_weight = entropy_weight
        self.baseline = baseline
        self.predictions = predictions
        self.measures = []

    def assign(self, losses, name):
        """`losses (B, ...)` of one output with the gradient of the choices, and the objective."""
        check_per_example(losses, self.log_prob, name)
        values, rank = ops.cast(losses, "float32"), len(losses.shape)
        log_prob = self._beside(self.log_prob, rank)
        bonus = 0.0
        if self.entropy_weight:
            bonus = self.entropy_weight * self._beside(self.entropy, rank)
        objective = ops.stop_gradient(values - bonus)
        baseline, regression = self.baseline.values(objective, len(self.measures), self.predictions)
        term = score_function_surrogate(objective, baseline, log_prob) - bonus + regression
        return losses + ops.cast(without_value(term), losses.dtype), objective

    @staticmethod
    def _beside(tensor, rank):
        return ops.reshape(tensor, (-1,) + (1,) * (rank - 1))


def check_per_example(losses, log_prob, name):
    """Raises unless `losses` has a value for each of the examples of `log_prob (B,)`."""
    shape = tuple(losses.shape)
    if not shape:
        raise ValueError(
            f"Each loss must give a value for each example, shape (B, ...), to credit the choices made for that example. "
            f"Received the loss {name!r}, which returns a scalar, shape (). Leave out its last mean over the batch; "
            "Keras averages by itself."
        )
    if sizes_differ(shape[0], log_prob.shape[0]):
        raise ValueError(
            f"The loss {name!r} must have one row for each example. Received losses of shape {shape} for "
            f"{log_prob.shape[0]} examples. Keep the batch as the first axis of the outputs."
        )


@contextlib.contextmanager
def open_credit(credit):
    """Makes every `CreditedLoss` give `credit` for the duration of a `with` block."""
    token = _OPEN.set(credit)
    try:
        yield credit
    finally:
        _OPEN.reset(token)


@keras.saving.register_keras_serializable(package="keras_attention")
class CreditedLoss(TokenMean):
    """A loss as it was, except while a credit is open. `ReinforceModel.compile` makes it; users need not.

    Args:
        loss: A name, a function or a `keras.losses.Loss`.
    """

    def __call__(self, y_true, y_pred, sample_weight=None):
        credit = _OPEN.get()
        if credit is None:
            return super().__call__(y_true, y_pred, sample_weight)
        objectives = []

        def call(y_true, y_pred):
            losses, objective = credit.assign(self.loss_object.call(y_true, y_pred), self.name)
            objectives.append(objective)
            return losses

        result = reduced(replaced(self.loss_object, call), y_true, y_pred, sample_weight)
        if self.reduction == "sum":  # over the rows of each example, too
            result = result / credit.count
        if not objectives:
            raise ValueError(
                f"The loss {self.name!r} must compute a value for each example in its method `call`. Received a loss whose "
                "`__call__` never asks it. Leave `__call__` to `keras.losses.Loss`."
            )
        # The mean as Keras weighs and masks it, and the mean of ones: below one for a replica, zero if nothing counts.
        credit.measures.append(
            [
                reduced(
                    replaced(self.loss_object, lambda *_, values=values: values, "mean_with_sample_weight"),
                    y_true,
                    y_pred,
                    sample_weight,
                )
                for values in (objectives[0], ops.ones_like(objectives[0]))
            ]
        )
        return result
