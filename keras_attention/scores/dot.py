"""Dot product of query and key."""

import keras
from keras import ops

from keras_attention.checks.shapes import check_same_width
from keras_attention.scores.score import Score


def dot_scores(query, key):
    """`scores[t, s] = query[t] · key[s]`, `(..., T, D)`, `(..., S, D)` -> `(..., T, S)`."""
    return ops.einsum("...td,...sd->...ts", query, key)


@keras.saving.register_keras_serializable(package="keras_attention")
class DotScore(Score):
    """Score of query and key by their dot product.

    `scores[t, s] = query[t] · key[s]`

    In the paper `query` is h_t, `key` is h̄_s, and the score is called "dot".

    Call arguments:
        query: Float tensor of shape `(..., T, D)`.
        key: Float tensor of shape `(..., S, D)`.

    Returns:
        Scores of shape `(..., T, S)`, float32 or better.

    Raises:
        ValueError: If the widths of query and key differ.

    Example:
        >>> DotScore()(keras.ops.ones((2, 3, 7)), keras.ops.ones((2, 5, 7))).shape
        (2, 3, 5)

    References:
        Luong, Pham and Manning, 2015, eq. (8), arXiv:1508.04025.
    """

    def build(self, query_shape, key_shape):
        super().build(query_shape, key_shape)
        check_same_width(query_shape, key_shape, type(self).__name__)

    def call(self, query, key):
        return dot_scores(*self.upcast(query, key))

    def factor(self, width):
        return 1.0
