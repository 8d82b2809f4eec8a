"""Attention with linear biases: the further a key is from the query, the lower its score."""

import keras
import numpy as np
from keras import ops

from keras_attention.positions.position_scheme import PositionScheme


def alibi_slopes(num_heads):
    """A slope for each of N heads, `(N,)`: `2^(-8n / N)` for n = 1 to N, where N is a power of two.

    Otherwise those of the largest power of two P below N, then every second of those of 2P heads.

    Example:
        >>> alibi_slopes(3)
        [0.0625, 0.00390625, 0.25]
    """
    power = 2 ** (num_heads.bit_length() - 1)
    slopes, between = (2.0 ** (-8.0 * np.arange(1, count + 1) / count) for count in (power, 2 * power))
    return np.concatenate([slopes, between[::2][: num_heads - power]])


@keras.saving.register_keras_serializable(package="keras_attention")
class ALiBi(PositionScheme):
    """A bias that falls linearly with the distance, in each head with another slope; nothing is learned.

        bias[n, t, s] = -slope[n] · |query_position[t] - key_position[s]|

    It is symmetric; with a causal mask only the keys before the query are left, and it is the bias of the paper. The published
    code adds `slope[n] · s` there, which differs by a number for each query; a softmax does not see the difference, other
    alignments do.

    Example:
        >>> scheme = ALiBi()
        >>> scheme.build((None, 8, 3, 5))  # (B, N, T, H)
        >>> scheme.bias(keras.ops.array([[2]]), keras.ops.array([[0, 1, 2, 3]]))[0, :2]
        [[[-1.0, -0.5, 0.0, -0.5]], [[-0.5, -0.25, 0.0, -0.25]]]

    References:
        Press, Smith and Lewis, 2022, section 3, arXiv:2108.12409.
    """

    def build(self, query_shape):
        self.slopes = alibi_slopes(query_shape[-3])
        self.built = True

    def bias(self, query_positions, key_positions):
        nearness = -ops.abs(query_positions[..., :, None] - key_positions[..., None, :])
        nearness = ops.expand_dims(ops.cast(nearness, "float32"), -3)  # (B or 1, 1, T, S)
        return ops.convert_to_tensor(self.slopes[:, None, None], "float32") * nearness  # (B or 1, N, T, S)
