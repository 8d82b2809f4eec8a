"""Sparsemax and entmax row by row in float64, and values of another library."""

import numpy as np


def entmax(scores, alpha, mask=None):
    """`(..., S)`: each row by bisection of its threshold; zeros where the mask allows nothing. Sparsemax: alpha = 2."""
    scores = np.asarray(scores, "float64")
    mask = np.broadcast_to(True if mask is None else mask, scores.shape)
    weights = np.zeros(scores.shape)
    for index in np.ndindex(*scores.shape[:-1]):
        allowed = [s for s in range(scores.shape[-1]) if mask[index][s]]
        if allowed:
            weights[(*index, allowed)] = _row(np.array([scores[(*index, s)] for s in allowed]) * (alpha - 1), alpha)
    return weights


def _row(scaled, alpha):
    low, high = scaled.max() - 1, scaled.max()
    for _ in range(200):
        middle = (low + high) / 2
        total = sum(max(score - middle, 0) ** (1 / (alpha - 1)) for score in scaled)
        low, high = (middle, high) if total >= 1 else (low, middle)
    return np.maximum(scaled - low, 0) ** (1 / (alpha - 1))


# The package `entmax` 1.3 (PyPI) on torch 2.13, in float64: `sparsemax`, `entmax15`, and `entmax_bisect` otherwise.
# alpha -> for each of the SCORES the weights and the gradient of the sum of FACTORS · weights.
SCORES = ([1.0, 0.6, -1.0], [0.3, 1.1, 0.9, -0.5, 1.1], [2.0, -1.0, 0.5, 1.7, 0.1, 1.9, -3.0])
FACTORS = [1.0, -2.0, 3.0, 0.5, -1.5, 2.5, 7.0]
OF_THE_PACKAGE = {
    1.25: (
        ([0.604929, 0.373797, 0.021275], [0.743889, -0.915711, 0.171823]),
        ([0.093963, 0.32262, 0.245154, 0.015643, 0.32262], [0.200968, -0.777315, 1.109364, 0.030262, -0.563278]),
        (
            [0.377991, 1e-06, 0.02801, 0.252828, 0.009128, 0.332041, 0.0],
            [-0.189743, -0.000135, 0.109986, -0.318612, -0.085453, 0.483957, 0.0],
        ),
    ),
    1.5: (
        ([0.64, 0.36, 0.0], [1.028571, -1.028571, 0.0]),
        ([0.038951, 0.35684, 0.247368, 0.0, 0.35684], [0.239281, -1.067842, 1.597723, 0.0, -0.769162]),
        (
            [0.410419, 0.0, 0.0, 0.240727, 0.0, 0.348855, 0.0],
            [-0.23835, 0.0, 0.0, -0.427862, 0.0, 0.666212, 0.0],
        ),
    ),
    2.0: (
        ([0.7, 0.3, 0.0], [1.5, -1.5, 0.0]),
        ([0.0, 0.4, 0.2, 0.0, 0.4], [0.0, -1.833333, 3.166667, 0.0, -1.333333]),
        (
            [0.466667, 0.0, 0.0, 0.166667, 0.0, 0.366667, 0.0],
            [-0.333333, 0.0, 0.0, -0.833333, 0.0, 1.166667, 0.0],
        ),
    ),
    3.0: (
        ([0.9, 0.1, 0.0], [3.0, -3.0, 0.0]),
        ([0.0, 0.5, 0.0, 0.0, 0.5], [0.0, -0.5, 0.0, 0.0, 0.5]),
        ([0.6, 0.0, 0.0, 0.0, 0.0, 0.4, 0.0], [-1.5, 0.0, 0.0, 0.0, 0.0, 1.5, 0.0]),
    ),
}
