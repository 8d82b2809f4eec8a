"""Concat score: query and key side by side through one layer."""

import keras

from keras_attention.checks.arguments import check_positive_integer
from keras_attention.checks.shapes import check_known_width
from keras_attention.ops.dtypes import times
from keras_attention.saving.initializers import fresh
from keras_attention.scores.additive import additive_scores, perceptron_scores
from keras_attention.scores.score import Score


def concat_scores(query, key, kernel, vector):
    """`scores[t, s] = vector · tanh([query[t]; key[s]] · kernel)` -> `(..., T, S)`.

    The product of the concatenated pair is the sum of the products of its halves, so that T + S rows are multiplied
    instead of T·S.
    """
    D_query = query.shape[-1]
    return additive_scores(query, key, kernel[:D_query], kernel[D_query:], vector)


@keras.saving.register_keras_serializable(package="keras_attention")
class ConcatScore(Score):
    """Score of query and key, concatenated, by a layer and a vector.

    `scores[t, s] = vector · tanh([query[t]; key[s]] · kernel)`

    In the paper `query` is h_t, `key` is h̄_s, and the weights are W_a and v_a. The function is the one of
    `AdditiveScore` with one kernel `(D_query + D_key, U)` in place of two; only their initial scale differs.

    Args:
        units: Integer, size U of the hidden layer. `None` takes the width of the key.
        kernel_initializer: Initializer of the kernel and of the vector.

    Call arguments:
        query: Float tensor of shape `(..., T, D_query)`.
        key: Float tensor of shape `(..., S, D_key)`; the two widths may differ.

    Returns:
        Scores of shape `(..., T, S)`, float32 or better. Memory grows with T·S·U.

    Example:
        >>> ConcatScore(units=13)(keras.ops.ones((2, 3, 7)), keras.ops.ones((2, 5, 11))).shape
        (2, 3, 5)

    References:
        Luong, Pham and Manning, 2015, eq. (8), arXiv:1508.04025.
    """

    def __init__(self, units=None, kernel_initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        if units is not None:
            units = check_positive_integer("units", units)
        self.units = units
        self.kernel_initializer = keras.initializers.get(kernel_initializer)

    def build(self, query_shape, key_shape):
        super().build(query_shape, key_shape)
        check_known_width("query", query_shape)
        check_known_width("key", key_shape)
        units = self.units or key_shape[-1]
        self.kernel = self.add_weight(
            name="kernel",
            shape=(query_shape[-1] + key_shape[-1], units),
            initializer=fresh(self.kernel_initializer),
        )
        self.vector = self.add_weight(name="vector", shape=(units,), initializer=fresh(self.kernel_initializer))

    def call(self, query, key):
        return concat_scores(*self.upcast(query, key, self.kernel, self.vector))

    def prepare(self, key):
        """`key` times the lower part of the kernel, `(..., S, U)`."""
        self.check_built()
        key, kernel = self.upcast(key, self.kernel)
        return times(key, kernel[-key.shape[-1] :])

    def compare(self, query, prepared):
        query, prepared, kernel, vector = self.upcast(query, prepared, self.kernel, self.vector)
        return self.with_activity_loss(perceptron_scores(query, prepared, kernel[: query.shape[-1]], vector))

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
