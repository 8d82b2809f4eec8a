"""Distributions over the non-projective dependency trees of n words: partition function, marginals, samples.

Each word has one head, another word or the root, and following the heads leads from every word to the root.
`scores[t, s]` is the score of word s being the head of word t, and `scores[t, t]` that of t hanging on the root itself. A
tree weighs the exponential of the sum of its scores.

By the matrix-tree theorem the sum over all trees is a determinant. It is computed here by eliminating one word after
the other, which adds, multiplies and divides but never subtracts, in log space: it is exact at any score, where the
determinant and the inverse of a matrix lose all digits of float32 beyond scores of some ±10.

In the elimination a matrix has the shape `(..., n, 2 + n)`: the row of a word holds the logarithms of the weights of its
heads. Column 0 is the root, column 1 a root that is taken only where there is nothing else, the columns from 2 on are
the words. Where several words may be roots column 1 is never, where exactly one must be column 0 is. The word to be
eliminated stands first; its row and column then move behind the others, so that after n steps all stand as before.
"""

import math

from keras import ops

from keras_attention.ops.divergence import is_diverged, with_nan
from keras_attention.ops.dtypes import at_least
from keras_attention.ops.masks import as_mask
from keras_attention.ops.random import SMALLEST, gumbel_noise, uniform_like
from keras_attention.ops.recursions import all_states
from keras_attention.ops.softmax import LOWEST, at_least_float32, mask_scores

# Scores of one word differ by no more, so that no sum of them comes near LOWEST, which stands for "never".
WIDEST = 1e25


def is_possible(log_weights):
    return log_weights > 0.5 * LOWEST


def is_root(scores):
    """Boolean `(n, n)`: the diagonal, where a word hangs on the root. No `eye`, which needs a known n."""
    word = ops.arange(ops.shape(scores)[-1])
    return ops.equal(word[:, None], word)


def allowed_arcs(scores, mask=None):
    """The arcs that a tree may have, `(..., n, n)`, and the words that are there, `(..., n)`, both boolean.

    A word whose row of the mask is all False is not there, and nothing hangs on it.
    """
    allowed = ops.broadcast_to(True if mask is None else as_mask(mask), ops.shape(scores))
    is_present = ops.any(allowed, axis=-1)
    return ops.logical_and(allowed, is_present[..., None, :]), is_present


def finite_arcs(scores, mask=None):
    """The same without arcs of -inf, which no tree takes."""
    allowed, is_present = allowed_arcs(scores, mask)
    return ops.logical_and(allowed, scores > -math.inf), is_present


def has_no_tree(scores, has_tree, mask=None):
    """Boolean `(..., 1, 1)`: whether a row is diverged, or no tree is left without an arc of -inf.

    Args:
        has_tree: Boolean `(...)`, whether there is a tree of `finite_arcs`.
    """
    never = ops.logical_and(allowed_arcs(scores, mask)[0], ops.equal(scores, -math.inf))
    only_never = ops.logical_and(ops.any(never, axis=(-2, -1)), ops.logical_not(has_tree))
    diverged = ops.any(is_diverged(scores, allowed_arcs(scores, mask)[0]), axis=(-2, -1))
    return ops.logical_or(diverged, only_never)[..., None, None]


def relative_scores(scores, allowed):
    """Scores `(..., n, n)` below the highest of their row, LOWEST where not allowed, and that highest, `(..., n)`."""
    scores = at_least_float32(scores)
    masked = mask_scores(scores, allowed, -math.inf)
    highest = ops.stop_gradient(ops.max(masked, axis=-1, initial=-math.inf))
    highest = ops.where(ops.isfinite(highest), highest, 0.0)
    return mask_scores(at_least(scores - highest[..., None], -WIDEST), allowed), highest


