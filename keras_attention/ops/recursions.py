"""Recursions over positions, one after the other, with gradients on every backend and under XLA."""

import keras
from keras import ops


def scan(step, initial, inputs):
    """The states after each of L steps: `states[l] = step(states[l - 1], inputs[l])`, beginning with `initial`.

    `keras.ops.scan`, except on TensorFlow, where XLA cannot compile its gradient.

    Args:
        step: Function of a state and of one of the inputs that returns the next state.
        initial: Tensor, the state before the first step.
        inputs: Tensor `(L, ...)`.

    Returns:
        Tensor of shape `(L, ...)`, the dots being the axes of a state.

    Example:
        >>> scan(lambda state, number: state * number, ops.array(1.0), ops.array([2.0, 3.0, 5.0]))
        [2.0, 6.0, 30.0]
    """
    if keras.backend.backend() == "tensorflow":
        return _tensorflow_scan(step, initial, inputs)
    return ops.scan(lambda state, entry: (step(state, entry),) * 2, initial, inputs)[1]


def _tensorflow_scan(step, initial, inputs):
    L = ops.shape(inputs)[0]
    rounds = ops.minimum(L, ops.size(inputs))  # none where a state is empty: there is nothing to scatter

    def body(index, state, states):
        state = step(state, inputs[index])
        # Scattered, because `slice_update` has no gradient.
        return index + 1, state, ops.scatter_update(states, ops.reshape(index, (1, 1)), state[None])

    states = ops.zeros((L, *ops.shape(initial)), initial.dtype)
    # XLA stores what the gradient needs only in loops with a known number of rounds.
    return ops.while_loop(lambda index, *_: index < rounds, body, (0, initial, states), maximum_iterations=rounds)[2]
