"""Linear chains of C states (conditional random fields) by messages from neighbour to neighbour.

    score(states) = sum over s of unary[s, states[s]]  +  sum over neighbours r, s of pairwise[states[r], states[s]]
    p(states)     = exp(score(states)) / Z

The neighbour of a position is the next one that is not masked, however many masked ones lie between. A masked position
belongs to no chain: its marginals are zero and its state is 0. A chain without any position has `log Z = 0`.

Into every position s comes from either side a message, with one entry for each of its states i,

    message[s, i] = logsumexp over j of (log_softmax(unary[r] + message[r])[j] + pairwise[i, j])      r: next of s

and zeros where nobody sends one. As what is sent is normalized at every step, float32 loses nothing, at any length and
any scores; and from messages all the rest is read position by position. Messages take S rounds of `recursions.scan`,
which has one path for every length, known or not, with or without XLA.

All functions take `unary (..., S, C)`, `pairwise (C, C)` as [previous, next], and `mask (..., S)`, True = in the chain,
that broadcasts, or `None`. They compute in float32 or better. Inside, time comes first and the batch last: `(S, ..., B)`.
"""

import math

from keras import ops

from keras_attention.checks.shapes import check_rank, sizes_differ
from keras_attention.ops.dtypes import at_least
from keras_attention.ops.masks import as_mask
from keras_attention.ops.random import with_gumbel_noise
from keras_attention.ops.recursions import all_states, scan
from keras_attention.ops.softmax import LOWEST, at_least_float32

# === What is read from the messages ===


def chain_marginals(unary, pairwise, mask=None):
    """Probability of each state of each position, `(..., S, C)`; zeros where masked.

    Example:
        >>> chain_marginals(ops.array([[1.0, 0.0], [0.0, 1.0]]), ops.array([[0.5, 0.0], [0.0, 0.5]]))
        [[0.6841, 0.3159], [0.3159, 0.6841]]
    """
    return ops.exp(chain_log_marginals(unary, pairwise, mask))


def chain_log_marginals(unary, pairwise, mask=None):
    """Logarithm of `chain_marginals`, LOWEST where masked: it has the digits that small probabilities lose."""
    chain = _Chain(unary, pairwise, mask)
    return chain.unfold(chain.only_real(chain.log_marginals(), LOWEST))


def chain_pair_marginals(unary, pairwise, mask=None):
    """Probability `(..., S, C, C)` of the states [previous, next] of each position and its neighbour before it.

    Zeros at the first position of a chain, which has none before it, and where masked.
    """
    chain = _Chain(unary, pairwise, mask)
    pairs, _ = chain.pairs()
    return chain.unfold(pairs[:, :-1])


def chain_log_partition(unary, pairwise, mask=None):
    """`log Z (...)`, the logarithm of the sum of exp(score) over all sequences of states.

    Example:
        >>> chain_log_partition(ops.array([[1.0, 0.0], [0.0, 1.0]]), ops.array([[0.5, 0.0], [0.0, 0.5]]))
        2.8537
    """
    chain = _Chain(unary, pairwise, mask)
    totals = ops.logsumexp(chain.unary + chain.backward(), axis=1)  # (S, B), how much log Z grows with each position
    return chain.unfold_total(chain.only_real(totals))


def chain_score(states, unary, pairwise, mask=None):
    """Score `(...)` of `states (..., S)`, integers; those at masked positions don't count."""
    chain = _Chain(unary, pairwise, mask)
    chosen, before = chain.one_hot(states)
    return chain.unfold_total(ops.sum(chosen * (chain.unary + chain.transitions(before)), axis=1))


def chain_log_prob(states, unary, pairwise, mask=None):
    """`score(states) - log Z`, `(...)`, as a sum of what each state adds, so that no large numbers cancel."""
    chain = _Chain(unary, pairwise, mask)
    chosen, before = chain.one_hot(states)
    logits = chain.unary + chain.backward() + chain.transitions(before)
    return chain.unfold_total(ops.sum(chosen * log_normalized(logits, axis=1), axis=1))


