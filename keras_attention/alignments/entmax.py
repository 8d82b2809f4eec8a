"""Entmax alignment: between softmax, whose weights are never zero, and sparsemax."""

import keras
from keras import ops

from keras_attention.alignments.sparse_alignment import SparseAlignment
from keras_attention.alignments.sparse_weights import sparse_weights
from keras_attention.alignments.sparsemax import ranked, sparsemax_threshold
from keras_attention.checks.arguments import check_number
from keras_attention.ops.dtypes import at_least

HALVINGS = 50  # of the interval in which τ lies; float32 tells no smaller ones apart


def entmax_15_threshold(scores):
    """The τ `(..., 1)` for which `max(0, scores - τ)²` sums to one; the highest score is 0.

    Over the k highest scores alone it is a root of a quadratic equation, `τ_k = mean - sqrt((1 - k · variance) / k)`;
    the k that counts is the last whose own score lies above its τ_k.
    """
    highest_first, ranks = ranked(scores)
    means = ops.cumsum(highest_first, axis=-1) / ranks
    squares = ops.cumsum(ops.square(highest_first), axis=-1) - ranks * ops.square(means)  # k · variance
    thresholds = means - ops.sqrt(at_least(1.0 - squares, 0.0) / ranks)
    count = ops.sum(ops.cast(thresholds <= highest_first, scores.dtype), axis=-1, keepdims=True)
    threshold = ops.sum(ops.where(ops.equal(ranks, count), thresholds, 0.0), axis=-1, keepdims=True)
    # One step of Newton's method brings back the digits that long sums of squares lose in float32.
    excess = at_least(scores - threshold, 0.0)
    return threshold + (ops.sum(ops.square(excess), axis=-1, keepdims=True) - 1.0) / (
        2.0 * ops.sum(excess, axis=-1, keepdims=True)
    )


def bisected_threshold(scores, alpha):
    """The τ `(..., 1)` for which `max(0, scores - τ) ^ (1 / (α - 1))` sums to one; the highest score is 0."""

    def halved(_, interval):
        low, high = interval
        middle = (low + high) / 2.0
        total = ops.sum(at_least(scores - middle, 0.0) ** (1.0 / (alpha - 1.0)), axis=-1, keepdims=True)
        return ops.where(total >= 1.0, middle, low), ops.where(total >= 1.0, high, middle)

    zeros = ops.zeros_like(ops.sum(scores, axis=-1, keepdims=True))
    low, high = ops.fori_loop(0, HALVINGS, halved, (zeros - 1.0, zeros))
    return (low + high) / 2.0


def entmax(scores, mask=None, alpha=1.5):
    """`max(0, (α - 1) · scores[t, s] - τ[t]) ^ (1 / (α - 1))`, with the τ for which the row sums to one."""
    exact = {1.5: entmax_15_threshold, 2.0: sparsemax_threshold}
    threshold = exact.get(alpha, lambda scores: bisected_threshold(scores, alpha))
    return sparse_weights(scores, mask, alpha, threshold)


@keras.saving.register_keras_serializable(package="keras_attention")
class Entmax(SparseAlignment):
    """Each query attends to exactly one position; those whose scores are far below the best have probability zero.

        weights[t, s] = max(0, (α - 1) · scores[t, s] - τ[t]) ^ (1 / (α - 1))    with the τ for which the row sums to one

    Found exactly by sorting for α = 1.5 and α = 2, which is `Sparsemax`, and by bisection otherwise; the gradient (its
    first derivative) is exact, but for slopes of `weights ^ (2 - α)` above a million, which are cut there. In the paper
    the scores are z and the weights p.

    `mode` is the first maximum, `sample` draws from the weights. A position of weight zero has the log-probability
    LOWEST (-1e30), whose gradient is zero. `AdaptiveEntmax` learns alpha.

    Args:
        alpha: Float above 1. The closer to 1, which would be softmax, the fewer weights are zero.

    Call arguments:
        scores: Float tensor of shape `(..., T, S)`.
        mask: Boolean tensor that broadcasts to the scores, True = may be attended, or `None`.

    Returns:
        Weights of shape `(..., T, S)`; each row sums to one, or is zero where nothing may be attended.

    Raises:
        ValueError: If `alpha` is 1 or less.

    Example:
        >>> Entmax()(keras.ops.array([[1.0, 0.6, -1.0]]))
        [[0.64, 0.36, 0.0]]
        >>> Entmax(alpha=1.25)(keras.ops.array([[1.0, 0.6, -1.0]]))
        [[0.6049, 0.3738, 0.0213]]

    References:
        Peters, Niculae and Martins, 2019, eq. (6), algorithms 1 and 2, proposition 2, arXiv:1905.05702.
    """

    def __init__(self, alpha=1.5, **kwargs):
        super().__init__(**kwargs)
        self.alpha = check_alpha(alpha)

    def marginals(self, scores, mask=None):
        return entmax(scores, mask, self.alpha)

    def get_config(self):
        return {**super().get_config(), "alpha": self.alpha}


def check_alpha(alpha):
    """`alpha` as a float, after checking that it is a number above 1."""
    words = 'a number above 1 (for alpha=1, which is softmax, use "softmax")'
    return check_number("alpha", alpha, words, lambda value: value > 1)
