"""Adaptive entmax alignment: how sparse the weights are is learned."""

import math

import keras
from keras import ops

from keras_attention.alignments.entmax import bisected_threshold
from keras_attention.alignments.heads import shape_by_head
from keras_attention.alignments.sparse_alignment import SparseAlignment
from keras_attention.alignments.sparse_weights import sparse_weights, sum_to_one
from keras_attention.checks.arguments import check_number, check_positive_integer
from keras_attention.ops import at_least_float32

LEAST = 1.01  # closer to 1 float32 has no digits left for the derivative by alpha


def adaptive_entmax(scores, mask, alpha):
    """`entmax` with a gradient by `alpha` too, a tensor between 1 and 2 that broadcasts to the scores.

    `dp / dα = (p - r) / (α - 1)² + (h - r · sum of h) / (α - 1)`    with r = p^(2 - α) / its sum, h = -p · log(p)
    """
    scores, dtype = at_least_float32(scores), scores.dtype
    alpha = ops.cast(alpha, scores.dtype)
    fixed = ops.stop_gradient(alpha)
    weights = sparse_weights(scores, mask, fixed, lambda scores: bisected_threshold(scores, fixed))
    slopes = slopes_by_alpha(ops.stop_gradient(weights), fixed - 1.0)
    return ops.cast(weights + slopes * (alpha - fixed), dtype)


def slopes_by_alpha(weights, excess):
    """Derivatives `(..., T, S)` of the weights by alpha, `excess` being `alpha - 1`; zero where a weight is."""
    support = weights > 0.0
    safe = ops.where(support, weights, 1.0)
    shares = sum_to_one(ops.where(support, safe ** (1.0 - excess), 0.0))
    entropies = -safe * ops.log(safe)
    total = ops.sum(entropies, axis=-1, keepdims=True)
    slopes = (safe - shares) / ops.square(excess) + (entropies - shares * total) / excess
    return ops.where(support, slopes, 0.0)


@keras.saving.register_keras_serializable(package="keras_attention")
class AdaptiveEntmax(SparseAlignment):
    """`Entmax` whose alpha is learned: between softmax, with which all weights count, and sparsemax, with which few do.

        weights[t, s] = max(0, (α - 1) · scores[t, s] - τ[t]) ^ (1 / (α - 1))    with the τ for which the row sums to one
        α             = 1.01 + 0.99 · sigmoid(a)

    The gradients by the scores and by `a` (first derivatives) are exact. Where we differ from the paper: there α comes as
    near to 1 as it likes, where float32 loses the digits of the gradient.

    Args:
        initial_alpha: Float between 1.01 and 2, alpha before training.
        num_heads: Integer N, for scores `(..., N, T, S)` with an alpha for each head, as in the paper. `None`: one alpha.

    Call arguments:
        scores: Float tensor of shape `(..., T, S)`.
        mask: Boolean tensor that broadcasts to the scores, True = may be attended, or `None`.

    Returns:
        Weights of shape `(..., T, S)`; each row sums to one, or is zero where nothing may be attended.

    Raises:
        ValueError: If `initial_alpha` is not between 1.01 and 2, or `num_heads` is not the number of heads.

    Example:
        >>> AdaptiveEntmax()(keras.ops.array([[1.0, 0.6, -1.0]]))
        [[0.64, 0.36, 0.0]]
        >>> keras.ops.shape(AdaptiveEntmax(num_heads=3)(keras.ops.ones((2, 3, 5, 7))))
        (2, 3, 5, 7)

    References:
        Correia, Niculae and Martins, 2019, section 3 and proposition 1, arXiv:1909.00015.
    """

    def __init__(self, initial_alpha=1.5, num_heads=None, **kwargs):
        super().__init__(**kwargs)
        words = f"a number between {LEAST} and 2"
        self.initial_alpha = check_number("initial_alpha", initial_alpha, words, lambda value: LEAST < value < 2)
        self.num_heads = None if num_heads is None else check_positive_integer("num_heads", num_heads)

    def build(self, scores_shape):
        share = (self.initial_alpha - LEAST) / (2.0 - LEAST)
        self.logit = self.add_weight(
            shape=shape_by_head(self, scores_shape),
            initializer=keras.initializers.Constant(math.log(share / (1.0 - share))),
            name="logit",
        )
        self.built = True

    @property
    def alpha(self):
        """Alpha now, `()` or `(N, 1, 1)`."""
        if not self.built:
            raise ValueError("An AdaptiveEntmax alignment must be built. Call it once, or `build(scores.shape)`.")
        return LEAST + (2.0 - LEAST) * ops.sigmoid(self.logit)

    def marginals(self, scores, mask=None):
        return adaptive_entmax(scores, mask, self.alpha)

    def get_config(self):
        return {**super().get_config(), "initial_alpha": self.initial_alpha, "num_heads": self.num_heads}
