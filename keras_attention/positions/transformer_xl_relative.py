"""The relative positions of Transformer-XL: a projected sinusoid of the distance, and a bias for content and position."""

import keras
from keras import ops

from keras_attention.checks.arguments import check_integer, check_positive
from keras_attention.ops.dtypes import float32_or_better
from keras_attention.ops.positions import wave_rates
from keras_attention.positions.position_scheme import PositionScheme
from keras_attention.saving.initializers import fresh


def products_with_sinusoids(vectors, query_positions, key_positions, max_wavelength=10000.0):
    """`products[t, s] = vectors[t] · sinusoid(query_position[t] - key_position[s])`, `(B, N, T, W)` -> `(B, N, T, S)`.

    The sinusoid holds the sines of W / 2 angles, then their cosines. As sin(a - b) = sin a · cos b - cos a · sin b and
    cos(a - b) = cos a · cos b + sin a · sin b, each vector, turned by its own position, is multiplied with the sinusoid of the
    key position: no tensor `(T, S, W)` is held.
    """
    rates = ops.convert_to_tensor(wave_rates(vectors.shape[-1], max_wavelength), vectors.dtype)
    angles, key_angles = (
        ops.cast(positions, vectors.dtype)[:, None, :, None] * rates for positions in (query_positions, key_positions)
    )  # (B or 1, 1, length, W / 2)
    of_sine, of_cosine = ops.split(vectors, 2, axis=-1)
    sin, cos = ops.sin(angles), ops.cos(angles)
    turned = ops.concatenate([of_cosine * sin - of_sine * cos, of_sine * sin + of_cosine * cos], axis=-1)
    sinusoids = ops.concatenate([ops.sin(key_angles), ops.cos(key_angles)], axis=-1)  # (B or 1, 1, S, W)
    return ops.einsum("...tw,...sw->...ts", turned, sinusoids)


@keras.saving.register_keras_serializable(package="keras_attention")
class TransformerXLRelative(PositionScheme):
    """The score asks what a key holds, and how far it is away; each question has a bias of its own.

        distance     = query_position[t] - key_position[s]
        relative_key = sinusoid(distance) · position_kernel
        scores[t, s] = ((query[t] + content_bias) · key[s] + (query[t] + position_bias) · relative_key) / √H

    In the paper the biases of a head are u and v, the kernel is W_{k,R} and the sinusoid R_{i-j}: sines, then cosines. A score
    that is no dot product reads `query + content_bias` and gets the second product over √H added.

    Args:
        sinusoid_dim: Even integer, width of the sinusoid. `None`: N·H, the width of the model in the paper, or one more where
            that is odd.
        max_wavelength: Float, the base of the sinusoid's angles.
        kernel_initializer: Initializer of the kernel `(sinusoid_dim, N, H)`.
        bias_initializer: Initializer of both biases `(N, H)`.

    Example:
        >>> attention = MultiHeadAttention(num_heads=2, key_dim=3, position=TransformerXLRelative())
        >>> attention(keras.ops.ones((2, 5, 7)), keras.ops.ones((2, 5, 7))).shape
        (2, 5, 7)

    References:
        Dai et al., 2019, section 3.3 and appendix B, arXiv:1901.02860.
    """

    def __init__(
        self,
        sinusoid_dim=None,
        max_wavelength=10000.0,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        **kwargs,
    ):
        super().__init__(**kwargs)
        if sinusoid_dim is not None:
            words = "a positive even integer, or `None`"
            sinusoid_dim = check_integer(
                "sinusoid_dim", sinusoid_dim, words, lambda value: value > 0 and value % 2 == 0
            )
        self.sinusoid_dim = sinusoid_dim
        self.max_wavelength = check_positive("max_wavelength", max_wavelength)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)

    def build(self, query_shape):
        _, N, _, H = query_shape
        width = self.sinusoid_dim or N * H + N * H % 2
        self.position_kernel = self.add_weight(
            name="position_kernel", shape=(width, N, H), initializer=fresh(self.kernel_initializer)
        )
        self.content_bias, self.position_bias = (
            self.add_weight(name=name, shape=(N, H), initializer=fresh(self.bias_initializer))
            for name in ("content_bias", "position_bias")
        )
        self.built = True

    def rotate_query(self, query, positions):
        return query + ops.cast(self.content_bias, query.dtype)[:, None]

    def relative_scores(self, query, query_positions, key_positions):
        dtype = float32_or_better(query.dtype)
        query = ops.cast(query, dtype) + ops.cast(self.position_bias, dtype)[:, None]
        vectors = ops.einsum("bnth,wnh->bntw", query, ops.cast(self.position_kernel, dtype))
        return products_with_sinusoids(vectors, query_positions, key_positions, self.max_wavelength)

    def get_config(self):
        return {
            **super().get_config(),
            "sinusoid_dim": self.sinusoid_dim,
            "max_wavelength": self.max_wavelength,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
        }
