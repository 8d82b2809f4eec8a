"""Additive score: a perceptron with one hidden layer over query and key."""

import keras
from keras import ops

from keras_attention.checks.arguments import check_positive_integer
from keras_attention.checks.shapes import check_known_width
from keras_attention.ops.dtypes import times
from keras_attention.saving.initializers import fresh
from keras_attention.scores.score import Score


def additive_scores(query, key, query_kernel, key_kernel, vector):
    """`scores[t, s] = vector · tanh(query[t] · query_kernel + key[s] · key_kernel)` -> `(..., T, S)`."""
    return perceptron_scores(query, times(key, key_kernel), query_kernel, vector)


def perceptron_scores(query, projected, query_kernel, vector):
    """The same for keys that are projected already, `(..., S, U)`."""
    query = times(query, query_kernel)  # (..., T, U)
    hidden = ops.tanh(query[..., :, None, :] + projected[..., None, :, :])  # (..., T, S, U)
    return times(hidden, vector)  # (..., T, S)


@keras.saving.register_keras_serializable(package="keras_attention")
class AdditiveScore(Score):
    """Score of query and key by a perceptron with one hidden layer.

    `scores[t, s] = vector · tanh(query[t] · query_kernel + key[s] · key_kernel)`

    In the paper `query` is s_{i-1}, `key` is h_j, `scores` is e_ij, and the weights are W_a, U_a and v_a.

    Args:
        units: Integer, size U of the hidden layer. `None` takes the width of the key.
        kernel_initializer: Initializer of both kernels and of the vector.

    Call arguments:
        query: Float tensor of shape `(..., T, D_query)`.
        key: Float tensor of shape `(..., S, D_key)`; the two widths may differ.

    Returns:
        Scores of shape `(..., T, S)`, float32 or better. Memory grows with T·S·U.

    Example:
        >>> AdditiveScore(units=13)(keras.ops.ones((2, 3, 7)), keras.ops.ones((2, 5, 11))).shape
        (2, 3, 5)

    References:
        Bahdanau, Cho and Bengio, 2015, section A.1.2, arXiv:1409.0473.
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
        self.query_kernel = self.add_weight(
            name="query_kernel",
            shape=(query_shape[-1], units),
            initializer=fresh(self.kernel_initializer),
        )
        self.key_kernel = self.add_weight(
            name="key_kernel", shape=(key_shape[-1], units), initializer=fresh(self.kernel_initializer)
        )
        self.vector = self.add_weight(name="vector", shape=(units,), initializer=fresh(self.kernel_initializer))

    def call(self, query, key):
        return additive_scores(*self.upcast(query, key, self.query_kernel, self.key_kernel, self.vector))

    def prepare(self, key):
        """`key · key_kernel`, `(..., S, U)`."""
        self.check_built()
        return times(*self.upcast(key, self.key_kernel))

    def compare(self, query, prepared):
        scores = perceptron_scores(*self.upcast(query, prepared, self.query_kernel, self.vector))
        return self.with_activity_loss(scores)

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
