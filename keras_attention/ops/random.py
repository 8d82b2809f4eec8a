"""Seeds of sub-layers."""

import numbers

import numpy as np


def split_seed(seed, count):
    """`count` independent integer seeds made from one, or as many `None`: two dropouts must not draw the same mask."""
    if seed is None:
        return [None] * count
    if not isinstance(seed, numbers.Integral) or seed < 0:
        raise ValueError(f"`seed` must be an integer of 0 or more, or `None`. Received: {seed!r}.")
    return [int(word) for word in np.random.SeedSequence(seed).generate_state(count) >> 1]
