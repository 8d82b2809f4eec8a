"""Gradients of a scalar function on every backend; Keras has no function of its own for them."""

import keras
import numpy as np


def gradient(function, array):
    """Gradient of `function(tensor) -> scalar` at `array`, as a NumPy array."""
    backend = keras.backend.backend()
    tensor = keras.ops.convert_to_tensor(array)
    if backend == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch(tensor)
            result = function(tensor)
        return np.asarray(tape.gradient(result, tensor, unconnected_gradients="zero"))
    if backend == "jax":
        import jax

        def pure(tensor):
            with keras.StatelessScope():  # random numbers drawn inside leave no trace
                return function(tensor)

        return np.asarray(jax.jit(jax.grad(pure))(tensor))  # compiled once, not op by op
    tensor = tensor.detach().requires_grad_(True)
    function(tensor).backward()
    return tensor.grad.detach().cpu().numpy()
