"""Dot product of query and key, divided by the root of their width."""

import math

import keras

from keras_attention.checks.shapes import check_known_width, check_same_width
from keras_attention.scores.dot import dot_scores
from keras_attention.scores.score import Score


def scaled_dot_scores(query, key):
    """`scores[t, s] = query[t] · key[s] / √D`, `(..., T, D)`, `(..., S, D)` -> `(..., T, S)`."""
    # The query is scaled, not the scores: T·D products instead of T·S.
    return dot_scores(query * (1.0 / math.sqrt(query.shape[-1])), key)


@keras.saving.register_keras_serializable(package="keras_attention")
class ScaledDotScore(Score):
    """Score of query and key by their dot product over √D.

    `scores[t, s] = query[t] · key[s] / √D`

    In the paper `query` is a row of Q, `key` a row of K, and D is d_k. The root keeps the variance of the scores at
    one when query and key have variance one, whatever D is.

    Call arguments:
        query: Float tensor of shape `(..., T, D)`.
        key: Float tensor of shape `(..., S, D)`.

    Returns:
        Scores of shape `(..., T, S)`, float32 or better.

    Raises:
        ValueError: If the widths of query and key differ or are unknown.

    Example:
        >>> ScaledDotScore()(keras.ops.ones((2, 3, 7)), keras.ops.ones((2, 5, 7))).shape
        (2, 3, 5)

    References:
        Vaswani et al., 2017, eq. (1), arXiv:1706.03762.
    """

    def build(self, query_shape, key_shape):
        super().build(query_shape, key_shape)
        check_known_width("query", query_shape)
        check_same_width(query_shape, key_shape, type(self).__name__)

    def call(self, query, key):
        return scaled_dot_scores(*self.upcast(query, key))

    def factor(self, width):
        return 1.0 / math.sqrt(width)
