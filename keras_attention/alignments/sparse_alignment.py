"""Alignments in which each query attends to one position, with weights of which some are exactly zero."""

from keras import ops

from keras_attention.alignments.alignment import Alignment
from keras_attention.alignments.categorical import numbered_rows, one_hot_of_maximum
from keras_attention.ops import LOWEST, at_least_float32
from keras_attention.ops.dtypes import at_least
from keras_attention.ops.random import SMALLEST, uniform_like


def sample_by_weights(weights, seed=None):
    """One position for each query with the probabilities `weights (..., T, S)`, one-hot; an empty row where all are 0.

    An exponential race: each position arrives after an exponential time with its weight as rate, the first is chosen.
    """
    times = at_least(-ops.log(uniform_like(weights, SMALLEST, seed=seed)), SMALLEST)
    return ops.stop_gradient(one_hot_of_maximum(weights / times, ops.not_equal(weights, 0.0)))


class SparseAlignment(Alignment):
    """What `Sparsemax` and `Entmax` share: all but the marginals, which a subclass writes."""

    is_categorical = True

    def mode(self, scores, mask=None):
        """The first maximum, one-hot `(..., T, S)`."""
        return ops.stop_gradient(one_hot_of_maximum(scores, mask))

    def sample(self, scores, mask=None, seed=None):
        """One position for each query, one-hot `(..., T, S)`."""
        weights = self.marginals(at_least_float32(scores), mask)
        return ops.cast(sample_by_weights(weights, seed), scores.dtype)

    def numbered(self, numbers, scores, mask=None):
        """The selections of the given numbers, which of their rows are possible, and how many there are."""
        return numbered_rows(numbers, scores, mask)

    def log_prob(self, selection, scores, mask=None):
        """Log-probability of a selection `(..., T, S)` of one-hot rows: `(..., T)`; LOWEST at a weight of zero.

        0 for an empty row.
        """
        _, log_weights = self._weights(scores, mask)
        return ops.sum(ops.cast(selection, log_weights.dtype) * log_weights, axis=-1)

    def entropy(self, scores, mask=None):
        """Entropy of each row in nats: `(..., T)`."""
        weights, log_weights = self._weights(scores, mask)
        return -ops.sum(weights * log_weights, axis=-1)

    def _weights(self, scores, mask):
        """The marginals and their logarithms, in float32 or better."""
        weights = self.marginals(at_least_float32(scores), mask)
        is_possible = ops.not_equal(weights, 0.0)  # NaN is, and stays
        return weights, ops.where(is_possible, ops.log(ops.where(is_possible, weights, 1.0)), LOWEST)
