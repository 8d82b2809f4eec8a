"""Recursions over positions, one after the other, with gradients on every backend and under XLA."""

import keras
from keras import ops


def scan(step, initial, inputs):
    """The states after each of L steps: `states[l] = step(states[l - 1], inputs[l])`, beginning with `initial`.

    `keras.ops.scan`, except on TensorFlow, where XLA cannot compile its gradient. Work, that of gradients too, grows with L.

    Args:
        step: Function of a state and of one of the inputs that returns the next state, of the same shape and type.
        initial: Tensor, the state before the first step.
        inputs: Tensor `(L, ...)`.

    Returns:
        Tensor of shape `(L, ...)`, the dots being the axes of a state.

    Example:
        >>> scan(lambda state, number: state * number, ops.array(1.0), ops.array([2.0, 3.0, 5.0]))
        [2.0, 6.0, 30.0]
    """
    if keras.backend.backend() == "tensorflow":
        from keras_attention.ops.tensorflow_scan import tensorflow_scan

        return tensorflow_scan(step, initial, inputs)
    return portable_scan(step, initial, inputs)


def portable_scan(step, initial, inputs):
    if 0 in (inputs.shape[0], *initial.shape):  # few functions take nothing at all, nor does `ops.scan` on torch
        return ops.zeros((ops.shape(inputs)[0], *ops.shape(initial)), initial.dtype)
    return ops.scan(lambda state, entry: (step(state, entry),) * 2, initial, inputs)[1]


def all_states(step, initial, inputs):
    """The states `(1 + L, ...)` before and after each of L steps; arguments as those of `scan`."""
    return ops.concatenate([initial[None], scan(step, initial, inputs)], axis=0)
