"""The messages of a linear chain of C states, and the sums, best states and walks that are read from them.

Into every position s comes from either side a message, with one entry for each of its states i,

    message[s, i] = logsumexp over j of (log_softmax(unary[r] + message[r])[j] + pairwise[i, j])      r: next of s

and zeros at an end of the chain. Messages are normalized at every step, so float32 loses nothing at any length and any
scores. Time comes first and the batch last: `(S, ..., B)`.
"""

import functools
import math

from keras import ops

from keras_attention.checks.shapes import check_rank, sizes_differ
from keras_attention.ops.dtypes import at_least
from keras_attention.ops.masks import as_mask
from keras_attention.ops.recursions import scan
from keras_attention.ops.softmax import LOWEST, at_least_float32


def log_normalized(logits, axis):
    """`log_softmax`, without the transposition by which Keras brings an axis to the end: XLA can't undo it in a loop."""
    return logits - ops.logsumexp(logits, axis=axis, keepdims=True)


def total_message(beliefs, pairwise):
    """The message of a position with beliefs `(..., C, B)` by `pairwise (..., C, C)`: the sum over its states."""
    beliefs = log_normalized(beliefs, axis=-2)
    return ops.logsumexp(beliefs[..., :, None, :] + pairwise[..., None], axis=-3)


def best_message(beliefs, pairwise):
    """The same with the best of its states instead of the sum."""
    highest = functools.partial(ops.max, initial=-math.inf)  # which an empty batch needs
    beliefs = beliefs - highest(beliefs, axis=-2, keepdims=True)
    return highest(beliefs[..., :, None, :] + pairwise[..., None], axis=-3)


def arriving(send, start, tensor, real):
    """What arrives at each position from the neighbour before it, along the first axis; `start` at the first one.

    Args:
        send: Function of what arrives at a position and of its row of the tensor.
        start: `(..., B)`.
        tensor: `(S, ..., B)`.
        real: Boolean `(S, ..., 1, B)`. Masked positions pass on what they receive.
    """

    def step(incoming, entry):
        row, is_real = entry
        return ops.where(is_real, send(incoming, row), incoming), incoming

    return scan(step, start, (tensor, real))[1]


def messages(unary, pairwise, real, message=total_message):
    """The messages `(S, ..., C, B)` from before each position.

    Args:
        unary: `(S, ..., C, B)`.
        pairwise: `(..., C, C)`.
        real: Boolean `(S, ..., 1, B)`.
        message: `total_message` or `best_message`.
    """
    start = ops.zeros(ops.shape(unary)[1:], unary.dtype)
    return arriving(lambda incoming, unary: message(unary + incoming, pairwise), start, unary, real)


