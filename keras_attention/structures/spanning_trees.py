"""Distributions over the non-projective dependency trees of n words: partition function, marginals, samples.

Each word has one head, another word or the root, and following the heads leads from every word to the root. The weight
of a tree is the exponential of the sum of the scores of its arcs, which `arcs.py` describes.

The sums over all trees come from the elimination of one word after the other, which `elimination.py` describes.
Marginals and samples undo it step by step, from the last word to the first.
"""

from keras import ops

from keras_attention.ops.dtypes import at_least
from keras_attention.ops.random import SMALLEST, gumbel_noise, uniform_like
from keras_attention.ops.recursions import scan
from keras_attention.ops.softmax import LOWEST
from keras_attention.structures.arcs import is_root
from keras_attention.structures.elimination import eliminated


def log_partition(scores, mask=None, *, single_root=True):
    """Log of the sum over all trees, `(...)`; 0 where no tree is allowed."""
    return eliminated(scores, mask, single_root)[0]


def log_partition_and_marginals(scores, mask=None, *, single_root=True):
    """Log of the sum over all trees, and the probability of each arc.

    Args:
        scores: Float tensor `(..., n, n)`.
        mask: Boolean, broadcasts to the scores; True = a tree may have this arc. A word whose row is all False is absent,
            and nothing hangs on it.
        single_root: Whether exactly one word hangs on the root, or at least one.

    Returns:
        `(...)` and `(..., n, n)` in float32 or better; zeros where no tree is allowed, and in rows of absent words. Memory
        grows with n³.

    Example:
        >>> log_partition, marginals = log_partition_and_marginals(ops.zeros((2, 2)))
        >>> ops.exp(log_partition)  # the root may have either word
        2.0
        >>> marginals
        [[0.5, 0.5], [0.5, 0.5]]

    References:
        Koo, Globerson, Carreras and Collins, 2007, section 3, EMNLP-CoNLL.
    """
    log_partition, log_heads, parts, only_arcs = eliminated(scores, mask, single_root)
    steps = ops.flip(ops.exp(log_heads), axis=0), ops.flip(parts, axis=0)
    marginals, _ = scan(marginals_with_first_word, ops.zeros(ops.shape(parts)[1:], parts.dtype), steps)
    return log_partition, only_arcs(without_root_columns(marginals))


def sample_tree(scores, mask=None, *, single_root=True, seed=None):
    """A tree drawn from the distribution, its arcs as ones `(..., n, n)`; zeros where no tree is allowed.

    The elimination is undone with a choice in each step, so one tree costs as much as the marginals.
    """
    _, log_heads, parts, only_arcs = eliminated(scores, mask, single_root)
    uniform = uniform_like(parts, SMALLEST, seed=seed)
    steps = log_heads + gumbel_noise(uniform[..., :1, :]), ops.cast(uniform < parts, parts.dtype)
    *batch, n, width = ops.shape(parts)[1:]
    start = ops.zeros((*batch, n, width), parts.dtype), ops.zeros((*batch, n, n), parts.dtype)
    (heads, _), _ = scan(tree_with_first_word, start, [ops.flip(tensor, axis=0) for tensor in steps])
    return ops.stop_gradient(only_arcs(without_root_columns(heads)))


# === The steps back ===


def marginals_with_first_word(marginals, step):
    """The marginals `(..., n, 2 + n)` of the arcs before a step of the elimination, from those after it.

    Args:
        step: `(..., 1, 2 + n)`, the distribution over the heads of the word, and the parts `(..., n, 2 + n)`.
    """
    heads, parts = step
    marginals = with_last_word_first(marginals)
    by_word = marginals * parts
    is_free = 1.0 - heads[..., 1:2]  # 0 where the word had to take the root
    inherited = is_free * ops.sum(by_word, axis=-2, keepdims=True)
    row = inherited + heads * (1.0 - ops.sum(inherited, axis=-1, keepdims=True))
    column = ops.arange(ops.shape(parts)[-1])
    others = ops.where(ops.equal(column, 2), ops.sum(by_word, axis=-1, keepdims=True), marginals - by_word)
    return with_first_row(row, others), None


def tree_with_first_word(tree, step):
    """The tree before a step of the elimination, from that after it.

    Args:
        tree: The head of each word one-hot, `(..., n, 2 + n)`, and one or zero, its ancestors and itself, `(..., n, n)`.
        step: `(..., 1, 2 + n)`, log-probabilities of the heads of the word, with noise; and `(..., n, 2 + n)`, one for each
            arc that goes by way of the word.
    """
    (heads, ancestors), (log_heads, goes_through) = tree, step
    heads, ancestors = with_last_word_first(heads), with_last_word_first(ancestors, words_from=0)
    *_, n, width = ops.shape(heads)
    column, first = ops.arange(width), ops.cast(ops.equal(ops.arange(n), 0), heads.dtype)
    hangs_on_it = ops.sum(heads * goes_through, axis=-1, keepdims=True)
    # Words below those that hang on it cannot be its head.
    cuts = ops.einsum("...ta,...ao->...to", ancestors, hangs_on_it)  # how many of these are above each word
    below = ops.swapaxes(cuts, -1, -2)  # (..., 1, n)
    roots_and_below = ops.pad(below, [(0, 0)] * (len(below.shape) - 1) + [(2, 0)])
    log_heads = ops.where(roots_and_below > 0.0, LOWEST, log_heads)
    # Better than what is closed, worse than all that is open.
    log_heads = ops.where(ops.equal(column, 1), at_least(log_heads, 0.9 * LOWEST), log_heads)
    head = ops.one_hot(ops.argmax(log_heads, axis=-1), width, dtype=heads.dtype)  # (..., 1, 2 + n)
    heads = ops.where(hangs_on_it > 0.0, ops.cast(ops.equal(column, 2), heads.dtype), heads)
    ancestors = ancestors * ops.cast(ops.equal(cuts, below), heads.dtype)
    above = at_least(ops.einsum("...oa,...ab->...ob", head[..., 2:], ancestors), first)
    ancestors = ops.where(cuts > 0.0, at_least(ancestors, above), ancestors)
    return (with_first_row(head, heads), with_first_row(above, ancestors)), None


def without_root_columns(arcs):
    """`(..., n, 2 + n)`, zero where there is no arc -> `(..., n, n)`."""
    words = arcs[..., 2:]
    return ops.where(is_root(words), arcs[..., :1] + arcs[..., 1:2], words)


def with_last_word_first(tensor, words_from=2):
    """Moves the last row and the last column to where `eliminate_first_word` took them from; words begin at `words_from`."""
    tensor = ops.concatenate([tensor[..., -1:, :], tensor[..., :-1, :]], axis=-2)
    words = tensor[..., words_from:]
    return ops.concatenate([tensor[..., :words_from], words[..., -1:], words[..., :-1]], axis=-1)


def with_first_row(row, others):
    """`others` with another first row."""
    return ops.concatenate([row, others[..., 1:, :]], axis=-2)
