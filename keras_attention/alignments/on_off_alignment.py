"""Alignments in which each position is attended or not, on or off: any number of them for each query."""

import math

from keras import ops

from keras_attention.alignments.alignment import Alignment
from keras_attention.checks.arguments import check_positive
from keras_attention.ops import LOWEST, at_least_float32, masked_softmax
from keras_attention.ops.divergence import has_no_best, is_diverged, with_nan
from keras_attention.ops.dtypes import at_least


class OnOffAlignment(Alignment):
    """What `Bernoulli` and `LinearChain` share: how probabilities become weights.

    A subclass writes `log_marginals(scores, mask)`, the logarithm of the probability of being on, in float32 or better
    and LOWEST where masked.
    """

    def __init__(self, normalize=None, scale=1.0, **kwargs):
        super().__init__(**kwargs)
        if normalize not in (None, "l1"):
            raise ValueError(
                f'`normalize` must be None, for plain probabilities, or "l1", for weights that sum to `scale`. '
                f"Received: {normalize!r}."
            )
        self.normalize = normalize
        self.scale = check_positive("scale", scale)

    def call(self, scores, mask=None, training=None):
        weights = self.log_marginals(scores, mask)
        if self.normalize is None:
            weights, lost = ops.exp(weights), is_diverged(scores, mask)
        else:  # The softmax of logarithms divides probabilities by their sum, also where all of them round to zero.
            weights, lost = masked_softmax(weights, mask), has_no_best(scores, mask)
        return ops.cast(self.scale * with_nan(weights, lost, mask), scores.dtype)

    def marginals(self, scores, mask=None):
        """The probability `(..., T, S)` that a position is on, neither normalized nor scaled."""
        return self.selected(ops.exp(self.log_marginals(scores, mask)), scores, mask)

    def log_marginals(self, scores, mask=None):
        raise NotImplementedError(f"{type(self).__name__} must define `log_marginals(scores, mask)`.")

    @staticmethod
    def finite(scores):
        """The scores in float32 or better, with LOWEST for -inf, of which differences and products are numbers."""
        return at_least(at_least_float32(scores), LOWEST)

    @staticmethod
    def selected(values, scores, mask):
        """`values (..., T, S)` in the type of the scores, NaN in rows that are diverged."""
        return with_nan(ops.cast(values, scores.dtype), is_diverged(scores, mask), mask)

    @staticmethod
    def of_row(values, scores, mask):
        """`values (..., T)`, one for each query, NaN for rows that are diverged."""
        return ops.where(is_diverged(scores, mask)[..., 0], math.nan, values)

    @staticmethod
    def possible(log_probabilities, selection, mask):
        """`log_probabilities (..., T)`, LOWEST where the selection attends to what may not be attended."""
        if mask is None:
            return log_probabilities
        impossible = ops.logical_and(at_least_float32(selection) > 0.0, ops.logical_not(mask))
        return ops.where(ops.any(impossible, axis=-1), LOWEST, log_probabilities)

    def get_config(self):
        return {**super().get_config(), "normalize": self.normalize, "scale": self.scale}
