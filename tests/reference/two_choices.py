"""The expected loss of a model with two chained hard choices, by enumeration of every choice, and its gradient.

query_1 = question · K_1 + b_1         context_1 = memory[z_1],  z_1 ~ softmax(query_1 · memory)
query_2 = context_1 · K_2 + b_2        context_2 = memory[z_2],  z_2 ~ softmax(query_2 · memory)
tokens  = context_2 · K_3 + b_3        size = context_1 · K_4 + context_2 · K_5 + b_4
"""

import itertools

import numpy as np


def log_softmax(scores, mask):
    scores = np.where(mask, scores, -np.inf)
    return scores - np.log(np.exp(scores - scores.max()).sum()) - scores.max()


def forward(weights, question, memory, mask, choice):
    """One example: `(log p(choice), tokens (T,), size)`."""
    K1, b1, K2, b2, K3, b3, K45, b4 = weights
    first, second = (memory[position] for position in choice)
    log_prob = log_softmax(memory @ (question @ K1 + b1), mask)[choice[0]]
    log_prob += log_softmax(memory @ (first @ K2 + b2), mask)[choice[1]]
    return log_prob, second @ K3 + b3, (np.concatenate([first, second]) @ K45 + b4)[0]


def choices_of(mask):
    return list(itertools.product(np.flatnonzero(mask), repeat=2))


def expected_loss(weights, data, entropy_weight=0.0):
    """As Keras reduces it: tokens are averaged over the real ones, sizes over the examples; size counts half."""
    total = 0.0
    for row, mask in enumerate(data["mask"]):
        for choice in choices_of(mask):
            log_prob, tokens, size = forward(weights, data["question"][row], data["memory"][row], mask, choice)
            bonus = -entropy_weight * log_prob  # its mean over the choices is the entropy
            token_losses = (tokens - data["tokens"][row]) ** 2 - bonus
            shares = data["token_weight"][row] * (data["ids"][row] != 0) / (data["ids"] != 0).sum()
            size_loss = (size - data["size"][row]) ** 2 - bonus
            share = 0.5 * data["size_weight"][row] / len(data["size"])
            total += np.exp(log_prob) * ((shares * token_losses).sum() + share * size_loss)
    return total


def gradient(function, arrays, step=1e-5):
    """Gradients by central differences, in float64."""
    arrays = [array.astype("float64") for array in arrays]
    found = [np.zeros_like(array) for array in arrays]
    for array, slopes in zip(arrays, found, strict=True):
        for index in np.ndindex(array.shape):
            value = array[index]
            ends = []
            for end in (value + step, value - step):
                array[index] = end
                ends.append(function(arrays))
            array[index] = value
            slopes[index] = (ends[0] - ends[1]) / (2 * step)
    return found
