"""Arrays in and out of the tests."""

import numpy as np
from keras import ops


def normal(*shape, seed=0):
    """Float32 numbers from a standard normal distribution, always the same for one seed."""
    return np.random.default_rng((seed, *shape)).normal(size=shape).astype("float32")


def to_numpy(nest):
    """A tensor, or a nest of them, as NumPy arrays."""
    if isinstance(nest, dict):
        return {name: to_numpy(tensor) for name, tensor in nest.items()}
    if isinstance(nest, list | tuple):
        return tuple(to_numpy(tensor) for tensor in nest)
    return ops.convert_to_numpy(nest)
