"""Scores that are not finite: one rule for softmax and all alignments.

- What stands at a masked position never matters.
- NaN or +inf at a position that may be attended makes the weights of its row NaN: a run that diverges is noticed.
- -inf stands for "never": a weight of zero. Where a query must choose one position and has only -inf to choose from, its row
  is NaN.

A row is what one query attends to. Where one structure spans all queries, everything that depends on the row is NaN too:
in a `DependencyTree` the tree of the whole sentence, in `Monotonic` all later rows.

The same holds for `mode` and `sample`: they have NaN at the allowed positions of such a row. Its log-probability, entropy
and log-partition are NaN. A plain softmax does the same, except on TensorFlow with oneDNN, where NaN stands only at +inf.
"""

import math

from keras import ops

from keras_attention.ops.masks import as_mask


def has_choice(scores, mask=None):
    """Boolean `(..., T, 1)`, broadcastable: whether a query may attend to anything."""
    mask = ops.ones_like(scores[..., :1], "bool") if mask is None else as_mask(mask)
    return ops.any(mask, axis=-1, keepdims=True)


def is_diverged(scores, mask=None):
    """Boolean `(..., T, 1)`: whether NaN or +inf stands at an allowed position of the row."""
    diverged = ops.logical_not(scores < math.inf)  # compared, as XLA's maximum and exponential lose a NaN
    return ops.any(diverged if mask is None else ops.logical_and(diverged, as_mask(mask)), axis=-1, keepdims=True)


def has_no_best(scores, mask=None):
    """Boolean `(..., T, 1)`: whether the row is diverged, or has only -inf to choose from."""
    possible = scores > -math.inf
    possible = ops.any(possible if mask is None else ops.logical_and(possible, mask), axis=-1, keepdims=True)
    only_never = ops.logical_and(has_choice(scores, mask), ops.logical_not(possible))
    return ops.logical_or(is_diverged(scores, mask), only_never)


def with_nan(tensor, where, mask=None):
    """`tensor (..., T, S)` with NaN at the allowed positions of the rows `where (..., T, 1)`."""
    return ops.where(where if mask is None else ops.logical_and(where, mask), math.nan, tensor)
