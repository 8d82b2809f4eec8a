"""Linear chains of C states (conditional random fields) by messages from neighbour to neighbour.

    score(states) = sum over s of unary[s, states[s]]  +  sum over neighbours r, s of pairwise[states[r], states[s]]
    p(states)     = exp(score(states)) / Z

The neighbour of a position is the next one that is not masked, however many masked ones lie between. A masked position
belongs to no chain: its marginals are zero and its state is 0. A chain without any position has `log Z = 0`.

All is read, position by position, from messages between neighbours; see `chain_messages.py`.

All functions take `unary (..., S, C)`, `pairwise (C, C)` as [previous, next], and `mask (..., S)`, True = in the chain,
that broadcasts, or `None`. They compute in float32 or better.
"""

from keras import ops

from keras_attention.ops.random import with_gumbel_noise
from keras_attention.ops.softmax import LOWEST
from keras_attention.structures.chain_messages import Chain, best_message, log_normalized


def chain_marginals(unary, pairwise, mask=None):
    """Probability of each state of each position, `(..., S, C)`; zeros where masked.

    Example:
        >>> chain_marginals(ops.array([[1.0, 0.0], [0.0, 1.0]]), ops.array([[0.5, 0.0], [0.0, 0.5]]))
        [[0.6841, 0.3159], [0.3159, 0.6841]]
    """
    return ops.exp(chain_log_marginals(unary, pairwise, mask))


def chain_log_marginals(unary, pairwise, mask=None):
    """Logarithm of `chain_marginals`, LOWEST where masked: it keeps the digits that small probabilities lose."""
    chain = Chain(unary, pairwise, mask)
    return chain.unfold(chain.only_real(chain.log_marginals(), LOWEST))


def chain_pair_marginals(unary, pairwise, mask=None):
    """Probability `(..., S, C, C)` of the states [previous, next] of each position and its neighbour before it.

    Zeros at the first position of a chain, which has no neighbour before it, and where masked.
    """
    chain = Chain(unary, pairwise, mask)
    pairs, _ = chain.pairs()
    return chain.unfold(pairs[:, :-1])


def chain_log_partition(unary, pairwise, mask=None):
    """`log Z (...)`, the logarithm of the sum of exp(score) over all sequences of states.

    Example:
        >>> chain_log_partition(ops.array([[1.0, 0.0], [0.0, 1.0]]), ops.array([[0.5, 0.0], [0.0, 0.5]]))
        2.8537
    """
    chain = Chain(unary, pairwise, mask)
    growth = ops.logsumexp(chain.unary + chain.backward(), axis=1, keepdims=True)  # of log Z with each position
    return chain.total(chain.only_real(growth))


def chain_score(states, unary, pairwise, mask=None):
    """Score `(...)` of `states (..., S)`, integers; those at masked positions don't count."""
    chain = Chain(unary, pairwise, mask)
    chosen = chain.one_hot(states)
    return chain.total(chosen * (chain.unary + chain.transitions(chosen)))


def chain_log_prob(states, unary, pairwise, mask=None):
    """`score(states) - log Z`, `(...)`, as a sum over positions, so that no large numbers cancel."""
    chain = Chain(unary, pairwise, mask)
    chosen = chain.one_hot(states)
    logits = chain.unary + chain.backward() + chain.transitions(chosen)
    return chain.total(chosen * log_normalized(logits, axis=1))


def chain_entropy(unary, pairwise, mask=None):
    """Entropy of the states in nats, `(...)`: of the first one, and of each next one given that before it."""
    chain = Chain(unary, pairwise, mask)
    pairs, log_conditionals = chain.pairs()
    return -chain.total(pairs * log_conditionals)


def chain_mode(unary, pairwise, mask=None):
    """The states of the highest score, int32 `(..., S)`, by Viterbi's algorithm; of equal states the first. 0 where masked."""
    chain = Chain(unary, pairwise, mask)
    return chain.walk(chain.unary + chain.backward(best_message))


def chain_sample(unary, pairwise, mask=None, seed=None):
    """States drawn from the distribution, int32 `(..., S)`, 0 where masked: messages from behind, then a walk ahead."""
    chain = Chain(unary, pairwise, mask)
    return chain.walk(with_gumbel_noise(chain.unary + chain.backward(), seed))
