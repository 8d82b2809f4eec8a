"""Softmax over the last axis under a mask: float32 inside, zeros where nothing may be attended."""

import math

from keras import ops

from keras_attention.ops.dtypes import at_least, float32_or_better
from keras_attention.ops.masks import as_mask

# Stands for "never" in scores, logits and log-probabilities: finite, so that no difference of two is NaN, and so far
# below any real score that its exponential is exactly zero.
LOWEST = -1e30

# The same in logits of a layer that computes in float16: what comes next may be cast to it, where -1e30 would be -inf.
LOWEST_OF_FLOAT16 = -65504.0


def at_least_float32(tensor):
    """`tensor` in float32, or unchanged where it is float64 already."""
    tensor = ops.convert_to_tensor(tensor)  # NumPy's float64 is float32 on JAX, unless it is told otherwise
    return ops.cast(tensor, float32_or_better(tensor.dtype))


def mask_scores(scores, mask=None, lowest=LOWEST):
    """`scores (..., T, S)` with `lowest` wherever `mask` is False. Selected, not added: no sum can overflow."""
    return scores if mask is None else ops.where(as_mask(mask), scores, lowest)


def logits_for(dtype, logits, mask=None):
    """Masked logits that stay numbers in `dtype`, the type in which the next layer may compute.

    For float16 they lie within half of its range, and LOWEST_OF_FLOAT16 takes the place of LOWEST: either way the softmax
    of what is masked is exactly 0, before a cast and after it.
    """
    if dtype != "float16":
        return mask_scores(logits, mask)
    bound = LOWEST_OF_FLOAT16 / 2
    return mask_scores(-at_least(-at_least(logits, bound), bound), mask, LOWEST_OF_FLOAT16)


def is_masked(logits):
    """Where logits say "never", as `mask_scores` and `logits_for` do, or -inf. NaN does not."""
    return ops.logical_or(logits <= LOWEST / 2, ops.equal(logits, LOWEST_OF_FLOAT16))


def softmax(scores):
    """`keras.ops.softmax` over the last axis, for any number of axes: oneDNN in TensorFlow takes no more than five."""
    if len(scores.shape) <= 5:
        return ops.softmax(scores, axis=-1)
    *leading, S = ops.shape(scores)
    rows = ops.reshape(scores, (math.prod(leading), S))
    return ops.reshape(ops.softmax(rows, axis=-1), (*leading, S))


def masked_softmax(scores, mask=None):
    """Softmax over the last axis of the positions where `mask` is True.

    `weights[t, s] = exp(scores[t, s]) / sum over allowed s' of exp(scores[t, s'])`, and 0 where `mask` is False.

    Args:
        scores: Float tensor `(..., T, S)`.
        mask: Boolean tensor that broadcasts to `scores`; True = attend. `None` allows everything.

    Returns:
        Tensor of the shape and type of `scores`, computed in float32 or better. Rows sum to one; a row in which
        nothing may be attended is zero, and so is its gradient. For NaN and inf see `ops/divergence.py`.

    Example:
        >>> masked_softmax(ops.array([[1.0, 2.0, 3.0]]), ops.array([[True, True, False]]))
        [[0.2689, 0.7311, 0.0]]
    """
    weights, mask = at_least_float32(scores), as_mask(mask)
    if scores.shape[-1] == 1:  # Keras warns of a softmax over one position
        weights = ops.where(ops.isfinite(weights), 1.0, ops.cast(math.nan, weights.dtype))
    else:
        weights = softmax(mask_scores(weights, mask, -math.inf))
    if mask is not None:
        weights = ops.where(mask, weights, 0.0)  # a fully masked row becomes zeros, not NaN
    return ops.cast(weights, scores.dtype)


def masked_log_softmax(scores, mask=None):
    """Logarithm of `masked_softmax` in float32 or better, with LOWEST where the probability is zero."""
    log_weights = ops.log_softmax(mask_scores(at_least_float32(scores), mask, -math.inf), axis=-1)
    return mask_scores(at_least(log_weights, LOWEST), mask)
