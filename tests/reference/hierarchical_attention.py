"""Hierarchical attention in NumPy: one sequence at a time, of which only the real positions are ever looked at."""

import math

import numpy as np


def pooling(inputs, kernel, bias, vector):
    """Vector `(D,)` and weights `(S,)` of one sequence `(S, D)`."""
    D, U = kernel.shape
    scores = [
        sum(vector[u] * math.tanh(sum(position[d] * kernel[d, u] for d in range(D)) + bias[u]) for u in range(U))
        for position in inputs
    ]
    weights = np.exp(scores - np.max(scores))
    weights /= weights.sum()
    return sum(weight * position for weight, position in zip(weights, inputs, strict=True)), weights


def hierarchical_attention(inputs, mask, levels):
    """Vectors `(B, E)` and the weights of each level, of `inputs (B, ..., S, D)` under `mask (B, ..., S)`.

    Args:
        levels: For each level, the innermost first, a function `(n, D)` -> `(n, E)` or `None`, and the kernel, bias and
            vector of the pooling.
    """
    vectors, weights = inputs, []
    for encode, parameters in levels:
        pooled, weights_of_level = {}, np.zeros(mask.shape)
        for index in np.ndindex(*mask.shape[:-1]):
            real = mask[index]
            if real.any():
                encoded = vectors[index][real] if encode is None else encode(vectors[index][real])
                pooled[index], weights_of_level[index][real] = pooling(encoded, *parameters)
        vectors = np.zeros((*mask.shape[:-1], len(next(iter(pooled.values())))))
        for index, vector in pooled.items():
            vectors[index] = vector
        weights.append(weights_of_level)
        mask = mask.any(axis=-1)
    return vectors, weights
