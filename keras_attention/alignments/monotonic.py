"""Monotonic alignment: the queries, in the order of time, walk along the source and never go back."""

import math

import keras
from keras import ops

from keras_attention.alignments.alignment import Alignment
from keras_attention.ops import LOWEST, at_least_float32, mask_scores
from keras_attention.ops.divergence import has_choice, is_diverged, with_nan
from keras_attention.ops.dtypes import at_least
from keras_attention.ops.random import uniform_like
from keras_attention.ops.recursions import scan
from keras_attention.ops.shapes import check_number, check_seed

# === The walk ===


def skewed(tensor):
    """`(..., T, S)` -> `(..., T, S + T)`: row t, counted from 0, moved right by t + 1 positions, zeros around it."""
    *batch, T, S = ops.shape(tensor)
    left, right = (ops.zeros((*batch, T, width), tensor.dtype) for width in (1, T))
    rows = ops.reshape(ops.concatenate([left, tensor, right], axis=-1), (*batch, T * (S + T + 1)))
    # Read again in rows that are shorter by one: each begins one position later than the row above it.
    return ops.reshape(rows[..., : T * (S + T)], (*batch, T, S + T))


def unskewed(tensor, S):
    """`(..., T, S + T)` -> `(..., T, S)`: row t moved left by t positions and cut off."""
    *batch, T, width = ops.shape(tensor)
    rows = ops.reshape(tensor, (*batch, T * width))
    rows = ops.concatenate([rows, ops.zeros((*batch, T), tensor.dtype)], axis=-1)
    return ops.reshape(rows, (*batch, T, width + 1))[..., :S]


def reach_probabilities(probabilities):
    """Probability `(..., T, S)` that query t comes by position s, which it then attends with `probabilities[t, s]`.

        reached[t, s] = (1 - p[t, s-1]) · reached[t, s-1] + p[t-1, s] · reached[t-1, s],      reached[0, 0] = 1

    The query either passed over the position before, or begins where the previous query stopped. This is eq. (9) of
    the paper with `reached` = α / p, which needs no division: sums of products of numbers in [0, 1], one diagonal
    `t + s` after the other.
    """
    diagonals = ops.moveaxis(skewed(probabilities), -1, 0)  # (S + T, ..., T), in round d the p[t, d - 1 - t]
    *_, T, S = ops.shape(probabilities)

    def step(reached, probabilities):
        stopped = probabilities * reached
        to_next_query = ops.concatenate([ops.zeros_like(stopped[..., :1]), stopped], axis=-1)[..., :T]
        return (1.0 - probabilities) * reached + to_next_query

    is_first = ops.cast(ops.equal(ops.arange(T), 0), probabilities.dtype)
    reached = scan(step, ops.broadcast_to(is_first, ops.shape(diagonals)[1:]), diagonals)
    return unskewed(ops.moveaxis(reached, 0, -1), S)


def is_lost(scores, mask=None):
    """Boolean `(..., T, 1)`: whether the row, or one before it, is diverged, so that nobody knows where the walk goes."""
    return ops.cumsum(ops.cast(is_diverged(scores, mask), "int32"), axis=-2) > 0


def expected_alignment(probabilities, mask=None):
    """Probability `(..., T, S)` that query t attends to position s, given that of attending where it comes by.

    The probabilities must be zero where `mask` is False.
    """
    # A query that may attend to nothing is not there: it stops at once, where the previous one did, and sees nothing.
    stopping = ops.where(has_choice(probabilities, mask), probabilities, 1.0)
    return probabilities * reach_probabilities(stopping)


# === The alignment ===


