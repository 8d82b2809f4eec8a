"""What was chosen at random during a call, and how probable it was: kept only while somebody collects it."""

import contextlib
import contextvars
import math

from keras import ops

from keras_attention.checks.shapes import sizes_differ
from keras_attention.ops.softmax import LOWEST, at_least_float32

# A thread has a value of its own: so have the replicas of a `MirroredStrategy`.
_OPEN = contextvars.ContextVar("open collector", default=None)


class Choices:
    """Log-probabilities, entropies and predictions of the choices made while `collect_choices` was open.

    Args:
        numbers: int32 tensor `(B,)`, which of all joint choices each row makes, or `None`: choices are free.
    """

    def __init__(self, numbers=None):
        self.numbers = numbers
        self.count = 1  # of the joint choices that the given ones stand for
        self._log_probs = []
        self._entropies = []
        self._predicted = []

    def next_choice(self, scores, mask=None):
        """One-hot rows `(B, ..., T, S)`: what the numbers say of the choice that these scores are for.

        A number is written in digits, one for each query, the base of each being its S; the first query's comes last. A
        query with nothing to attend chooses nothing: only its digit 0 is possible.
        """
        *queries, S = scores.shape[1:]
        if sizes_differ(scores.shape[0], self.numbers.shape[0]):
            raise ValueError(
                "Choices can be enumerated where the batch is the first axis of their scores. Received scores of shape "
                f"{tuple(scores.shape)} for {self.numbers.shape[0]} rows. Don't fold other axes into the batch, or sample."
            )
        if S is None or None in queries:
            raise ValueError(
                "All choices can be enumerated only where it is known how many there are. Received scores of shape "
                f"{tuple(scores.shape)}. Give the inputs fixed lengths, or sample."
            )
        chosen = []
        for _ in range(math.prod(queries)):
            chosen.append(self.numbers // self.count % S)
            self.count *= S
        chosen = ops.reshape(ops.stack(chosen, axis=-1), (-1, *queries))
        rows = ops.one_hot(chosen, S, dtype=scores.dtype)
        if mask is None:
            return rows
        may_choose = ops.any(mask, axis=-1)
        self.record(ops.where(ops.logical_or(may_choose, ops.equal(chosen, 0)), 0.0, LOWEST))
        return ops.where(may_choose[..., None], rows, 0)

    def record(self, log_prob, entropy=None, prediction=None):
        if prediction is not None:
            self._predicted.append((at_least_float32(log_prob), at_least_float32(prediction)))
        self._log_probs.append(sum_trailing(log_prob))
        if entropy is not None:
            self._entropies.append(sum_trailing(entropy))

    def log_prob(self, batch_size):
        """Log-probability of all choices of each example, `(B,)` in float32, or `None` where nothing was chosen."""
        return sum_by_example(self._log_probs, batch_size)

    def entropy(self, batch_size):
        """Entropy of all choices of each example, given the earlier ones, `(B,)` in float32, or `None`."""
        return sum_by_example(self._entropies, batch_size)

    def predicted(self, batch_size):
        """Log-probabilities and predictions of the n choices that were recorded with one, both `(B, n)`, or `None`."""
        if not self._predicted:
            return None
        rows = [
            [ops.reshape(tensor, (batch_size, -1)) for tensor in tensors]
            for tensors in zip(*self._predicted, strict=True)
        ]
        return tuple(ops.concatenate(tensors, axis=-1) for tensors in rows)


def sum_trailing(tensor):
    """`(B, ...)` -> `(B,)`: the sum over all axes but the first, in float32 or better."""
    tensor = at_least_float32(tensor)
    return ops.sum(tensor, axis=tuple(range(1, len(tensor.shape))))


def sum_by_example(tensors, batch_size):
    """Sum of tensors `(B·n,)`, whose other axes were folded into the batch, batch first: `(B,)`, or `None` for no tensor."""
    totals = [ops.sum(ops.reshape(tensor, (batch_size, -1)), axis=-1) for tensor in tensors]
    return sum(totals[1:], totals[0]) if totals else None


@contextlib.contextmanager
def collect_choices(numbers=None):
    """Opens a collector for the duration of a `with` block and gives its `Choices`, made with `numbers`.

    The innermost open collector gets what is recorded. A loop that is compiled (`ops.while_loop`, `ops.scan`,
    `keras.layers.RNN`) opens one inside its body and carries the log-probability on in its state: what is recorded
    inside such a loop can't be read outside.

    Example:
        >>> with collect_choices() as choices:
        ...     record_choice(ops.array([[-1.0, -2.0], [-3.0, -5.0]]))
        >>> choices.log_prob(batch_size=2)
        [-3.0, -8.0]
    """
    choices = Choices(numbers)
    token = _OPEN.set(choices)
    try:
        yield choices
    finally:
        _OPEN.reset(token)


def is_collecting():
    """Whether a collector is open."""
    return _OPEN.get() is not None


def given_choice(scores, mask=None):
    """What a collector that enumerates all choices wants these scores to choose, one-hot; `None` where choices are free."""
    choices = _OPEN.get()
    return None if choices is None or choices.numbers is None else choices.next_choice(scores, mask)


def record_choice(log_prob, entropy=None, prediction=None):
    """Gives the log-probability `(B, ...)` of a random choice to the open collector; without one nothing is kept.

    Args:
        log_prob: Float tensor with the batch first; axes may be folded into the batch, batch first. The gradient that
            trains the choice flows through it.
        entropy: Float tensor `(B, ...)` in nats, or `None`.
        prediction: Float tensor of the shape of `log_prob`, or `None`: which loss is expected before the choice is made,
            so of nothing but what was chosen earlier. The baseline "by_choice" compares the loss with it, and trains it.
    """
    if is_collecting():
        _OPEN.get().record(log_prob, entropy, prediction)
