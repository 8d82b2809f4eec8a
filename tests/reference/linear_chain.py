"""One chain in float64 by its definition: every sequence of states, and messages one position after the other."""

import itertools

import numpy as np


def all_states(S, C, mask=None):
    """Every sequence of states `(..., S)`, 0 where masked."""
    choices = [range(C) if mask is None or mask[s] else range(1) for s in range(S)]
    return np.array(list(itertools.product(*choices)), "int32").reshape(-1, S)


def score(states, unary, pairwise, mask):
    real = [s for s in range(len(states)) if mask[s]]
    total = sum(float(unary[s, states[s]]) for s in real)
    return total + sum(float(pairwise[states[r], states[s]]) for r, s in itertools.pairwise(real))


def enumerated(unary, pairwise, mask):
    """Of one chain `(S, C)`: its log-partition, marginals, pair marginals, entropy, and best states."""
    S, C = unary.shape
    sequences = all_states(S, C, mask)
    scores = np.array([score(states, unary, pairwise, mask) for states in sequences])
    log_partition = np.logaddexp.reduce(scores)
    marginals, pairs = np.zeros((S, C)), np.zeros((S, C, C))
    probabilities = np.exp(scores - log_partition)
    real = [s for s in range(S) if mask[s]]
    for states, probability in zip(sequences, probabilities, strict=True):
        for s in real:
            marginals[s, states[s]] += probability
        for r, s in itertools.pairwise(real):
            pairs[s, states[r], states[s]] += probability
    return {
        "log_partition": log_partition,
        "marginals": marginals,
        "pair_marginals": pairs,
        "entropy": -np.sum(probabilities * np.log(probabilities)),
        "mode": sequences[np.argmax(scores)],
    }


def forward_backward(unary, pairwise):
    """Of one chain `(S, C)` without a mask, of any length: its log-partition, marginals and pair marginals."""
    unary, pairwise = np.asarray(unary, "float64"), np.asarray(pairwise, "float64")
    S, C = unary.shape
    forward, backward = np.zeros((S, C)), np.zeros((S, C))
    for s in range(S):
        before = np.logaddexp.reduce(forward[s - 1][:, None] + pairwise, axis=0) if s else 0.0
        forward[s] = unary[s] + before
    for s in reversed(range(S - 1)):
        backward[s] = np.logaddexp.reduce(pairwise + (unary[s + 1] + backward[s + 1])[None, :], axis=1)
    log_partition = np.logaddexp.reduce(forward[-1])
    pairs = np.zeros((S, C, C))
    for s in range(1, S):
        pairs[s] = np.exp(forward[s - 1][:, None] + pairwise + (unary[s] + backward[s])[None, :] - log_partition)
    return {
        "log_partition": log_partition,
        "marginals": np.exp(forward + backward - log_partition),
        "pair_marginals": pairs,
    }
