"""The recorder of random choices: what was drawn during a call, and how probable it was."""

import contextvars

from keras import ops

from keras_attention.checks.shapes import sizes_differ
from keras_attention.ops.softmax import LOWEST, at_least_float32

# A thread has a value of its own: so have the replicas of a `MirroredStrategy`.
_OPEN = contextvars.ContextVar("open recorder", default=None)


class Recorder:
    """Log-probabilities, entropies and predictions of the choices that are made within a `with` block.

    The innermost open recorder gets what `record_choice` gives. Tensors recorded inside a loop that is compiled
    (`ops.while_loop`, `ops.scan`, `keras.layers.RNN`) can't be read outside. Such a loop opens a recorder inside its body
    and hands the log-probabilities on, in its state or as outputs of its steps.

    Args:
        numbers: int32 tensor `(B,)`, for enumeration: which of all joint choices each row makes. `None`: choices are free.

    Example:
        >>> with Recorder() as recorder:
        ...     record_choice(ops.array([[-1.0, -2.0], [-3.0, -5.0]]))
        >>> recorder.log_prob(batch_size=2)
        [-3.0, -8.0]
    """

    def __init__(self, numbers=None):
        self.numbers = numbers
        self.count = 1  # of the joint choices that were enumerated
        self._log_probs = []
        self._entropies = []
        self._predicted = []

    def __enter__(self):
        self._token = _OPEN.set(self)
        return self

    def __exit__(self, *error):
        _OPEN.reset(self._token)

    def next_selection(self, alignment, scores, mask=None):
        """The selection `(B, ..., T, S)` that the numbers say of an alignment with these scores."""
        if not hasattr(alignment, "numbered"):
            raise ValueError(
                "Enumeration needs an alignment whose selections are numbered, one position for each query. Received "
                f'{type(alignment).__name__}. Sample it (leave out `num_samples=Enumeration(...)`), or take "softmax".'
            )
        shape = tuple(scores.shape)
        if sizes_differ(shape[0], self.numbers.shape[0]):
            raise ValueError(
                "Choices can be enumerated where the batch is the first axis of their scores. Received scores of shape "
                f"{shape} for {self.numbers.shape[0]} rows. Don't fold other axes into the batch, or sample."
            )
        if None in shape[1:]:
            raise ValueError(
                "All choices can be enumerated only where it is known how many there are. Received scores of shape "
                f"{shape}. Give the inputs fixed lengths, or sample."
            )
        numbers = self.numbers // min(self.count, 2**31 - 1)
        selection, possible, count = alignment.numbered(numbers, scores, mask)
        self.count *= count
        self.record(ops.where(possible, 0.0, LOWEST))
        return selection

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


def is_recording():
    """Whether a recorder is open."""
    return _OPEN.get() is not None


def enumerated_selection(alignment, scores, mask=None):
    """The selection that an open recorder wants these scores to make; `None` where choices are free."""
    recorder = _OPEN.get()
    return None if recorder is None or recorder.numbers is None else recorder.next_selection(alignment, scores, mask)


def record_choice(log_prob, entropy=None, prediction=None):
    """Gives the log-probability `(B, ...)` of a random choice to the open recorder; without one nothing is kept.

    Args:
        log_prob: Float tensor with the batch first; axes may be folded into the batch, batch first. The gradient that
            trains the choice flows through it.
        entropy: Float tensor `(B, ...)` in nats, or `None`.
        prediction: Float tensor of the shape of `log_prob`, or `None`: the loss that is expected before the choice is made,
            by what was chosen earlier alone. The baseline "per_step" compares the loss with it, and trains it.

    Example:
        >>> with Recorder() as recorder:
        ...     record_choice(ops.log([0.5, 0.25]), entropy=ops.array([0.7, 0.6]))
        >>> recorder.entropy(batch_size=2)
        [0.7, 0.6]
    """
    if is_recording():
        _OPEN.get().record(log_prob, entropy, prediction)
