"""Key-value memories in NumPy loops, one position and one hop at a time, straight from the papers' formulas."""

import numpy as np
from reference import attention


def memory(query, key, value, mask, hop_kernels, pair_score=attention.dot, *weights):
    """The last query `(..., T, D)` and the weights of the hops, `num_hops` times `(..., T, S)`."""
    alignments = []
    for kernel in hop_kernels:
        context, hop_alignment = attention.attention(query, key, value, mask, pair_score, *weights)
        query = (query + context) @ kernel
        alignments.append(hop_alignment)
    return query, alignments


def window_attention(inputs, mask, window, num_parts, score_weights, context_kernel, state_kernel):
    """Output `(B, T, H)` and weights `(B, T, T)` of an additive key-value(-predict) attention to earlier positions."""
    (B, T, _), H = inputs.shape, context_kernel.shape[0]
    output, weights = np.zeros((B, T, H)), np.zeros((B, T, T))
    for b in range(B):
        parts = np.where(mask[b][:, None], inputs[b], 0.0).reshape(T, num_parts, H)
        key, value, predict = parts[:, 0], parts[:, 1], parts[:, -1]
        for t in range(T):
            allowed = [s for s in range(t) if mask[b, s] and mask[b, t]][-window:]
            scores = {s: attention.additive(key[t], key[s], *score_weights) for s in allowed}
            total = sum(np.exp(score) for score in scores.values())
            context = np.zeros(H)
            for s in allowed:
                weights[b, t, s] = np.exp(scores[s]) / total
                context += weights[b, t, s] * value[s]
            output[b, t] = np.tanh(context @ context_kernel + predict[t] @ state_kernel)
    return output, weights


def at_positions(window_weights, mask):
    """Weights `(B, T, window)` as `(B, T, T)`; what a window holds before the first real position must weigh nothing."""
    B, T, window = window_weights.shape
    weights = np.zeros((B, T, T))
    for b, t, w in np.ndindex(B, T, window):
        before = [s for s in range(t) if mask[b, s]]
        if mask[b, t] and window - w <= len(before):
            weights[b, t, before[w - window]] = window_weights[b, t, w]
        else:
            assert window_weights[b, t, w] == 0.0
    return weights
