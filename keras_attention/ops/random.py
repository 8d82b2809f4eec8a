"""Seeds of sub-layers, and noise that makes the highest of several scores a sample."""

import keras
import numpy as np
from keras import ops

from keras_attention.checks.arguments import check_seed
from keras_attention.ops.softmax import at_least_float32

SMALLEST = 1e-30  # the least of uniform numbers; keeps both logarithms finite


def split_seed(seed, count):
    """`count` independent integer seeds made from one, or as many `None`: two dropouts must not draw the same mask."""
    if check_seed(seed) is None:
        return [None] * count
    return [int(word) for word in np.random.SeedSequence(seed).generate_state(count) >> 1]


def uniform_like(tensor, minval=0.0, seed=None):
    """float32 numbers uniform between `minval` and 1, in the shape and the type of `tensor`; the same in every type."""
    return ops.cast(keras.random.uniform(ops.shape(tensor), minval, 1.0, dtype="float32", seed=seed), tensor.dtype)


def gumbel_noise(uniform):
    """Noise of the Gumbel distribution from numbers uniform between SMALLEST and 1."""
    return -ops.log(-ops.log(uniform) + SMALLEST)


def with_gumbel_noise(scores, seed=None):
    """Scores in float32 or better plus noise of the Gumbel distribution: their argmax is a sample of `softmax(scores)`."""
    scores = at_least_float32(scores)
    return scores + gumbel_noise(uniform_like(scores, SMALLEST, seed=seed))