def with_root_columns(scores, single_root):
    """`(..., n, n)` -> the matrix `(..., n, 2 + n)` of the elimination."""
    diagonal = is_root(scores)
    root = ops.sum(ops.where(diagonal, scores, 0.0), axis=-1, keepdims=True)
    never = ops.full_like(root, LOWEST)
    roots = [never, root] if single_root else [root, never]
    return ops.concatenate([*roots, ops.where(diagonal, LOWEST, scores)], axis=-1)


def without_root_columns(arcs):
    """`(..., n, 2 + n)`, zero where there is no arc -> `(..., n, n)`."""
    words = arcs[..., 2:]
    return ops.where(is_root(words), arcs[..., :1] + arcs[..., 1:2], words)


# === Elimination ===


def first_word(matrix):
    """The log of the weight that the first word has in all, and of the distribution over its heads.

    Returns:
        `(..., 1, 1)` and twice `(..., 1, 2 + n)`: the distribution, and what of it those see who hang on the word. They
        differ at the root that is taken only where there is nothing else.
    """
    row = matrix[..., :1, :]
    column = ops.arange(ops.shape(row)[-1])
    is_second = ops.equal(column, 1)
    others = ops.where(is_second, LOWEST, row)
    total = ops.logsumexp(others, axis=-1, keepdims=True)
    has_others = is_possible(total)
    log_heads = ops.log_softmax(others, axis=-1)
    heads = ops.where(has_others, log_heads, ops.where(is_second, 0.0, LOWEST))
    # Whoever hangs on a word that had to take the root is as good as settled.
    seen = ops.where(is_second, row - total, log_heads)
    seen = ops.where(has_others, seen, ops.where(ops.equal(column, 0), 0.0, LOWEST))
    return ops.where(has_others, total, row[..., 1:2]), at_least(heads, LOWEST), at_least(seen, LOWEST)


def through_first_word(matrix):
    """Log weights `(..., n, 2 + n)` of the ways to each head by way of the first word; LOWEST where there is none."""
    n, width = ops.shape(matrix)[-2:]
    word, head = ops.arange(n)[:, None], ops.arange(width) - 2
    leads_back = ops.logical_or(ops.equal(head, 0), ops.equal(head, word))
    to_word = ops.sum(matrix[..., 2:3], axis=-1, keepdims=True)  # of one column, or of none where there are no words
    return ops.where(leads_back, LOWEST, at_least(to_word + first_word(matrix)[2], LOWEST))


def eliminated(matrix, _=None):
    """The matrix after the elimination of its first word."""
    through = through_first_word(matrix)
    highest = ops.stop_gradient(at_least(matrix, through))
    matrix = highest + ops.log(ops.exp(matrix - highest) + ops.exp(through - highest))
    matrix = ops.concatenate([matrix[..., :2], matrix[..., 3:], ops.full_like(matrix[..., 2:3], LOWEST)], axis=-1)
    return ops.concatenate([matrix[..., 1:, :], matrix[..., :1, :]], axis=-2)


def elimination(matrix):
    """The matrices `(n, ..., n, 2 + n)` before each of the n steps."""
    steps = ops.moveaxis(matrix[..., 0], -1, 0)  # any n entries, empty where the batch is
    return all_states(eliminated, matrix, steps)[:-1]


def all_trees(scores, mask, single_root):
    """The matrices of the elimination, the log of the partition function, and how to say which arcs the trees have.

    Returns:
        `(n, ..., n, 2 + n)`; `(...)`, 0 where no tree is allowed, NaN where the scores are diverged; and a function of
        values `(..., n, n)` that puts zeros, or NaN, where there are no such arcs.
    """
    allowed, is_present = finite_arcs(scores, mask)
    relative, highest = relative_scores(scores, allowed)
    matrices = elimination(with_root_columns(relative, single_root))
    total, has_tree = log_total(matrices, is_present)
    allowed, lost = ops.logical_and(allowed, has_tree[..., None, None]), has_no_tree(scores, has_tree, mask)
    log_partition = ops.where(has_tree, total + ops.sum(highest, axis=-1), 0.0)

    def only_arcs(values):
        return with_nan(ops.where(allowed, values, 0.0), lost, mask)

    return matrices, ops.where(lost[..., 0, 0], math.nan, log_partition), only_arcs


