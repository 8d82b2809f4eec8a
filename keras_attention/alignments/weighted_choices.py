"""Choices of one position for each query by given weights, of which some may be zero."""

import keras
from keras import ops

from keras_attention.alignments.categorical import one_hot_of_maximum
from keras_attention.ops import LOWEST


def sample_choices(weights, seed=None):
    """One position for each query with the probabilities `weights (..., T, S)`, one-hot; an empty row where all are 0.

    An exponential race: each position arrives after an exponential time with its weight as rate, the first is chosen.
    """
    smallest = 1e-30  # keeps the logarithm finite and the times above zero
    uniform = keras.random.uniform(ops.shape(weights), smallest, 1.0, dtype="float32", seed=seed)
    times = ops.cast(ops.maximum(-ops.log(uniform), smallest), weights.dtype)
    return ops.stop_gradient(one_hot_of_maximum(weights / times, weights > 0.0))


def log_prob_of_choices(selection, weights):
    """Log-probability `(..., T)` of the one-hot rows of `selection`: LOWEST at a weight of zero, 0 for an empty row."""
    return ops.sum(ops.cast(selection, weights.dtype) * _log_weights(weights), axis=-1)


def entropy_of_choices(weights):
    """Entropy of each row in nats: `(..., T)`."""
    return -ops.sum(weights * _log_weights(weights), axis=-1)


def _log_weights(weights):
    possible = weights > 0.0
    return ops.where(possible, ops.log(ops.where(possible, weights, 1.0)), LOWEST)
