"""Relative keys and values: a learned vector for each distance, added to key and value."""

import keras
from keras import ops

from keras_attention.checks.arguments import check_boolean, check_positive_integer
from keras_attention.ops.dtypes import float32_or_better
from keras_attention.positions.position_scheme import PositionScheme
from keras_attention.saving.initializers import fresh


def clipped_distances(query_positions, key_positions, max_distance):
    """Row of the tables for each pair `(B or 1, T, S)`: key position minus query position, cut to ± k, plus k."""
    distances = key_positions[..., None, :] - query_positions[..., :, None]
    return ops.clip(distances, -max_distance, max_distance) + max_distance


def places_in_table(rows, sizes, count):
    """Where the row of each pair `(B or 1, T, S)` stands in a flattened table `(B, N, T, count)`: `(B, N, T, S)`."""
    B, N, T = sizes
    return ops.reshape(ops.arange(B * N * T, dtype="int32") * count, (B, N, T, 1)) + rows[:, None]


def taken_by_row(table, rows):
    """The entries of a `table (B, N, T, count)` in the rows `(B or 1, T, S)` of the keys: `(B, N, T, S)`."""
    # `keras.ops.take_along_axis` cannot broadcast to an empty batch in a graph, and `take` forgets an empty shape on JAX.
    *sizes, count = ops.shape(table)
    places = places_in_table(rows, sizes, count)
    return ops.reshape(ops.take(ops.reshape(table, (-1,)), ops.reshape(places, (-1,)), axis=0), ops.shape(places))


def sums_by_row(weights, rows, count):
    """Sums of the `weights (B, N, T, S)` of the keys that share one of `count` rows `(B or 1, T, S)`: `(B, N, T, count)`."""
    B, N, T = sizes = ops.shape(weights)[:3]
    if 0 in weights.shape:  # torch cannot sum nothing
        return ops.zeros((B, N, T, count), weights.dtype)
    places = ops.reshape(places_in_table(rows, sizes, count), (-1,))
    return ops.reshape(ops.segment_sum(ops.reshape(weights, (-1,)), places, B * N * T * count), (B, N, T, count))


@keras.saving.register_keras_serializable(package="keras_attention")
class ShawRelative(PositionScheme):
    """A learned vector for each distance up to k is added to key and value; heads share the vectors.

        distance     = clip(key_position[s] - query_position[t], -k, k)
        scores[t, s] = query[t] · (key[s] + key_embeddings[distance]) / √H
        context[t]   = sum over s of weights[t, s] · (value[s] + value_embeddings[distance])

    In the paper the two vectors are a^K_ij and a^V_ij. No tensor `(T, S, H)` is held: the query is multiplied with each of the
    2k + 1 vectors, and weights are summed by distance before the vectors of the values are read. A score that is no dot product
    gets `query · key_embeddings / √H` added.

    Args:
        max_distance: Integer above 0, the distance k from which on all share a vector.
        use_values: Boolean, whether vectors are added to the values, too.
        value_dim: Integer, width E of the values of a head. `None`: that of query and key.
        embeddings_initializer: Initializer of both tables `(2k + 1, H)` and `(2k + 1, E)`.

    Example:
        >>> attention = MultiHeadAttention(num_heads=2, key_dim=3, position=ShawRelative(max_distance=4))
        >>> attention(keras.ops.ones((2, 5, 7)), keras.ops.ones((2, 5, 7))).shape
        (2, 5, 7)

    References:
        Shaw, Uszkoreit and Vaswani, 2018, sections 3.1 and 3.2, arXiv:1803.02155.
    """

    def __init__(
        self, max_distance=16, use_values=True, value_dim=None, embeddings_initializer="glorot_uniform", **kwargs
    ):
        super().__init__(**kwargs)
        self.max_distance = check_positive_integer("max_distance", max_distance)
        self.use_values = check_boolean("use_values", use_values)
        self.value_dim = None if value_dim is None else check_positive_integer("value_dim", value_dim)
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)

    def build(self, query_shape):
        H = query_shape[-1]
        self.key_embeddings = self._table("key_embeddings", H)
        if self.use_values:
            self.value_embeddings = self._table("value_embeddings", self.value_dim or H)
        self.built = True

    def _table(self, name, width):
        shape = (2 * self.max_distance + 1, width)
        return self.add_weight(name=name, shape=shape, initializer=fresh(self.embeddings_initializer))

    def relative_scores(self, query, query_positions, key_positions):
        dtype = float32_or_better(query.dtype)
        by_row = ops.einsum("bnth,kh->bntk", ops.cast(query, dtype), ops.cast(self.key_embeddings, dtype))
        rows = clipped_distances(query_positions, key_positions, self.max_distance)
        return taken_by_row(by_row, rows)  # (B, N, T, S)

    def relative_context(self, weights, query_positions, key_positions):
        if not self.use_values:
            return None
        dtype = float32_or_better(weights.dtype)
        rows = clipped_distances(query_positions, key_positions, self.max_distance)
        by_row = sums_by_row(ops.cast(weights, dtype), rows, 2 * self.max_distance + 1)
        return ops.einsum("bntk,ke->bnte", by_row, ops.cast(self.value_embeddings, dtype))

    def get_config(self):
        return {
            **super().get_config(),
            "max_distance": self.max_distance,
            "use_values": self.use_values,
            "value_dim": self.value_dim,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
        }
