"""Categorical alignment: each query attends to one position; its marginals are the softmax."""

import math

import keras
from keras import ops

from keras_attention.alignments.alignment import Alignment
from keras_attention.ops import at_least_float32, mask_scores, masked_log_softmax, masked_softmax
from keras_attention.ops.divergence import has_choice, has_no_best, with_nan
from keras_attention.ops.random import with_gumbel_noise


def one_hot_of_maximum(scores, mask=None):
    """Ones `(..., T, S)` at the first maximum of each row among the positions where `mask` is True, else zeros.

    NaN in a row without one. No argmax, which raises on a source of length zero.
    """
    dtype = scores.dtype
    scores = mask_scores(at_least_float32(scores), mask, -math.inf)
    is_maximum = ops.equal(scores, ops.max(scores, axis=-1, keepdims=True, initial=-math.inf))
    is_first = ops.equal(ops.cumsum(ops.cast(is_maximum, "int32"), axis=-1), 1)
    chosen = ops.logical_and(is_maximum, is_first)
    if mask is not None:
        chosen = ops.logical_and(chosen, mask)
    return with_nan(ops.cast(chosen, dtype), has_no_best(scores, mask), mask)


def gumbel_softmax(scores, mask, temperature, seed):
    """`softmax((scores + Gumbel noise) / temperature)` over the positions where `mask` is True.

    Its maximum stands at a sample of `softmax(scores)`; towards temperature 0 it is that sample.
    """
    return ops.cast(masked_softmax(with_gumbel_noise(scores, seed) / temperature, mask), scores.dtype)


def numbered_rows(numbers, scores, mask=None):
    """Selections of one position for each query by their numbers.

    A number is written in digits, one for each query, the base of each being S; the first query's comes last. A query
    with nothing to attend selects nothing: only its digit 0 is possible.

    Args:
        numbers: int32 tensor `(B,)`.
        scores: Float tensor `(B, ..., T, S)` of known sizes, but for the batch.
        mask: Boolean tensor that broadcasts to the scores, or `None`.

    Returns:
        The one-hot rows `(B, ..., T, S)`, whether each of them is possible, boolean `(B, ..., T)`, and how many selections
        there are.
    """
    *queries, S = scores.shape[1:]
    digits = []
    for _ in range(math.prod(queries)):
        digits.append(numbers % S)
        numbers = numbers // S
    chosen = ops.reshape(ops.stack(digits, axis=-1), (-1, *queries))
    rows = ops.one_hot(chosen, S, dtype=scores.dtype)
    may_choose = has_choice(scores, mask)
    possible = ops.logical_or(may_choose[..., 0], ops.equal(chosen, 0))
    return ops.where(may_choose, rows, 0), possible, S ** len(digits)


@keras.saving.register_keras_serializable(package="keras_attention")
class Categorical(Alignment):
    """Each query attends to exactly one position: classic soft attention by its marginals.

    `p(selection = one-hot of s) = softmax(scores[t])[s]`, so the marginals are the softmax itself.

    In the paper the marginals are α_ij.

    Call arguments:
        scores: Float tensor of shape `(..., T, S)`.
        mask: Boolean tensor that broadcasts to the scores, True = may be attended, or `None`.

    Returns:
        Weights of shape `(..., T, S)`; each row sums to one, or is zero where nothing may be attended.

    Example:
        >>> scores = keras.ops.array([[1.0, 2.0, 3.0]])
        >>> mask = keras.ops.array([[True, True, False]])
        >>> Categorical()(scores, mask=mask)
        [[0.2689, 0.7311, 0.0]]
        >>> Categorical().mode(scores, mask)
        [[0.0, 1.0, 0.0]]

    References:
        Bahdanau, Cho and Bengio, 2015, eq. (6), arXiv:1409.0473.
    """

    is_softmax = True
    is_categorical = True

    def marginals(self, scores, mask=None):
        return masked_softmax(scores, mask)

    def mode(self, scores, mask=None):
        """The first maximum, one-hot `(..., T, S)`."""
        return ops.stop_gradient(one_hot_of_maximum(scores, mask))

    def sample(self, scores, mask=None, seed=None):
        """One position for each query, one-hot `(..., T, S)`, by the Gumbel-max trick."""
        return ops.cast(self.mode(with_gumbel_noise(scores, seed), mask), scores.dtype)

    def relaxed_sample(self, scores, mask=None, temperature=1.0, seed=None):
        """A mixture of positions `(..., T, S)` through which a gradient flows; its maximum is a sample."""
        return gumbel_softmax(scores, mask, temperature, seed)

    def numbered(self, numbers, scores, mask=None):
        """The selections of the given numbers, which of their rows are possible, and how many there are."""
        return numbered_rows(numbers, scores, mask)

    def log_prob(self, selection, scores, mask=None):
        """Log-probability of a selection `(..., T, S)` of one-hot rows: `(..., T)`, 0 for an empty row."""
        log_weights = masked_log_softmax(scores, mask)
        return ops.sum(ops.cast(selection, log_weights.dtype) * log_weights, axis=-1)

    def entropy(self, scores, mask=None):
        """Entropy of each row in nats: `(..., T)`."""
        scores = at_least_float32(scores)
        return -ops.sum(masked_softmax(scores, mask) * masked_log_softmax(scores, mask), axis=-1)

    def log_partition(self, scores, mask=None):
        """Logarithm `(..., T)` of the sum of exp(score) over each row, 0 where nothing may be attended."""
        scores, may_choose = at_least_float32(scores), has_choice(scores, mask)
        scores = mask_scores(scores, mask, -math.inf)
        highest = ops.stop_gradient(ops.max(scores, axis=-1, keepdims=True, initial=-math.inf))
        highest = ops.where(may_choose, highest, 0.0)
        total = ops.sum(ops.exp(scores - highest), axis=-1, keepdims=True)
        log_partition = ops.where(may_choose, highest + ops.log(ops.where(may_choose, total, 1.0)), 0.0)
        return ops.where(has_no_best(scores, mask), math.nan, log_partition)[..., 0]
