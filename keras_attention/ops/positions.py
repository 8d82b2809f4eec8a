"""Positions: the count of the real tokens of a row, wherever its padding stands, and their sinusoids.

A slot is a place in a tensor; a position is the number of real tokens before one. Causality compares slots; windows,
sinusoids and learned vectors go by positions.
"""

import math

import numpy as np
from keras import ops


def real_positions(mask, axis=-1):
    """Positions `(..., T)`, int32, under `mask (..., T)`: how many real tokens stand before each. A hole counts nothing.

    Along another `axis` than the last they are those of the rows of an image.

    Padding gets the position of the real token before it, or 0, so that every position is one of a real token.

    Example:
        >>> real_positions(ops.array([[True, True, False], [False, True, True], [True, False, True]]))
        [[0, 1, 1], [0, 0, 1], [0, 0, 1]]
    """
    return ops.maximum(ops.cumsum(ops.cast(mask, "int32"), axis=axis) - 1, 0)


def number_of_real(mask, axis=-1):
    """How many tokens `(..., 1)`, int32, of each row of `mask (..., T)` are real."""
    return ops.sum(ops.cast(mask, "int32"), axis=axis, keepdims=True)


# === Real tokens side by side ===


def places_real_first(mask):
    """The slot `(..., T)` of each position once the real ones stand first: `[[False, True, True]]` -> `[[2, 0, 1]]`."""
    real, padding = (ops.cast(each, "int32") for each in (mask, ops.logical_not(mask)))
    after_real = number_of_real(mask) + ops.cumsum(padding, axis=-1) - 1
    return ops.where(mask, ops.cumsum(real, axis=-1) - 1, after_real)


def order_real_first(mask):
    """The slots `(..., T)` in the order real, then padding: `[[False, True, True]]` -> `[[1, 2, 0]]`.

    `reordered` moves the real tokens together by this order, and back by that of `places_real_first`.
    """
    return ops.argsort(places_real_first(mask), axis=-1)


def right_padded(mask):
    """The mask `(..., T)` of rows in that order: `[[False, True, True]]` -> `[[True, True, False]]`."""
    return ops.arange(ops.shape(mask)[-1], dtype="int32") < number_of_real(mask)


def reordered(tensor, order):
    """The slots of `tensor (..., T, D)` in the order `(..., T)`: rows of one table, which are faster than single numbers."""
    *leading, T, D = ops.shape(tensor)
    rows = math.prod(leading)
    slots = ops.reshape(ops.cast(order, "int32"), (rows, T)) + T * ops.arange(rows, dtype="int32")[:, None]
    return ops.reshape(ops.take(ops.reshape(tensor, (rows * T, D)), slots, axis=0), (*leading, T, D))


# === Sinusoids ===


def wave_rates(width, max_wavelength=10000.0):
    """`rates[i] = max_wavelength^(-2i / width)`, one for each two of `width` features, as a NumPy array of float64.

    An error here grows with the position.
    """
    return max_wavelength ** (-2.0 * np.arange((width + 1) // 2) / width)


def sinusoids(positions, width, max_wavelength=10000.0):
    """Sines and cosines of `positions (...)`, interleaved, in float32 `(..., width)`: bfloat16 cannot tell 300 from 301.

    `table[p, 2i] = sin(p / max_wavelength^(2i / width))`, `table[p, 2i + 1] = cos(p / max_wavelength^(2i / width))`

    An odd width ends with a sine.

    Example:
        >>> sinusoids(ops.array([0, 1]), 5)
        [[0.0, 1.0, 0.0, 1.0, 0.0], [0.8415, 0.5403, 0.0251, 0.9997, 0.0006]]
    """
    rates = ops.convert_to_tensor(np.repeat(wave_rates(width, max_wavelength), 2)[:width], "float32")
    angles = ops.expand_dims(ops.cast(positions, "float32"), -1) * rates
    return ops.where(ops.convert_to_tensor(np.arange(width) % 2 == 1), ops.cos(angles), ops.sin(angles))
