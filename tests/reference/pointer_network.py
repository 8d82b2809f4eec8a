"""A pointer network with an LSTM encoder in NumPy, one source and one step at a time, straight from the formulas."""

import numpy as np
from reference import attention


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_step(inputs, hidden, cell, kernel, recurrent_kernel, bias):
    input_gate, forget_gate, candidate, output_gate = np.split(inputs @ kernel + hidden @ recurrent_kernel + bias, 4)
    cell = sigmoid(forget_gate) * cell + sigmoid(input_gate) * np.tanh(candidate)
    return sigmoid(output_gate) * np.tanh(cell), cell


def lstm(inputs, *weights):
    """Outputs `(T, U)` of `inputs (T, D)`."""
    hidden = cell = np.zeros(weights[1].shape[0])
    outputs = []
    for each in inputs:
        hidden, cell = lstm_step(each, hidden, cell, *weights)
        outputs.append(hidden)
    return np.stack(outputs)


def pointer_network(points, target, weights, lowest, allowed):
    """Logits `(T, n + 1)`.

    Args:
        points: `(n, F)`, one source without padding.
        target: `(T,)`, the answer shifted right behind a 0.
        weights: Name of a layer -> its weights.
        lowest: The logit of what is not allowed.
        allowed: Function from the positions chosen so far to the ids that may come next.
    """
    kernel, bias = weights["embedding"]
    elements = np.stack([weights["outside"][0], *[point @ kernel + bias for point in points]])
    memory = lstm(elements, *weights["encoder_0"])
    hidden, cell = (
        np.tanh(memory.mean(axis=0) @ kernel + bias)
        for kernel, bias in (weights["initial_state_0"], weights["initial_state_1"])
    )
    logits = np.full((len(target), len(elements)), lowest, "float64")
    for step, index in enumerate(target):
        hidden, cell = lstm_step(elements[index], hidden, cell, *weights["decoder"])
        for choice in allowed([int(each) for each in target[1 : step + 1]]):
            logits[step, choice] = attention.additive(hidden, memory[choice], *weights["pointer"])
    return logits