class Chain:
    """The inputs of a chain with all batch axes as one, at the end, and what several functions read from them.

    Attributes:
        unary: `(S, C, B)`, zeros where masked.
        pairwise: `(C, C)`.
        real: Boolean `(S, 1, B)`, whether a position is in the chain.
    """

    def __init__(self, unary, pairwise, mask):
        check_chain(unary.shape, pairwise.shape)
        unary = at_least_float32(unary)
        *self.leading, S, _ = ops.shape(unary)
        self.pairwise = ops.cast(pairwise, unary.dtype)
        real = ops.broadcast_to(True if mask is None else as_mask(mask)[..., None], (*self.leading, S, 1))
        unary = ops.where(real, at_least(-at_least(-unary, LOWEST), LOWEST), 0.0)
        self.unary, self.real = self.fold(unary), self.fold(real)

    def fold(self, tensor):
        """`(..., S, C)` -> `(S, C, B)`."""
        *_, S, C = ops.shape(tensor)
        return ops.transpose(ops.reshape(tensor, (math.prod(self.leading), S, C)), (1, 2, 0))

    def unfold(self, tensor):
        """`(S, ..., B)` -> `(..., S, ...)`."""
        rank = len(tensor.shape)
        tensor = ops.transpose(tensor, (rank - 1, *range(rank - 1)))
        return ops.reshape(tensor, (*self.leading, *ops.shape(tensor)[1:]))

    def total(self, tensor):
        """`(S, ..., B)` -> `(...)`, the sum over all but the batch."""
        return ops.reshape(ops.sum(tensor, axis=tuple(range(len(tensor.shape) - 1))), tuple(self.leading))

    def only_real(self, tensor, other=0.0):
        """The tensor `(S, C, B)` with another number where masked."""
        return ops.where(self.real, tensor, other)

    def backward(self, message=total_message):
        """Messages `(S, C, B)` from behind each position."""
        transposed = ops.transpose(self.pairwise)
        return ops.flip(messages(ops.flip(self.unary, 0), transposed, ops.flip(self.real, 0), message), 0)

    def both_ways(self):
        """Messages `(S, C, B)` from before and from behind each position, in the same steps."""
        unary, real = (ops.stack([tensor, ops.flip(tensor, 0)], axis=1) for tensor in (self.unary, self.real))
        pairwise = ops.stack([self.pairwise, ops.transpose(self.pairwise)])
        incoming = messages(unary, pairwise, real)  # (S, 2, C, B)
        return incoming[:, 0], ops.flip(incoming[:, 1], 0)

    def log_marginals(self):
        """`(S, C, B)`, meaningless where masked."""
        from_before, from_behind = self.both_ways()
        return log_normalized(self.unary + from_before + from_behind, axis=1)

    def pairs(self):
        """Probability of [previous, next], and log-probability of next given previous: two of `(S, C + 1, C, B)`.

        The last of the previous states stands for no previous position.
        """
        from_before, from_behind = self.both_ways()
        logits = self.unary + from_behind
        before = self.before(ops.exp(log_normalized(logits + from_before, axis=1)))
        is_first = ops.equal(ops.cumsum(ops.cast(self.real, "int32"), axis=0), 1)
        before = ops.concatenate([before, ops.cast(is_first, before.dtype)], axis=1)
        logits = ops.pad(self.pairwise, ((0, 1), (0, 0)))[..., None] + logits[:, None]  # (S, C + 1, C, B)
        log_conditionals = log_normalized(logits, axis=2)
        pairs = before[:, :, None] * ops.exp(log_conditionals)
        return ops.where(self.real[:, None], pairs, 0.0), log_conditionals

    def before(self, states):
        """Of `states (S, C, B)` those of the previous position; zeros at the first one."""
        return arriving(lambda _, state: state, ops.zeros(ops.shape(states)[1:], states.dtype), states, self.real)

    def one_hot(self, states):
        """`(S, C, B)` from `states (..., S)`, zeros where masked."""
        chosen = ops.one_hot(ops.cast(states, "int32"), self.pairwise.shape[0], dtype=self.unary.dtype)
        return self.only_real(self.fold(ops.broadcast_to(chosen, (*self.leading, *ops.shape(chosen)[-2:]))))

    def transitions(self, chosen):
        """Scores `(S, C, B)` of stepping to each state from the chosen one before, `chosen (S, C, B)` one-hot."""
        return ops.einsum("sib,ij->sjb", self.before(chosen), self.pairwise)

    def walk(self, logits):
        """States `(..., S)`, int32: at each position, one after the other, the best given the one before."""
        from_last = ops.pad(self.pairwise, ((0, 1), (0, 0)))  # the last row: no position before

        def step(last, entry):
            logits, is_real = entry
            best = ops.argmax(logits + ops.transpose(ops.take(from_last, last, axis=0)), axis=0)
            best = ops.where(is_real[0], ops.cast(best, "int32"), last)
            return best, best

        _, C, B = ops.shape(logits)
        _, states = scan(step, ops.full((B,), C, "int32"), (logits, self.real))
        return self.unfold(self.only_real(states[:, None], 0)[:, 0])


def check_chain(unary_shape, pairwise_shape):
    """Raises unless the shapes are `(..., S, C)` and `(C, C)`."""
    check_rank("unary", unary_shape, 2, "(..., S, C)")
    C = unary_shape[-1]
    if len(pairwise_shape) != 2 or any(sizes_differ(C, size) for size in pairwise_shape):
        raise ValueError(
            f"`pairwise` must have shape (C, C), [previous, next], with the C={C} states of `unary`. Received pairwise "
            f"of shape {tuple(pairwise_shape)} and unary of shape {tuple(unary_shape)}."
        )
