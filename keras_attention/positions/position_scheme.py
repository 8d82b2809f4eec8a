"""The interface of what acts by positions inside attention."""

import keras

from keras_attention.saving.lookup import config_of, config_of_shared


class PositionScheme(keras.layers.Layer):
    """Base class of the position schemes.

    Positions are int32 `(B or 1, T)` of the queries and `(B or 1, S)` of the keys. They count the real tokens of each row,
    so that padding does not move them; `MultiHeadAttention` says how to give them by hand. Causality is not theirs: it
    compares slots.

    A subclass writes the hooks that it needs, and `build(query_shape)` for `(B, N, T, H)` where it has weights. Attention
    with one head has N = 1.

    Methods:
        rotate(tensor, positions): Query or key `(B, N, length, H)` as the score reads it. By default the tensor itself. A
            key is rotated once, before it is stored in a memory.
        rotate_query(query, positions): The query, where it is treated in another way than the key. By default `rotate`.
        bias(query_positions, key_positions): What is added to the scores, `(B or 1, T, S)` or `(B or 1, N, T, S)`, or
            `None`.
        relative_scores(query, query_positions, key_positions): Products `(B, N, T, S)` of the query, as it was before any
            rotation, with vectors that stand for relative positions, or `None`. They get the factor of the score, such as
            1/√H, and are added to it; a score that is no dot product has no factor, and 1/√H is taken.
        relative_context(weights, query_positions, key_positions): What the weights `(B, N, T, S)` read beside the values,
            `(B, N, T, E)`, or `None`. It is added to the context.
        mask(query_positions, key_positions): Boolean `(B or 1, T, S)`, True = may be attended, or `None`.
        causal(): The scheme for queries that see no later keys, as in the decoder of a `Transformer`. By default itself.

    Attributes:
        adds_bias: Boolean, whether the scheme adds anything to scores or context. A kernel that cannot do so is refused.
        shared: Boolean, whether one object may belong to several attentions with the same number of heads, and belongs to all
            blocks of a stack in a `Transformer`. By default each attention needs an object of its own.

    Example:
        >>> @keras.saving.register_keras_serializable(package="my_package")
        ... class Distance(PositionScheme):
        ...     def bias(self, query_positions, key_positions):
        ...         distance = query_positions[..., :, None] - key_positions[..., None, :]
        ...         return -keras.ops.cast(keras.ops.abs(distance), "float32")
        >>> attention = MultiHeadAttention(num_heads=2, key_dim=3, position=Distance())
    """

    adds_bias = True
    shared = False

    def __init__(self, **kwargs):
        super().__init__(autocast=False, **kwargs)

    def add_weight(self, *arguments, **options):
        # The hooks run inside the attention, which would cast the weights to half precision under a mixed policy.
        return super().add_weight(*arguments, **{"autocast": False, **options})

    def build(self, query_shape):
        self.built = True

    def rotate(self, tensor, positions):
        return tensor

    def rotate_query(self, query, positions):
        return self.rotate(query, positions)

    def bias(self, query_positions, key_positions):
        return None

    def relative_scores(self, query, query_positions, key_positions):
        return None

    def relative_context(self, weights, query_positions, key_positions):
        return None

    def mask(self, query_positions, key_positions):
        return None

    def causal(self):
        return self


def config_of_scheme(scheme):
    """The config of a position scheme, which in a file says which attentions share it; `None` stays."""
    if scheme is None:
        return None
    return config_of_shared(scheme) if scheme.shared else config_of(scheme)
