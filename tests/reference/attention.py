"""Attention in NumPy loops, one query and one key at a time, straight from the formulas."""

import math

import numpy as np


def dot(query, key):
    return sum(query[d] * key[d] for d in range(len(query)))


def scaled_dot(query, key):
    return dot(query, key) / math.sqrt(len(query))


def bilinear(query, key, kernel):
    return sum(query[d] * kernel[d, e] * key[e] for d in range(len(query)) for e in range(len(key)))


def additive(query, key, query_kernel, key_kernel, vector):
    return sum(
        vector[u] * math.tanh(dot(query, query_kernel[:, u]) + dot(key, key_kernel[:, u])) for u in range(len(vector))
    )


def concat(query, key, kernel, vector):
    pair = np.concatenate([query, key])
    return sum(vector[u] * math.tanh(dot(pair, kernel[:, u])) for u in range(len(vector)))


PAIR_SCORES = {"dot": dot, "scaled_dot": scaled_dot, "bilinear": bilinear, "additive": additive, "concat": concat}


def scores(query, key, pair_score, *weights):
    """`(..., T, D_query)`, `(..., S, D_key)` -> `(..., T, S)` by `pair_score(query[t], key[s], *weights)`."""
    *leading, T, _ = query.shape
    S = key.shape[-2]
    result = np.zeros((*leading, T, S))
    for index in np.ndindex(*leading):
        for t in range(T):
            for s in range(S):
                result[(*index, t, s)] = pair_score(query[(*index, t)], key[(*index, s)], *weights)
    return result


def softmax(scores, mask=None):
    """Softmax of each row over the positions where `mask` is True; zeros where it allows none."""
    mask = np.broadcast_to(True if mask is None else mask, scores.shape)
    weights = np.zeros(scores.shape)
    for index in np.ndindex(*scores.shape[:-1]):
        allowed = [s for s in range(scores.shape[-1]) if mask[index][s]]
        if allowed:
            largest = max(scores[index][s] for s in allowed)
            exponentials = {s: math.exp(scores[index][s] - largest) for s in allowed}
            for s in allowed:
                weights[(*index, s)] = exponentials[s] / sum(exponentials.values())
    return weights


def combine(weights, value):
    """`(..., T, S)`, `(..., S, E)` -> `(..., T, E)`: the sum of the weighted values, those of weight 0 left out."""
    *leading, T, S = weights.shape
    context = np.zeros((*leading, T, value.shape[-1]))
    for index in np.ndindex(*leading):
        for t in range(T):
            for s in range(S):
                if weights[(*index, t, s)]:
                    context[(*index, t)] += weights[(*index, t, s)] * value[(*index, s)]
    return context


def attention(query, key, value, mask=None, pair_score=scaled_dot, *weights):
    """Context `(..., T, E)` and weights `(..., T, S)`."""
    alignment = softmax(scores(query, key, pair_score, *weights), mask)
    return combine(alignment, value), alignment


def causal(T, S):
    """Mask `(T, S)`; with fewer queries than keys the last query stands at the last key."""
    first = max(S - T, 0)
    return np.array([[s <= t + first for s in range(S)] for t in range(T)], bool).reshape(T, S)


def multi_head_attention(query, value, key, mask, kernels, pair_score=scaled_dot, *weights):
    """Output `(B, T, D)` and weights `(B, N, T, S)`, head by head.

    Args:
        mask: Broadcasts to `(B, N, T, S)`, or `None`.
        kernels: `[kernel, bias]` of query, key, value and output, as `get_weights()` returns them, or with the gate third.
    """
    query_kernel, query_bias, key_kernel, key_bias, *gate, value_kernel, value_bias, output_kernel, output_bias = (
        kernels
    )
    (B, T, _), S, N = query.shape, value.shape[1], query_kernel.shape[1]
    mask = np.broadcast_to(True if mask is None else mask, (B, N, T, S))
    output = np.zeros((B, T, *output_bias.shape)) + output_bias
    alignments = np.zeros((B, N, T, S))
    for n in range(N):
        context, alignments[:, n] = attention(
            query @ query_kernel[:, n] + query_bias[n],
            key @ key_kernel[:, n] + key_bias[n],
            value @ value_kernel[:, n] + value_bias[n],
            mask[:, n],
            pair_score,
            *weights,
        )
        if gate:
            context = context / (1 + np.exp(-(query @ gate[0][:, n] + gate[1][n])))
        output += np.tensordot(context, output_kernel[n], 1)
    return output, alignments
