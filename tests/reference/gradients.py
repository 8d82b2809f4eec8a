"""Gradients of a scalar function on every backend; Keras has no function of its own for them."""

import functools

import keras
import numpy as np


def gradient(function, array, *others):
    """Gradient of `function(tensor, *others) -> scalar` at `array`, as a NumPy array."""
    backend = keras.backend.backend()
    tensor = keras.ops.convert_to_tensor(array)
    if backend == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch(tensor)
            result = function(tensor, *others)
        return np.asarray(tape.gradient(result, tensor, unconnected_gradients="zero"))
    if backend == "jax":
        return np.asarray(compiled_gradient(function)(tensor, *others))
    tensor = tensor.detach().requires_grad_(True)
    function(tensor, *others).backward()
    return tensor.grad.detach().cpu().numpy()


@functools.lru_cache(maxsize=32)
def compiled_gradient(function):
    """On JAX: compiled once for each shape, not op by op. What `function` closes over must stay as it is."""
    import jax

    def pure(*tensors):
        with keras.StatelessScope():  # random numbers drawn inside leave no trace
            return function(*tensors)

    return jax.jit(jax.grad(pure))