def chain_entropy(unary, pairwise, mask=None):
    """Entropy of the states in nats, `(...)`: of the first one, and of each next one given that before it."""
    chain = _Chain(unary, pairwise, mask)
    pairs, log_conditionals = chain.pairs()
    return chain.unfold_total(-ops.sum(pairs * log_conditionals, axis=(1, 2)))


def chain_mode(unary, pairwise, mask=None):
    """The states of the highest score, int32 `(..., S)`, by Viterbi's algorithm; of equal states the first. 0 where masked."""
    chain = _Chain(unary, pairwise, mask)
    return chain.walk(chain.unary + chain.backward(best_message))


def chain_sample(unary, pairwise, mask=None, seed=None):
    """States drawn from the distribution, int32 `(..., S)`, 0 where masked: messages from behind, then a walk ahead."""
    chain = _Chain(unary, pairwise, mask)
    return chain.walk(with_gumbel_noise(chain.unary + chain.backward(), seed))


# === The messages ===


def log_normalized(logits, axis):
    """`log_softmax`, without the transposition by which Keras brings an axis to the end: XLA can't undo it in a loop."""
    return logits - ops.logsumexp(logits, axis=axis, keepdims=True)


def total_message(beliefs, pairwise):
    """What a position with beliefs `(..., C, B)` says by `pairwise (..., C, C)`: the sum over its states."""
    beliefs = log_normalized(beliefs, axis=-2)
    return ops.logsumexp(beliefs[..., :, None, :] + pairwise[..., None], axis=-3)


def best_message(beliefs, pairwise):
    """The same with the best of its states instead of the sum."""
    beliefs = beliefs - ops.max(beliefs, axis=-2, keepdims=True)
    return ops.max(beliefs[..., :, None, :] + pairwise[..., None], axis=-3)


def messages(unary, pairwise, real, message=total_message):
    """The message `(S, ..., C, B)` into each position from that before it, along the first axis; a masked one passes it on.

    Args:
        unary: `(S, ..., C, B)`.
        pairwise: `(..., C, C)`.
        real: Float `(S, ..., 1, B)`, 1 where a position is in the chain.
        message: What a position says, `total_message` or `best_message`.
    """

    def step(incoming, entry):
        outgoing = message(entry[..., :-1, :] + incoming, pairwise)
        return ops.where(entry[..., -1:, :] > 0.0, outgoing, incoming)

    nothing = ops.zeros(ops.shape(unary)[1:], unary.dtype)
    return all_states(step, nothing, ops.concatenate([unary, real], axis=-2))[:-1]


