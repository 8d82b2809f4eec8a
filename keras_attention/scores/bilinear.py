"""Bilinear form of query and key: Luong's "general" score."""

import keras
from keras import ops

from keras_attention.checks.shapes import check_known_width
from keras_attention.ops.dtypes import times
from keras_attention.scores.dot import dot_scores
from keras_attention.scores.score import Score


def bilinear_scores(query, key, kernel):
    """`scores[t, s] = query[t] · kernel · key[s]`, `(..., T, D_query)`, `(..., S, D_key)` -> `(..., T, S)`."""
    return dot_scores(times(query, kernel), key)


@keras.saving.register_keras_serializable(package="keras_attention")
class BilinearScore(Score):
    """Score of query and key by a learned bilinear form.

    `scores[t, s] = query[t] · kernel · key[s]`

    In the paper `query` is h_t, `key` is h̄_s, `kernel` is W_a, and the score is called "general".

    Args:
        kernel_initializer: Initializer of the kernel `(D_query, D_key)`.

    Call arguments:
        query: Float tensor of shape `(..., T, D_query)`.
        key: Float tensor of shape `(..., S, D_key)`; the two widths may differ.

    Returns:
        Scores of shape `(..., T, S)`, float32 or better.

    Example:
        >>> BilinearScore()(keras.ops.ones((2, 3, 7)), keras.ops.ones((2, 5, 11))).shape
        (2, 3, 5)

    References:
        Luong, Pham and Manning, 2015, eq. (8), arXiv:1508.04025.
    """

    def __init__(self, kernel_initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)

    def build(self, query_shape, key_shape):
        super().build(query_shape, key_shape)
        check_known_width("query", query_shape)
        check_known_width("key", key_shape)
        self.kernel = self.add_weight(
            name="kernel", shape=(query_shape[-1], key_shape[-1]), initializer=self.kernel_initializer
        )

    def call(self, query, key):
        return bilinear_scores(*self.upcast(query, key, self.kernel))

    def prepare(self, key):
        """`key · kernelᵀ`, `(..., S, D_query)`."""
        self.check_built()
        key, kernel = self.upcast(key, self.kernel)
        return times(key, ops.transpose(kernel))

    def compare(self, query, prepared):
        return self.with_activity_loss(dot_scores(*self.upcast(query, prepared)))

    def get_config(self):
        return {**super().get_config(), "kernel_initializer": keras.initializers.serialize(self.kernel_initializer)}
