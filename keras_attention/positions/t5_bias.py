"""The relative bias of T5: a learned number for each head and bucket of distances."""

import keras
import numpy as np
from keras import ops

from keras_attention.checks.arguments import check_boolean, check_integer
from keras_attention.positions.position_scheme import PositionScheme
from keras_attention.saving.lookup import copy_of


def distance_buckets(distances, num_buckets=32, max_distance=128, bidirectional=True):
    """The bucket of each of `distances (...)`, key position minus query position: integers, both as NumPy arrays.

    The first half of the buckets holds one distance each. The others grow with the logarithm of the distance up to
    `max_distance`; the last one holds all that are further. `bidirectional`: keys after the query have buckets of their
    own, the upper half. Otherwise all of them are in bucket 0.

    Example:
        >>> distance_buckets(np.array([-200, -9, -1, 0, 1, 9]))
        [15, 8, 1, 0, 17, 24]
    """
    count = num_buckets // 2 if bidirectional else num_buckets
    far = np.abs(distances) if bidirectional else np.maximum(-distances, 0)
    exact = count // 2
    # In float32, as the published code does, so that rounding puts a distance on a boundary into the same bucket.
    ratio = np.log(np.maximum(far, exact).astype("float32") / np.float32(exact)) / np.float32(
        np.log(max_distance / exact)
    )
    growing = exact + (ratio * np.float32(count - exact)).astype("int64")
    buckets = np.where(far < exact, far, np.minimum(growing, count - 1))
    return buckets + count * (distances > 0) if bidirectional else buckets


@keras.saving.register_keras_serializable(package="keras_attention")
class T5Bias(PositionScheme):
    """A learned bias for each head and distance; the further away, the more distances share one.

        bias[n, t, s] = embeddings[bucket(key_position[s] - query_position[t]), n]

    All attentions of a stack share one table in the paper: pass one `T5Bias` to each of them. T5 does not scale its scores
    by 1/√D, as `score="dot"` does not.

    Args:
        num_buckets: Integer of 4 or more, even, number of buckets; 2 or more where they are not bidirectional.
        max_distance: Integer above the number of buckets that hold one distance, from which on all share the last bucket.
        bidirectional: Boolean. `True` for an encoder. `False` for causal attention: keys after the query share bucket 0.
        embeddings_initializer: Initializer of the table `(num_buckets, N)`.

    Example:
        >>> attention = MultiHeadAttention(num_heads=2, key_dim=3, score="dot", position=T5Bias())
        >>> attention(keras.ops.ones((2, 5, 7)), keras.ops.ones((2, 5, 7))).shape
        (2, 5, 7)

    References:
        Raffel et al., 2020, section 2.1, arXiv:1910.10683.
    """

    shared = True

    def __init__(
        self, num_buckets=32, max_distance=128, bidirectional=True, embeddings_initializer="uniform", **kwargs
    ):
        super().__init__(**kwargs)
        self.bidirectional = check_boolean("bidirectional", bidirectional)
        step = 2 if self.bidirectional else 1
        words = "an even integer of 4 or more" if self.bidirectional else "an integer of 2 or more"
        self.num_buckets = check_integer(
            "num_buckets", num_buckets, words, lambda value: value >= 2 * step and value % step == 0
        )
        exact = self.num_buckets // step // 2
        words = f"an integer above {exact}, the number of buckets that hold one distance each"
        self.max_distance = check_integer("max_distance", max_distance, words, lambda value: value > exact)
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)

    def build(self, query_shape):
        self.embeddings = self.add_weight(
            name="embeddings", shape=(self.num_buckets, query_shape[-3]), initializer=self.embeddings_initializer
        )
        self.built = True

    def bias(self, query_positions, key_positions):
        M = self.max_distance
        buckets = distance_buckets(np.arange(-M, M + 1), self.num_buckets, M, self.bidirectional)
        of_distances = ops.take(ops.transpose(self.embeddings), buckets, axis=1)  # (N, 2M + 1)
        distances = key_positions[..., None, :] - query_positions[..., :, None]
        bias = ops.take(of_distances, ops.clip(distances, -M, M) + M, axis=1)  # (N, B or 1, T, S)
        return ops.moveaxis(bias, 0, -3)

    def causal(self):
        return copy_of(self, bidirectional=False)

    def get_config(self):
        return {
            **super().get_config(),
            "num_buckets": self.num_buckets,
            "max_distance": self.max_distance,
            "bidirectional": self.bidirectional,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
        }
