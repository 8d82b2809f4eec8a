"""Rotary positions: pairs of features of query and key are turned by angles that grow with the position."""

import keras
import numpy as np
from keras import ops

from keras_attention.checks.arguments import check_boolean, check_integer, check_positive, tuple_of_integers
from keras_attention.checks.shapes import check_known_width
from keras_attention.ops.dtypes import float32_or_better
from keras_attention.ops.known_values import known_values
from keras_attention.ops.positions import wave_rates
from keras_attention.positions.position_scheme import PositionScheme


def turned_pairs(tensor, angles, interleaved=False):
    """Pairs of features of `tensor (..., W)`, points in the plane, each turned by one of the `angles (..., W / 2)`.

    `(x, y) -> (x · cos(angle) - y · sin(angle), x · sin(angle) + y · cos(angle))`

    Pair i are the features i and i + W / 2, or 2i and 2i + 1 if they are `interleaved`.
    """
    if interleaved:
        x, y = tensor[..., 0::2], tensor[..., 1::2]
    else:
        x, y = ops.split(tensor, 2, axis=-1)
    cos, sin = ops.cos(angles), ops.sin(angles)
    turned = ops.stack([x * cos - y * sin, x * sin + y * cos], axis=-1 if interleaved else -2)
    return ops.reshape(turned, ops.shape(tensor))


@keras.saving.register_keras_serializable(package="keras_attention")
class Rotary(PositionScheme):
    """Query and key are turned by their positions, so that their dot product depends on the distance alone.

        angle[p, i] = p / scaling_factor / max_wavelength^(2i / W)      for the pair i of W features

    In the paper `angle[p, i]` is m·θ_i, for the position m. Angles and products are float32 or better, the result has the
    type of query and key. A score that is no dot product is given the turned tensors, too.

    Args:
        max_wavelength: Float, the base of the angles.
        rotary_dim: Even integer, number W of features that are turned, the first ones. `None`: all.
        interleaved: Boolean. `False`: pair i are the features i and i + W / 2, as in GPT-NeoX and Llama. `True`: 2i and
            2i + 1, as in the paper and in GPT-J.
        scaling_factor: Float by which positions are divided (Chen et al., 2023).
        grid: Tuple `(height, width)` of an image, whose position p stands in row p // width and column p % width. The
            first half of the pairs is turned by the row, the second by the column, each with the angles of W / 2 features
            (Heo et al., 2024). `None`: one axis.

    Raises:
        ValueError: If the features that are to be turned cannot be divided into pairs for each axis, or a position, as far
            as it is known, lies outside the grid.

    Example:
        >>> query = keras.ops.array([[[[1.0, 0.0]]]])  # (B, N, T, H)
        >>> Rotary().rotate(query, keras.ops.array([[1]]))
        [[[[0.5403, 0.8415]]]]

    References:
        Su et al., 2021, section 3.2, arXiv:2104.09864.
        Chen et al., 2023, section 2.3, arXiv:2306.15595.
        Heo et al., 2024, section 3.1, arXiv:2403.13298.
    """

    adds_bias = False

    def __init__(
        self, max_wavelength=10000.0, rotary_dim=None, interleaved=False, scaling_factor=1.0, grid=None, **kwargs
    ):
        super().__init__(**kwargs)
        self.max_wavelength = check_positive("max_wavelength", max_wavelength)
        if rotary_dim is not None:
            words = "a positive even integer, or `None`"
            rotary_dim = check_integer("rotary_dim", rotary_dim, words, lambda value: value > 0 and value % 2 == 0)
        self.rotary_dim = rotary_dim
        self.interleaved = check_boolean("interleaved", interleaved)
        self.scaling_factor = check_positive("scaling_factor", scaling_factor)
        self.grid = tuple_of_integers("grid", grid, least=1)
        if self.grid is not None and len(self.grid) != 2:
            raise ValueError(f"`grid` must be (height, width), in positions. Received: {grid!r}.")

    def build(self, query_shape):
        self._turned_width(query_shape)
        self.built = True

    def rotate(self, tensor, positions):
        W = self._turned_width(tensor.shape)
        dtype = float32_or_better(tensor.dtype)
        angles = ops.expand_dims(self._angles(positions, W, dtype), -3)  # (B or 1, 1, T, W / 2)
        turned = ops.cast(turned_pairs(ops.cast(tensor[..., :W], dtype), angles, self.interleaved), tensor.dtype)
        return turned if tensor.shape[-1] == W else ops.concatenate([turned, tensor[..., W:]], axis=-1)

    def _angles(self, positions, W, dtype):
        along_axes = self._along_axes(positions)
        rates = wave_rates(W // len(along_axes), self.max_wavelength) / self.scaling_factor
        rates = ops.convert_to_tensor(rates, dtype)
        return ops.concatenate([ops.cast(each, dtype)[..., None] * rates for each in along_axes], axis=-1)

    def _along_axes(self, positions):
        """Positions along each axis: those themselves, or row and column."""
        if self.grid is None:
            return [positions]
        height, width = self.grid
        known = known_values(positions)
        if known is not None and known.size and not 0 <= np.min(known) <= np.max(known) < height * width:
            raise ValueError(
                f"Positions on a grid of {height} rows and {width} columns must be 0 to {height * width - 1}. Received "
                f"positions from {np.min(known)} to {np.max(known)}. Pass the `grid` of the image."
            )
        return [positions // width, positions % width]

    def _turned_width(self, shape):
        """How many features W of query or key `(B, N, length, H)` are turned."""
        check_known_width("query or key", shape)
        H, axes = shape[-1], 1 if self.grid is None else 2
        W = H if self.rotary_dim is None else self.rotary_dim
        if W > H or W % (2 * axes):
            raise ValueError(
                f"Rotary positions turn pairs of features{' for each of two axes' if self.grid else ''}: their number must be "
                f"a multiple of {2 * axes} and at most the width of a head of query and key. Received "
                f"rotary_dim={self.rotary_dim} and a head of {H} features. Pass a `rotary_dim` that fits, or change the width."
            )
        return W

    def get_config(self):
        return {
            **super().get_config(),
            "max_wavelength": self.max_wavelength,
            "rotary_dim": self.rotary_dim,
            "interleaved": self.interleaved,
            "scaling_factor": self.scaling_factor,
            "grid": self.grid,
        }
