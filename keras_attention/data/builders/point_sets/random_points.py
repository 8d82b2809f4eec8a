"""Points drawn uniformly, the same on every machine and under every version of NumPy."""

import numpy as np


def random_bits(seed, stream):
    """The source of a split: one of many independent ones of a seed.

    A bit generator, not a `numpy.random.Generator`: only of its bits does NumPy promise that they never change.

    Args:
        seed: Integer from 0 on.
        stream: Integer from 0 on; other streams of a seed have other numbers.
    """
    return np.random.PCG64((seed, stream))


def random_point_sets(bits, count, sizes, coordinates):
    """The next sets of a source.

    `random_bits(0, 0)`, 2, `range(1, 4)`, 2  ->  points of shape `(2, 3, 2)` and the sizes `[3, 1]`: all three points of
    the first set count, and of the second only the first.

    Every set takes the same amount of bits, so that set number i does not depend on how many are drawn at once.

    Args:
        bits: Source that `random_bits` gave; it moves on.
        count: Integer, number of sets.
        sizes: `range` of the numbers of points, each equally likely.
        coordinates: Integer, numbers in a point.

    Returns:
        `(points, lengths)`: float32 multiples of 2^-24 in [0, 1) of shape `(count, max(sizes), coordinates)`, and
        integers of shape `(count,)`.
    """
    largest = max(sizes)
    words = bits.random_raw((count, 1 + largest * coordinates))
    lengths = sizes[0] + sizes.step * ((words[:, 0] >> 32) * len(sizes) >> 32).astype("int64")
    points = (words[:, 1:] >> 40).astype("float32") * np.float32(2**-24)
    return points.reshape(count, largest, coordinates), lengths