class _Chain:
    """The inputs of a chain with all batch axes as one, at the end, and what several functions read from them.

    Attributes:
        unary: `(S, C, B)`, zeros where masked.
        pairwise: `(C, C)`.
        real: Float `(S, 1, B)`, 1 where a position is in the chain.
    """

    def __init__(self, unary, pairwise, mask):
        check_chain(unary.shape, pairwise.shape)
        unary = at_least_float32(unary)
        *self.leading, S, _ = ops.shape(unary)
        self.pairwise = ops.cast(pairwise, unary.dtype)
        real = ops.ones((*self.leading, S, 1), "bool") if mask is None else as_mask(mask)[..., None]
        unary = ops.where(real, at_least(-at_least(-unary, LOWEST), LOWEST), 0.0)
        real = ops.broadcast_to(ops.cast(real, unary.dtype), (*self.leading, S, 1))
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

    def unfold_total(self, tensor):
        """`(S, B)` -> `(...)`, the sum over positions."""
        return ops.reshape(ops.sum(tensor, axis=0), tuple(self.leading))

    def only_real(self, tensor, other=0.0):
        real = self.real > 0.0  # (S, 1, B)
        return ops.where(real if len(tensor.shape) == 3 else real[:, 0], tensor, other)

    def backward(self, message=total_message):
        """Messages `(S, C, B)` from behind each position."""
        transposed = ops.transpose(self.pairwise)
        return ops.flip(messages(ops.flip(self.unary, 0), transposed, ops.flip(self.real, 0), message), 0)

    def both_ways(self):
        """Messages `(S, C, B)` from before and from behind each position, by one scan."""
        both = [ops.stack([tensor, ops.flip(tensor, 0)], axis=1) for tensor in (self.unary, self.real)]
        pairwise = ops.stack([self.pairwise, ops.transpose(self.pairwise)])
        incoming = messages(both[0], pairwise, both[1])  # (S, 2, C, B)
        return incoming[:, 0], ops.flip(incoming[:, 1], 0)

    def log_marginals(self):
        """`(S, C, B)`; those of masked positions mean nothing."""
        from_before, from_behind = self.both_ways()
        return log_normalized(self.unary + from_before + from_behind, axis=1)

    def pairs(self):
        """Probability of [previous, next], and of next given previous its logarithm: two of `(S, C + 1, C, B)`.

        The last of the previous states stands for none, which is that before the first position.
        """
        from_before, from_behind = self.both_ways()
        logits = self.unary + from_behind
        marginals = ops.exp(log_normalized(logits + from_before, axis=1))
        logits = ops.pad(self.pairwise, ((0, 1), (0, 0)))[..., None] + logits[:, None]  # (S, C + 1, C, B)
        log_conditionals = log_normalized(logits, axis=2)
        before = self.before(self.only_real(marginals))
        pairs = before[:, :, None] * ops.exp(log_conditionals) * self.real[:, None]
        return pairs, log_conditionals

    def before(self, states):
        """Of `states (S, C, B)`, probabilities of states, those of the position before: `(S, C + 1, B)`, as in `pairs`."""
        _, C, B = ops.shape(states)
        nothing = ops.concatenate([ops.zeros((C, B), states.dtype), ops.ones((1, B), states.dtype)], axis=0)
        states = ops.concatenate([states, ops.zeros_like(self.real), self.real], axis=1)
        return all_states(lambda last, entry: ops.where(entry[-1:] > 0.0, entry[:-1], last), nothing, states)[:-1]

    def one_hot(self, states):
        """`(S, C, B)` from `states (..., S)`, zeros where masked, and that of the position before, `(S, C + 1, B)`."""
        chosen = ops.one_hot(ops.cast(states, "int32"), self.pairwise.shape[0], dtype=self.unary.dtype)
        chosen = self.only_real(self.fold(ops.broadcast_to(chosen, (*self.leading, *ops.shape(chosen)[-2:]))))
        return chosen, self.before(chosen)

    def transitions(self, before):
        """Scores `(S, C, B)` of stepping to each state from the known one before."""
        return ops.einsum("sib,ij->sjb", before[:, :-1], self.pairwise)

    def walk(self, logits):
        """States `(..., S)`, int32: at each position, one after the other, the best given the one before."""

        def step(last, entry):
            totals = entry[:-1] + ops.einsum("ib,ij->jb", last, self.pairwise)
            is_best = ops.one_hot(ops.argmax(totals, axis=0), self.pairwise.shape[0], axis=0, dtype=last.dtype)
            return ops.where(entry[-1:] > 0.0, is_best, last)

        chosen = scan(
            step, ops.zeros(ops.shape(logits)[1:], logits.dtype), ops.concatenate([logits, self.real], axis=1)
        )
        return ops.cast(self.unfold(self.only_real(ops.argmax(chosen, axis=1)[:, None], 0)[:, 0]), "int32")


def check_chain(unary_shape, pairwise_shape):
    """Raises unless the shapes are `(..., S, C)` and `(C, C)`."""
    check_rank("unary", unary_shape, 2, "(..., S, C)")
    C = unary_shape[-1]
    if len(pairwise_shape) != 2 or any(sizes_differ(C, size) for size in pairwise_shape):
        raise ValueError(
            f"`pairwise` must have shape (C, C), [previous, next], with the C={C} states of `unary`. Received pairwise "
            f"of shape {tuple(pairwise_shape)} and unary of shape {tuple(unary_shape)}."
        )
