"""Scores of one pair of query and key under each position scheme, from the formulas of the papers.

`query` and `key` are the features `(H,)` of head n, of N heads; `p` and `r` are the positions of query and key.
"""

import math

import numpy as np


def turned(features, angles, pairs):
    """Features of which each pair, a complex number, is multiplied by `exp(i · angle)`; the others stay."""
    turned = np.array(features, "float64")
    for angle, (first, second) in zip(angles, pairs, strict=True):
        point = complex(features[first], features[second]) * np.exp(1j * angle)
        turned[first], turned[second] = point.real, point.imag
    return turned


def rotary_angles(position, width, max_wavelength=10000.0, scaling_factor=1.0, columns=None):
    """An angle for each of `width / 2` pairs, on a line or on an image of so many `columns`."""
    places = [position] if columns is None else divmod(position, columns)
    width_of_axis = width // len(places)
    return [
        place / scaling_factor / max_wavelength ** (2 * pair / width_of_axis)
        for place in places
        for pair in range(width_of_axis // 2)
    ]


def slope(n, N):
    """The slope of head n, from 0 on, by the recursion of the published code."""

    def of_power(count):
        first = 2 ** (-(2 ** -(math.log2(count) - 3)))
        return [first * first**index for index in range(count)]

    def of_heads(count):
        if math.log2(count).is_integer():
            return of_power(count)
        closest = 2 ** math.floor(math.log2(count))
        return of_power(closest) + of_heads(2 * closest)[0::2][: count - closest]

    return of_heads(N)[n]


def t5_bucket(distance, num_buckets=32, max_distance=128, bidirectional=True):
    """The bucket of `distance`, key position minus query position."""
    bucket = 0
    if bidirectional:
        num_buckets //= 2
        bucket = num_buckets if distance > 0 else 0
        distance = abs(distance)
    else:
        distance = max(-distance, 0)
    exact = num_buckets // 2
    if distance < exact:
        return bucket + distance
    growing = math.log(distance / exact) / math.log(max_distance / exact) * (num_buckets - exact)
    return bucket + min(exact + int(growing + 1e-9), num_buckets - 1)


def sines_and_cosines(distance, width, max_wavelength=10000.0):
    """The sinusoid of Transformer-XL: sines of `width / 2` angles, then their cosines."""
    angles = [distance / max_wavelength ** (2 * pair / width) for pair in range(width // 2)]
    return np.array([function(angle) for function in (math.sin, math.cos) for angle in angles])
