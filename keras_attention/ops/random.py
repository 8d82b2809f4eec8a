"""Seeds of sub-layers, and noise by which the largest of several scores becomes a sample."""

import numbers

import keras
import numpy as np
from keras import ops

from keras_attention.ops.softmax import at_least_float32

SMALLEST = 1e-30  # the least of uniform numbers; keeps both logarithms finite


def split_seed(seed, count):
    """`count` independent integer seeds made from one, or as many `None`: two dropouts must not draw the same mask."""
    if seed is None:
        return [None] * count
    if not isinstance(seed, numbers.Integral) or seed < 0:
        raise ValueError(f"`seed` must be an integer of 0 or more, or `None`. Received: {seed!r}.")
    return [int(word) for word in np.random.SeedSequence(seed).generate_state(count) >> 1]


def gumbel_noise(uniform):
    """Noise of the Gumbel distribution from numbers uniform between SMALLEST and 1."""
    return -ops.log(-ops.log(uniform) + SMALLEST)


def with_gumbel_noise(scores, seed=None):
    """Scores in float32 or better plus noise of the Gumbel distribution: their argmax is a sample of `softmax(scores)`."""
    scores = at_least_float32(scores)
    uniform = keras.random.uniform(ops.shape(scores), SMALLEST, 1.0, dtype="float32", seed=seed)
    return scores + ops.cast(gumbel_noise(uniform), scores.dtype)