def with_word_first(tensor, words_from=2):
    """Undoes the move of `eliminated`: the last row and the last column come first again, behind `words_from` columns."""
    tensor = ops.concatenate([tensor[..., -1:, :], tensor[..., :-1, :]], axis=-2)
    words = tensor[..., words_from:]
    return ops.concatenate([tensor[..., :words_from], words[..., -1:], words[..., :-1]], axis=-1)


def log_total(matrices, is_present):
    """Log of the sum over all trees, `(...)`, and whether there is a tree; matrices as `elimination` gives them."""
    totals, heads, _ = (ops.sum(tensor, axis=-2) for tensor in first_word(matrices))  # of the one row, or of none
    is_present = ops.moveaxis(is_present, -1, 0)
    totals = ops.where(is_present, totals[..., 0], 0.0)
    rootings = ops.sum(ops.cast(ops.logical_and(is_present, ops.equal(heads[..., 1], 0.0)), "int32"), axis=0)
    has_tree = ops.logical_and(ops.all(is_possible(totals), axis=0), rootings <= 1)
    return ops.where(has_tree, ops.sum(totals, axis=0), 0.0), has_tree


def log_partition(scores, mask=None, *, single_root=True):
    """Log of the sum over all trees, `(...)`; 0 where no tree is allowed."""
    return all_trees(scores, mask, single_root)[1]


def first_row_and_others(row, others):
    return ops.concatenate([row, others[..., 1:, :]], axis=-2)


# === Marginals ===


def marginals_with_first_word(marginals, parts):
    """One step back: the marginals `(..., n, 2 + n)` of the arcs before the elimination of the first word.

    Args:
        marginals: Those after it.
        parts: `(..., n, 2 + n)`, in row 0 the distribution over the heads of the word, below it the part of each arc
            after the elimination that goes by way of the word.
    """
    marginals = with_word_first(marginals)
    heads = parts[..., :1, :]
    by_word = marginals * first_row_and_others(ops.zeros_like(heads), parts)
    is_free = 1.0 - heads[..., 1:2]  # 0 where the word had to take the root
    seen = is_free * ops.sum(by_word, axis=-2, keepdims=True)
    row = seen + heads * (1.0 - ops.sum(seen, axis=-1, keepdims=True))
    column = ops.arange(ops.shape(parts)[-1])
    others = ops.where(ops.equal(column, 2), ops.sum(by_word, axis=-1, keepdims=True), marginals - by_word)
    return first_row_and_others(row, others)


def parts_of(matrices):
    """Log of the distribution over the heads of the first word, and the part of each arc that goes through the word."""
    through = through_first_word(matrices)
    parts = ops.where(is_possible(through), ops.sigmoid(through - matrices), 0.0)
    return first_word(matrices)[1], parts


def log_partition_and_marginals(scores, mask=None, *, single_root=True):
    """Log of the sum over all trees, and the probability of each arc.

    Args:
        scores: Float tensor `(..., n, n)`.
        mask: Boolean, broadcasts to the scores; True = a tree may have this arc. A word whose row is all False is not
            there, and nothing hangs on it.
        single_root: Whether exactly one word hangs on the root, or at least one.

    Returns:
        `(...)` and `(..., n, n)` in float32 or better; zeros where no tree is allowed, and in rows of words that are not
        there. Memory grows with n³.

    Example:
        >>> log_partition, marginals = log_partition_and_marginals(ops.zeros((2, 2)))
        >>> ops.exp(log_partition)  # the root may have either word
        2.0
        >>> marginals
        [[0.5, 0.5], [0.5, 0.5]]

    References:
        Koo, Globerson, Carreras and Collins, 2007, section 3, EMNLP-CoNLL.
    """
    matrices, log_partition, only_arcs = all_trees(scores, mask, single_root)
    log_heads, parts = parts_of(matrices)
    parts = ops.flip(first_row_and_others(ops.exp(log_heads), parts), axis=0)
    marginals = all_states(marginals_with_first_word, ops.zeros(ops.shape(parts)[1:], parts.dtype), parts)[-1]
    return log_partition, only_arcs(without_root_columns(marginals))


