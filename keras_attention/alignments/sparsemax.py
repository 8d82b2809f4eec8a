"""Sparsemax alignment: each query attends to one of a few positions; the weights of the others are exactly zero."""

import keras
from keras import ops

from keras_attention.alignments.sparse_alignment import SparseAlignment
from keras_attention.alignments.sparse_weights import sparse_weights
from keras_attention.ops.dtypes import at_least


def ranked(scores):
    """`scores (..., S)` from the highest to the lowest, and the ranks `1, ..., S`."""
    ranks = ops.arange(1, ops.shape(scores)[-1] + 1)
    return ops.flip(ops.sort(scores, axis=-1), axis=-1), ops.cast(ranks, scores.dtype)


def sparsemax_threshold(scores):
    """The τ `(..., 1)` for which `max(0, scores - τ)` sums to one; the highest score is 0.

    Over the k highest scores alone it is `τ_k = (their sum - 1) / k`, and one score more raises it exactly as long as
    that score lies above it: the highest τ_k is the one.
    """
    highest_first, ranks = ranked(scores)
    thresholds = (ops.cumsum(highest_first, axis=-1) - 1.0) / ranks
    threshold = ops.cast(ops.max(thresholds, axis=-1, keepdims=True, initial=-1.0), scores.dtype)
    # One step of Newton's method brings back the digits that long sums lose in float32, as `entmax_15_threshold` does.
    excess = at_least(scores - threshold, 0.0)
    count = ops.sum(ops.cast(excess > 0.0, scores.dtype), axis=-1, keepdims=True)
    return threshold + (ops.sum(excess, axis=-1, keepdims=True) - 1.0) / count


def sparsemax(scores, mask=None):
    """`max(0, scores[t, s] - τ[t])`, with the τ for which the row sums to one. See `sparse_weights`."""
    return sparse_weights(scores, mask, 2.0, sparsemax_threshold)


@keras.saving.register_keras_serializable(package="keras_attention")
class Sparsemax(SparseAlignment):
    """Each query attends to exactly one position, of which most have probability zero.

        weights[t, s] = max(0, scores[t, s] - τ[t])        with the τ for which the row sums to one

    It is the point of the simplex that is nearest to the scores. Found exactly by sorting, with the exact gradient
    (its first derivative). In the paper the scores are z and the weights p.

    `mode` is the first maximum, `sample` draws from the weights. A position of weight zero has the log-probability
    LOWEST (-1e30), whose gradient is zero.

    Call arguments:
        scores: Float tensor of shape `(..., T, S)`.
        mask: Boolean tensor that broadcasts to the scores, True = may be attended, or `None`.

    Returns:
        Weights of shape `(..., T, S)`; each row sums to one, or is zero where nothing may be attended.

    Example:
        >>> Sparsemax()(keras.ops.array([[1.0, 0.6, -1.0]]))
        [[0.7, 0.3, 0.0]]
        >>> Sparsemax()(keras.ops.array([[1.0, 0.6, -1.0]]), mask=keras.ops.array([[True, False, True]]))
        [[1.0, 0.0, 0.0]]

    References:
        Martins and Astudillo, 2016, algorithm 1 and section 2.5, arXiv:1602.02068.
    """

    def marginals(self, scores, mask=None):
        return sparsemax(scores, mask)
