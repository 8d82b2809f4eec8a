"""The interface of what acts by positions inside attention."""

import keras


class PositionScheme(keras.layers.Layer):
    """Base class of the position schemes.

    Positions are int32 `(B or 1, T)` of the queries and `(B or 1, S)` of the keys. They count the real tokens of each row,
    so that padding does not move them; `MultiHeadAttention` says how to give them by hand. Causality is not theirs: it
    compares slots.

    A subclass writes the hooks that it needs, and `build(query_shape)` for `(B, N, T, H)` where it has weights.

    Methods:
        rotate(tensor, positions): Query or key `(B, N, length, H)` as the score reads it. By default the tensor itself. A
            key is rotated once, before it is stored in a memory.
        bias(query_positions, key_positions): What is added to the scores, `(B or 1, T, S)` or `(B or 1, N, T, S)`, or
            `None`.
        mask(query_positions, key_positions): Boolean `(B or 1, T, S)`, True = may be attended, or `None`.

    Attributes:
        adds_bias: Boolean, whether the scheme has a `bias`. A kernel that cannot add it is then refused.

    Example:
        >>> @keras.saving.register_keras_serializable(package="my_package")
        ... class Distance(PositionScheme):
        ...     def bias(self, query_positions, key_positions):
        ...         distance = query_positions[..., :, None] - key_positions[..., None, :]
        ...         return -keras.ops.cast(keras.ops.abs(distance), "float32")
        >>> attention = MultiHeadAttention(num_heads=2, key_dim=3, position=Distance())
    """

    adds_bias = True

    def __init__(self, **kwargs):
        super().__init__(autocast=False, **kwargs)

    def add_weight(self, *arguments, **options):
        # The hooks run inside the attention, which would cast the weights to half precision under a mixed policy.
        return super().add_weight(*arguments, **{"autocast": False, **options})

    def build(self, query_shape):
        self.built = True

    def rotate(self, tensor, positions):
        return tensor

    def bias(self, query_positions, key_positions):
        return None

    def mask(self, query_positions, key_positions):
        return None
