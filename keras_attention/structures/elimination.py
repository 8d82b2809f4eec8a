"""The elimination of the words of a sentence, one after the other, by which sums over all its dependency trees are taken.

By the matrix-tree theorem the sum over all trees is a determinant. Here it is computed by eliminating one word after
the other, which adds, multiplies and divides but never subtracts, in log space. So it is exact at any score, whereas
determinants and inverses of matrices lose all digits of float32 beyond scores of about ±10.

During the elimination a matrix has the shape `(..., n, 2 + n)`: the row of a word holds the log weights of its possible
heads, LOWEST where there is none. Column 0 is the root, column 1 a root that only a word without any other head may
take, and the columns from 2 on are the words. Column 0 serves where several words may be roots, column 1 where exactly
one must be; the other one is LOWEST. The word to eliminate stands first. Its row and column then move behind the others,
so that after n steps all stand as before.
"""

import math

from keras import ops

from keras_attention.ops.divergence import with_nan
from keras_attention.ops.dtypes import at_least
from keras_attention.ops.recursions import scan
from keras_attention.ops.softmax import LOWEST
from keras_attention.structures.arcs import finite_arcs, has_no_tree, is_root, relative_scores


def eliminated(scores, mask, single_root):
    """The log of the partition function, and what undoes each of the n steps of the elimination.

    Returns:
        log_partition: `(...)`, 0 where no tree is allowed, NaN where the scores are diverged.
        log_heads, parts: `(n, ..., 1, 2 + n)` and `(n, ..., n, 2 + n)`, the outputs of `eliminate_first_word`.
        only_arcs: Function of values `(..., n, n)` that puts zeros, or NaN, where no tree has an arc.
    """
    allowed, is_present = finite_arcs(scores, mask)
    relative, highest = relative_scores(scores, allowed)
    steps = ops.arange(ops.shape(scores)[-1])
    _, (totals, log_heads, parts) = scan(eliminate_first_word, with_root_columns(relative, single_root), steps)
    total, has_tree = log_total(totals, log_heads, is_present)
    log_partition = ops.where(has_tree, total + ops.sum(highest, axis=-1), 0.0)
    lost = has_no_tree(scores, has_tree, mask)

    def only_arcs(values):
        is_arc = ops.logical_and(allowed, has_tree[..., None, None])
        return with_nan(ops.where(is_arc, values, 0.0), lost, mask)

    return ops.where(lost[..., 0, 0], math.nan, log_partition), log_heads, parts, only_arcs


def eliminate_first_word(matrix, _):
    """The matrix after the elimination of its first word, and what is known of that word.

    Returns:
        matrix: `(..., n, 2 + n)`.
        total: `(..., 1, 1)`, log of the weight of all its heads.
        log_heads: `(..., 1, 2 + n)`, log of the distribution over its heads.
        parts: `(..., n, 2 + n)`, the part of each arc after the step that goes by way of the word.
    """
    total, log_heads, inherited = first_word(matrix)
    through = through_first_word(matrix, inherited)
    parts = ops.where(is_possible(through), ops.sigmoid(through - matrix), 0.0)
    highest = ops.stop_gradient(at_least(matrix, through))
    matrix = highest + ops.log(ops.exp(matrix - highest) + ops.exp(through - highest))
    never = ops.full_like(matrix[..., 2:3], LOWEST)
    matrix = ops.concatenate([matrix[..., :2], matrix[..., 3:], never], axis=-1)
    return ops.concatenate([matrix[..., 1:, :], matrix[..., :1, :]], axis=-2), (total, log_heads, parts)


def first_word(matrix):
    """The total and the log of the distribution over the heads of the first word, and the heads that others inherit.

    Words that hang on it inherit its heads. These differ from its own at column 1: once the word has taken the root that is
    only for a word without any other head, the others see an ordinary root.
    """
    row = matrix[..., :1, :]
    column = ops.arange(ops.shape(row)[-1])
    is_second = ops.equal(column, 1)
    others = ops.where(is_second, LOWEST, row)
    total = ops.logsumexp(others, axis=-1, keepdims=True)
    has_others = is_possible(total)
    log_heads = ops.log_softmax(others, axis=-1)
    heads = ops.where(has_others, log_heads, ops.where(is_second, 0.0, LOWEST))
    inherited = ops.where(is_second, row - total, log_heads)
    inherited = ops.where(has_others, inherited, ops.where(ops.equal(column, 0), 0.0, LOWEST))
    return ops.where(has_others, total, row[..., 1:2]), at_least(heads, LOWEST), at_least(inherited, LOWEST)


def through_first_word(matrix, inherited):
    """Log weights `(..., n, 2 + n)` of the ways of other words to each head by way of the first word."""
    n, width = ops.shape(matrix)[-2:]
    word, head = ops.arange(n)[:, None], ops.arange(width) - 2
    is_way = ops.logical_and(word > 0, ops.logical_and(ops.not_equal(head, 0), ops.not_equal(head, word)))
    to_word = ops.sum(matrix[..., 2:3], axis=-1, keepdims=True)  # of one column, or of none where there are no words
    return ops.where(is_way, at_least(to_word + inherited, LOWEST), LOWEST)


def log_total(totals, log_heads, is_present):
    """Log of the sum over all trees, `(...)`, and whether there is a tree."""
    totals, heads = (ops.sum(tensor, axis=-2) for tensor in (totals, log_heads))  # of one row, or of none
    is_present = ops.moveaxis(is_present, -1, 0)
    totals = ops.where(is_present, totals[..., 0], 0.0)
    rootings = ops.sum(ops.cast(ops.logical_and(is_present, ops.equal(heads[..., 1], 0.0)), "int32"), axis=0)
    has_tree = ops.logical_and(ops.all(is_possible(totals), axis=0), rootings <= 1)
    return ops.where(has_tree, ops.sum(totals, axis=0), 0.0), has_tree


def is_possible(log_weights):
    return log_weights > 0.5 * LOWEST


def with_root_columns(scores, single_root):
    """`(..., n, n)` -> the matrix `(..., n, 2 + n)` of the elimination."""
    diagonal = is_root(scores)
    root = ops.sum(ops.where(diagonal, scores, 0.0), axis=-1, keepdims=True)
    never = ops.full_like(root, LOWEST)
    roots = [never, root] if single_root else [root, never]
    return ops.concatenate([*roots, ops.where(diagonal, LOWEST, scores)], axis=-1)
