"""Seeds of sub-layers."""

import numpy as np


def split_seed(seed, count):
    """`count` independent integer seeds made from one, or as many `None`: two dropouts must not draw the same mask."""
    if seed is None:
        return [None] * count
    return [int(word) for word in np.random.SeedSequence(seed).generate_state(count) >> 1]