@keras.saving.register_keras_serializable(package="keras_attention")
class Monotonic(Alignment):
    """The queries, in the order of time, walk along the source: each goes on where the previous one stopped.

        p[t, s]       = sigmoid(scores[t, s] + offset)                       probability of stopping at s
        weights[t, s] = p[t, s] · reached[t, s]
        reached[t, s] = (1 - p[t, s-1]) · reached[t, s-1] + weights[t-1, s]    with reached[0, 0] = 1

    In training the weights are this expectation over all walks, with Gaussian noise on the scores, which drives the
    probabilities towards 0 and 1. At inference there is one walk: each query stops at the first position with
    p ≥ 0.5, from where the previous query stopped. The offset is one learned number, shared by all heads. In the paper
    p is p_ij, the weights are α_ij, the offset r and `scores + offset` the energy e_ij.

    The axis T is time. Query 0 begins at position 0. A query that stops nowhere attends to nothing, nor do those after
    it: a row of weights may sum to less than one. A masked position has p = 0 and is passed over; a query with nothing
    to attend is skipped, and the next one goes on from where the last one stopped. Every call begins at position 0
    again: to decode step by step, mask the positions before the one attended last. With a cache, and so in `Transformer`, it
    is refused.

    Where we differ from the paper: the expectation is computed by its recurrence, in T + S rounds, and not by
    products divided by products, which lose their digits where p is near 0 or 1.

    `marginals` is the expectation without noise, `mode` the walk of inference, `sample` a walk drawn at random. A
    selection is a walk, so `log_prob` and `entropy` have the shape `(...)`; an impossible walk has log-probability LOWEST.

    Args:
        noise: Float of 0 or more, standard deviation of the noise in training.
        initial_offset: Float, the offset before training. The longer the source, the further below 0 it should be:
            -4 lets a walk begin with steps of some fifty positions.
        seed: Integer seed of the noise, or `None`.

    Call arguments:
        scores: Float tensor of shape `(..., T, S)`.
        mask: Boolean tensor that broadcasts to the scores, True = may be attended, or `None`.
        training: Boolean: the expectation with noise, or else the walk of inference.

    Returns:
        Weights of shape `(..., T, S)`; each row sums to one or less.

    Example:
        >>> scores = keras.ops.array([[-1.0, 2.0, -1.0, 2.0], [2.0, -1.0, -1.0, 2.0]])
        >>> Monotonic(initial_offset=0.0)(scores)
        [[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
        >>> keras.ops.sum(Monotonic(initial_offset=0.0, noise=0.0)(scores, training=True), axis=-1)
        [0.9924, 0.9406]

    References:
        Raffel, Luong, Liu, Weiss and Eck, 2017, algorithm 1, eq. (9) to (11) and sections 2.4 to 2.5, arXiv:1704.00784.
    """

    is_stepwise = False

    def __init__(self, noise=1.0, initial_offset=-4.0, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.noise = check_number("noise", noise, "a finite number of 0 or more", lambda value: value >= 0)
        self.initial_offset = check_number("initial_offset", initial_offset, "a finite number")
        self.seed = check_seed(seed)
        self.seed_generator = keras.random.SeedGenerator(self.seed)

    def build(self, scores_shape):
        initializer = keras.initializers.Constant(self.initial_offset)
        self.offset = self.add_weight(shape=(), initializer=initializer, name="offset")
        self.built = True

    def call(self, scores, mask=None, training=None):
        if not training:
            return self.mode(scores, mask)
        energies = at_least_float32(scores)
        noise = keras.random.normal(ops.shape(scores), 0.0, self.noise, dtype="float32", seed=self.seed_generator)
        return ops.cast(self.marginals(energies + ops.cast(noise, energies.dtype), mask), scores.dtype)

    def marginals(self, scores, mask=None):
        """The expectation without noise, `(..., T, S)`."""
        weights = expected_alignment(ops.sigmoid(self._logits(scores, mask)), mask)
        return ops.cast(with_nan(weights, is_lost(scores, mask), mask), scores.dtype)

    def mode(self, scores, mask=None):
        """The walk of inference, `(..., T, S)`: of each step the likelier choice, which need not be the likeliest walk."""
        return self._walk(self._logits(scores, mask) >= 0.0, scores, mask)

    def sample(self, scores, mask=None, seed=None):
        """A walk drawn at random, `(..., T, S)`."""
        probabilities = ops.sigmoid(self._logits(scores, mask))
        return self._walk(uniform_like(probabilities, seed=seed) < probabilities, scores, mask)

    def log_prob(self, selection, scores, mask=None):
        """Log-probability `(...)` of a walk `(..., T, S)`: rows of zeros with at most a single one."""
        logits = self._logits(scores, mask)
        log_prob = walk_log_prob(ops.cast(selection, logits.dtype), logits, has_choice(logits, mask))
        return ops.where(ops.any(is_lost(scores, mask), axis=(-2, -1)), math.nan, log_prob)

    def entropy(self, scores, mask=None):
        """Entropy of the walk in nats, `(...)`: that of stopping or not at each position, times that of coming by."""
        logits = self._logits(scores, mask)
        probabilities = ops.sigmoid(logits)
        reached = reach_probabilities(ops.where(has_choice(logits, mask), probabilities, 1.0))
        entropies = probabilities * ops.softplus(-logits) + (1.0 - probabilities) * ops.softplus(logits)
        entropy = ops.sum(reached * entropies, axis=(-2, -1))
        return ops.where(ops.any(is_lost(scores, mask), axis=(-2, -1)), math.nan, entropy)

    def _logits(self, scores, mask):
        """Scores with the offset, LOWEST where masked, so that the probability there is zero and so is its gradient."""
        if not self.built:
            raise ValueError("A Monotonic alignment must be built. Call it once, or `build(scores.shape)`.")
        scores = at_least(at_least_float32(scores), LOWEST)
        return mask_scores(scores + ops.cast(self.offset, scores.dtype), mask)

    @staticmethod
    def _walk(stops, scores, mask):
        """The walk `(..., T, S)` of which it is settled where a query that comes by stops."""
        stops = ops.stop_gradient(ops.cast(stops, at_least_float32(scores).dtype))
        return ops.cast(with_nan(expected_alignment(stops, mask), is_lost(scores, mask), mask), scores.dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "noise": self.noise,
            "initial_offset": self.initial_offset,
            "seed": self.seed,
        }


def walk_log_prob(selection, logits, may_choose):
    """Log-probability `(...)` of a walk.

    Args:
        selection: Float tensor `(..., T, S)`, one where a query stopped.
        logits: Float tensor `(..., T, S)`, of the probability of stopping.
        may_choose: Boolean `(..., T, 1)`, broadcastable; a query without any choice is not there.
    """

    def over_earlier_queries(tensor):
        return ops.cumsum(tensor, axis=-2) - tensor

    count = ops.sum(selection, axis=-1, keepdims=True)
    until = ops.cumsum(selection, axis=-1)  # whether the query stopped at this position or before
    has_ended = ops.cast(ops.logical_and(may_choose, ops.equal(count, 0.0)), selection.dtype)
    is_over = ops.logical_or(over_earlier_queries(has_ended) > 0.0, over_earlier_queries(count - until) > 0.0)
    passed = ops.logical_and(ops.logical_and(may_choose, ops.equal(until, 0.0)), ops.logical_not(is_over))
    log_probabilities = ops.sum(
        ops.where(passed, -ops.softplus(logits), 0.0) - ops.where(selection > 0.0, ops.softplus(-logits), 0.0),
        axis=(-2, -1),
    )
    impossible = ops.logical_or(ops.logical_and(is_over, selection > 0.0), count > 1.0)
    return ops.where(ops.any(impossible, axis=(-2, -1)), LOWEST, at_least(log_probabilities, LOWEST))
