"""Sinusoids of positions. Always float32: bfloat16 cannot tell position 300 from 301."""

import numpy as np
from keras import ops


def sinusoids(positions, width, max_wavelength=10000.0):
    """Sines and cosines of `positions (...)`, interleaved, in float32 `(..., width)`.

    `table[p, 2i] = sin(p / max_wavelength^(2i / width))`, `table[p, 2i + 1] = cos(p / max_wavelength^(2i / width))`

    An odd width ends with a sine.

    Example:
        >>> sinusoids(ops.array([0, 1]), 5)
        [[0.0, 1.0, 0.0, 1.0, 0.0], [0.8415, 0.5403, 0.0251, 0.9997, 0.0006]]
    """
    axes = np.arange(width)
    rates = max_wavelength ** (-2.0 * (axes // 2) / width)  # float64: an error here grows with the position
    rates = ops.convert_to_tensor(rates, "float32")
    angles = ops.expand_dims(ops.cast(positions, "float32"), -1) * rates
    return ops.where(ops.convert_to_tensor(axes % 2 == 1), ops.cos(angles), ops.sin(angles))
