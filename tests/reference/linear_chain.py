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


# The package `torch-struct` 0.5 (PyPI) on torch 2.13, in float64: `LinearChainCRF(...).marginals`, `.partition`, `.entropy`
# and `.argmax` of one chain, and the gradients of the sum of FACTORS · marginals.
UNARY = np.array([[1, -0.5, 0.25], [0.5, 2, -1], [-1.5, 0.75, 0], [0, 1.25, -2], [3, -1, 0.5]], "float32")
PAIRWISE = np.array([[0.5, -1, 0.25], [2, 0, -0.75], [-0.5, 1.5, 1]], "float32")
FACTORS = np.array([[1, -2, 3], [0.5, -1.5, 2.5], [-3, 1, 0], [2, 0.5, -1], [0.25, 1.75, -0.5]], "float32")
OF_TORCH_STRUCT = {
    "marginals": [
        [0.254965, 0.160236, 0.584799],
        [0.221731, 0.641133, 0.137136],
        [0.089682, 0.442582, 0.467736],
        [0.172295, 0.824588, 0.003117],
        [0.981662, 0.002968, 0.01537],
    ],
    "log_partition": 12.510781,
    "entropy": 2.943117,
    "mode_after_the_first": [1, 1, 1, 0],
    "slopes_of_unary": [
        [0.039325, -0.546525, 0.5072],
        [-0.252553, -0.231884, 0.484437],
        [-0.312825, 0.548794, -0.235969],
        [0.282476, -0.273183, -0.009293],
        [-0.00619, 0.004064, 0.002126],
    ],
    "slopes_of_pairwise": [
        [0.208624, -0.396618, -0.055583],
        [-0.53256, 0.21068, -0.180918],
        [0.034844, 0.23373, 0.477801],
    ],
}
