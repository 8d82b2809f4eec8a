"""The arcs of dependency trees: which are allowed, and their scores as the algorithms on trees need them.

`scores[t, s]` is the score of word s being the head of word t, and `scores[t, t]` that of t hanging on the root itself.
"""

import math

from keras import ops

from keras_attention.ops.divergence import is_diverged
from keras_attention.ops.dtypes import at_least
from keras_attention.ops.masks import as_mask
from keras_attention.ops.softmax import at_least_float32, mask_scores

# Scores of one word differ by no more, so that no sum of them comes near LOWEST, which stands for "never".
WIDEST = 1e25


def is_root(scores):
    """Boolean `(n, n)`: the diagonal, where a word hangs on the root. No `eye`, which needs a known n."""
    word = ops.arange(ops.shape(scores)[-1])
    return ops.equal(word[:, None], word)


def allowed_arcs(scores, mask=None):
    """Which arcs the mask allows, `(..., n, n)`, and which words are present, `(..., n)`, both boolean.

    A word whose row of the mask is all False is absent, and nothing hangs on it.
    """
    allowed = ops.broadcast_to(True if mask is None else as_mask(mask), ops.shape(scores))
    is_present = ops.any(allowed, axis=-1)
    return ops.logical_and(allowed, is_present[..., None, :]), is_present


def finite_arcs(scores, mask=None):
    """As `allowed_arcs`, without the arcs of -inf, which no tree takes."""
    allowed, is_present = allowed_arcs(scores, mask)
    return ops.logical_and(allowed, scores > -math.inf), is_present


def has_no_tree(scores, has_tree, mask=None):
    """Boolean `(..., 1, 1)`: whether a row is diverged, or every allowed tree has an arc of -inf.

    Args:
        has_tree: Boolean `(...)`, whether there is a tree of `finite_arcs`.
    """
    allowed, _ = allowed_arcs(scores, mask)
    has_never = ops.any(ops.logical_and(allowed, ops.equal(scores, -math.inf)), axis=(-2, -1))
    diverged = ops.any(is_diverged(scores, allowed), axis=(-2, -1))
    return ops.logical_or(diverged, ops.logical_and(has_never, ops.logical_not(has_tree)))[..., None, None]


def relative_scores(scores, allowed):
    """Scores `(..., n, n)` minus the highest of their row, LOWEST where not allowed; and that highest, `(..., n)`."""
    scores = at_least_float32(scores)
    masked = mask_scores(scores, allowed, -math.inf)
    highest = ops.stop_gradient(ops.max(masked, axis=-1, initial=-math.inf))
    highest = ops.where(ops.isfinite(highest), highest, 0.0)
    return mask_scores(at_least(scores - highest[..., None], -WIDEST), allowed), highest