# === Samples ===


def tree_with_first_word(tree, draws):
    """One step back: the tree before the elimination of the first word, which hangs on some word of the others.

    Args:
        tree: `(..., n, 2 + n + n)`: the head of each word one-hot, and beside it, one or zero, its ancestors and itself.
        draws: `(..., n, 2 + n)`, in row 0 the log-probabilities of the word's heads with noise, below it one for each arc
            that goes by way of the word.
    """
    n = ops.shape(tree)[-2]
    heads, ancestors = with_word_first(tree[..., : 2 + n]), with_word_first(tree[..., 2 + n :], words_from=0)
    column, is_first = ops.arange(2 + n), ops.equal(ops.arange(n), 0)[:, None]
    hangs_on_it = ops.sum(heads * draws, axis=-1, keepdims=True) * ops.cast(ops.logical_not(is_first), tree.dtype)
    # Cut off whatever goes through the word: what is below must not become its head.
    cuts = ops.einsum("...ta,...ao->...to", ancestors, hangs_on_it)  # how many above each word
    is_below = ops.swapaxes(cuts, -1, -2) > 0.0  # (..., 1, n)
    roots_are_open = ops.ones_like(is_below[..., :1])
    is_open = ops.concatenate([roots_are_open, roots_are_open, ops.logical_not(is_below)], axis=-1)
    log_heads = ops.where(is_open, draws[..., :1, :], LOWEST)
    log_heads = ops.where(ops.equal(column, 1), at_least(log_heads, 0.9 * LOWEST), log_heads)
    head = ops.one_hot(ops.argmax(log_heads, axis=-1), 2 + n, dtype=tree.dtype)  # (..., 1, 2 + n)
    heads = ops.where(hangs_on_it > 0.0, ops.cast(ops.equal(column, 2), tree.dtype), heads)
    ancestors = ancestors * ops.cast(ops.equal(cuts, ops.swapaxes(cuts, -1, -2)), tree.dtype)
    above = ops.einsum("...oa,...ab->...ob", head[..., 2:], ancestors)
    above = at_least(above, ops.cast(ops.equal(ops.arange(n), 0), tree.dtype))
    ancestors = ops.where(cuts > 0.0, at_least(ancestors, above), ancestors)
    heads, ancestors = first_row_and_others(head, heads), first_row_and_others(above, ancestors)
    return ops.concatenate([heads, ancestors], axis=-1)


def sample_tree(scores, mask=None, *, single_root=True, seed=None):
    """A tree drawn from the distribution, its arcs as ones `(..., n, n)`; zeros where no tree is allowed.

    The elimination is undone with a choice in each step, so one tree costs as much as the marginals.
    """
    if scores.shape[-1] == 0:
        return ops.zeros_like(scores)
    matrices, _, only_arcs = all_trees(scores, mask, single_root)
    log_heads, parts = parts_of(matrices)
    uniform = uniform_like(parts, SMALLEST, seed=seed)
    noise = gumbel_noise(uniform[..., :1, :])
    draws = first_row_and_others(log_heads + noise, ops.cast(uniform < parts, parts.dtype))
    *batch, n, width = ops.shape(matrices)[1:]
    tree = all_states(tree_with_first_word, ops.zeros((*batch, n, width + n), draws.dtype), ops.flip(draws, axis=0))[-1]
    return ops.stop_gradient(only_arcs(without_root_columns(tree[..., :width])))
