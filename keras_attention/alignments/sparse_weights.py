"""Weights of which most are exactly zero: a power of what each score has above a threshold."""

import math

from keras import ops

from keras_attention.ops.divergence import has_no_best, with_nan
from keras_attention.ops.dtypes import at_least
from keras_attention.ops.softmax import at_least_float32, mask_scores

NEGLIGIBLE = 1e-30  # below it a weight is zero: the slope of its logarithm would be no number of float32
STEEPEST = 1e6  # bound of the slopes, which are infinite where a weight starts if alpha > 2


def sparse_weights(scores, mask, alpha, threshold):
    """The distribution `p` over the last axis that maximises `p · scores + entropy(p)`, with Tsallis' α-entropy.

        p[s] = max(0, (α - 1) · scores[s] - τ) ^ (1 / (α - 1))        with the τ for which the sum is one
        dp   = r ⊙ (dscores - sum of r · dscores / sum of r)          with r = p^(2 - α) where p > 0, else 0

    The gradient is the second line, not a derivative of the search for τ: exact, and without NaN where a weight is
    just about to become zero. It has no second derivative.

    Args:
        scores: Float tensor `(..., T, S)`.
        mask: Boolean tensor that broadcasts to `scores`; True = attend. `None` allows everything.
        alpha: Float above 1, or such a tensor without a gradient that broadcasts to `scores`. The closer to 1, the closer to
            softmax; 2 is sparsemax.
        threshold: Function of `(α - 1) · scores`, in [-1, 0] with the maximum 0, that returns τ `(..., T, 1)`.

    Returns:
        Tensor of the shape and type of `scores`, computed in float32 or better. Rows sum to one; a row in which
        nothing may be attended is zero, and so is its gradient.
    """
    raised = mask_scores(at_least_float32(scores), mask, -math.inf)
    fixed = ops.stop_gradient(raised)
    highest = ops.max(fixed, axis=-1, keepdims=True, initial=-math.inf)
    # τ is -1 at the least, when all weight is on the maximum: scores further below have no weight.
    scaled = ops.where(ops.isfinite(highest), at_least((alpha - 1.0) * (fixed - highest), -1.0), 0.0)
    weights = at_least(scaled - threshold(scaled), 0.0) ** (1.0 / (alpha - 1.0))
    support = ops.logical_and(weights > NEGLIGIBLE, ops.isfinite(highest))
    if mask is not None:
        support = ops.logical_and(support, mask)
    weights = sum_to_one(ops.where(support, weights, 0.0))
    slopes = ops.clip(ops.where(support, weights, 1.0) ** (2.0 - alpha), 0.0, STEEPEST)
    slopes = ops.where(support, slopes, 0.0)
    weights = _with_gradient(weights, slopes, ops.where(support, raised - highest, 0.0))
    return ops.cast(with_nan(weights, has_no_best(fixed, mask), mask), scores.dtype)


def sum_to_one(weights):
    """`weights` divided by their sum; rows of zeros stay."""
    total = ops.sum(weights, axis=-1, keepdims=True)
    return weights / ops.where(total > 0.0, total, 1.0)


def _with_gradient(weights, slopes, scores):
    """The value `weights` with the gradient `slopes ⊙ (dscores - mean)`, the mean being weighted by the slopes.

    A linear function of the scores that has this gradient is added and, without it, subtracted.
    """
    mean = ops.sum(sum_to_one(slopes) * scores, axis=-1, keepdims=True)
    linear = slopes * (scores - mean)
    return weights + (linear - ops.stop_gradient(linear))
