"""Monotonic alignment: the queries, in the order of time, walk along the source and never go back."""

import math

import keras
from keras import ops

from keras_attention.alignments.alignment import Alignment
from keras_attention.checks.arguments import check_number, check_seed
from keras_attention.ops import LOWEST, at_least_float32, mask_scores
from keras_attention.ops.divergence import has_choice, is_diverged, with_nan
from keras_attention.ops.dtypes import as_floats, at_least, float32_or_better
from keras_attention.ops.random import uniform_like
from keras_attention.ops.recursions import scan

# === The walk ===


def skewed(tensor):
    """`(..., T, S)` -> `(..., T, S + T)`: row t, counted from 0, moved right by t positions, zeros around it."""
    *batch, T, S = ops.shape(tensor)
    rows = ops.concatenate([tensor, ops.zeros((*batch, T, T + 1), tensor.dtype)], axis=-1)
    # Read again in rows that are shorter by one: each begins one position later than the row above it.
    rows = ops.reshape(rows, (*batch, T * (S + T + 1)))
    return ops.reshape(rows[..., : T * (S + T)], (*batch, T, S + T))


def unskewed(tensor, S):
    """`(..., T, S + T)` -> `(..., T, S)`: row t moved left by t positions and cut off."""
    *batch, T, width = ops.shape(tensor)
    rows = ops.reshape(tensor, (*batch, T * width))
    rows = ops.concatenate([rows, ops.zeros((*batch, T), tensor.dtype)], axis=-1)
    return ops.reshape(rows, (*batch, T, width + 1))[..., :S]


def reach_probabilities(probabilities, start):
    """Probability `(..., T, S)` that query t comes by position s, which it then attends with `probabilities[t, s]`.

        reached[t, s] = (1 - p[t, s-1]) · reached[t, s-1] + p[t-1, s] · reached[t-1, s]       with start[s] for t = 0

    The query either passed over the position before, or begins where the previous query stopped, the first one at
    `start (..., S)`. This is eq. (9) of the paper with `reached` = α / p, which needs no division: sums of products of
    numbers in [0, 1], one diagonal `t + s` after the other.
    """
    *batch, T, S = ops.shape(probabilities)
    starts = ops.concatenate([start, ops.zeros((*batch, T), start.dtype)], axis=-1)[..., None, :]

    def step(state, diagonal):
        passed, stopped = state  # by way of the diagonal before
        start, probabilities = diagonal
        reached = passed + ops.concatenate([start, stopped], axis=-1)[..., :T]
        return ((1.0 - probabilities) * reached, probabilities * reached), reached

    nothing = ops.zeros((*batch, T), probabilities.dtype)
    diagonals = [ops.moveaxis(tensor, -1, 0) for tensor in (starts, skewed(probabilities))]  # (S + T, ..., 1 or T)
    _, reached = scan(step, (nothing, nothing), diagonals)
    return unskewed(ops.moveaxis(reached, 0, -1), S)


def beginning(shape, dtype):
    """Probability `(..., S)` of where the query before the first one stopped: at position 0."""
    return ops.broadcast_to(ops.cast(ops.equal(ops.arange(shape[-1], dtype="int32"), 0), dtype), shape)


def first_start(scores):
    """`beginning` for scores `(..., T, S)`."""
    *batch, _, S = ops.shape(scores)
    return beginning((*batch, S), at_least_float32(scores).dtype)


def is_lost(scores, mask, start):
    """Boolean `(..., T, 1)`: whether the row, or a row before it, is diverged, so that the walk is unknown.

    NaN in `start (..., S)` says so of the queries before the first row.
    """
    was_lost = ops.any(ops.isnan(start), axis=-1)[..., None, None]
    return ops.logical_or(was_lost, ops.cumsum(ops.cast(is_diverged(scores, mask), "int32"), axis=-2) > 0)


def expected_alignment(probabilities, mask, start):
    """Probability `(..., T, S)` that query t attends to position s, given its probability of stopping where it comes by.

    The probabilities must be zero where `mask` is False. Returns also where the last query stopped, `(..., S)`.
    """
    # A query that may attend to nothing is not there: it stops at once, where the previous one did, and sees nothing.
    stopping = ops.where(has_choice(probabilities, mask), probabilities, 1.0)
    reached = reach_probabilities(stopping, start)
    stops = ops.concatenate([start[..., None, :], stopping * reached], axis=-2)  # (..., 1 + T, S)
    return probabilities * reached, stops[..., -1, :]


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
    again; `step` goes on from its state, `{"weights": (..., S)}`, the weights of the last query.

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

    def __init__(self, noise=1.0, initial_offset=-4.0, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.noise = check_number("noise", noise, "a finite number of 0 or more", lambda value: value >= 0)
        self.initial_offset = check_number("initial_offset", initial_offset, "a finite number")
        self.seed = check_seed(seed)
        self.seed_generator = keras.random.SeedGenerator(self.seed)

    @classmethod
    def from_seed(cls, seed):
        return cls(seed=seed)

    def build(self, scores_shape):
        initializer = keras.initializers.Constant(self.initial_offset)
        self.offset = self.add_weight(shape=(), initializer=initializer, name="offset")
        self.built = True

    def call(self, scores, mask=None, training=None):
        return self.step(scores, mask, {"weights": first_start(scores)}, training)[0]

    def initial_state(self, shape, dtype="float32"):
        return {"weights": beginning(shape, float32_or_better(dtype))}

    def step(self, scores, mask, state, training=None):
        scores = as_floats(scores, "float32")
        if not training:
            return self._walk(self._stops(scores, mask), scores, mask, state)
        energies = at_least_float32(scores)
        noise = keras.random.normal(ops.shape(scores), 0.0, self.noise, dtype="float32", seed=self.seed_generator)
        energies = energies + ops.cast(noise, energies.dtype)
        return self._walk(ops.sigmoid(self._logits(energies, mask)), scores, mask, state)

    def given(self, scores, state):
        """Scores that are -inf before the position where the walk stands, NaN after a diverged query."""
        start = state["weights"][..., None, :]
        scores = ops.where(ops.cumsum(start, axis=-1) > 0.0, scores, -math.inf)
        return ops.where(ops.any(ops.isnan(start), axis=-1, keepdims=True), math.nan, scores)

    def state_after(self, selection, mask, state):
        """Where the last query stopped that could attend to anything."""
        is_there = ops.broadcast_to(has_choice(selection, mask), ops.shape(selection[..., :1]))
        is_last = ops.equal(ops.flip(ops.cumsum(ops.flip(ops.cast(is_there, "int32"), axis=-2), axis=-2), axis=-2), 1)
        stops = ops.sum(ops.where(ops.logical_and(is_there, is_last), selection, 0.0), axis=-2)
        stops = ops.where(ops.any(is_there, axis=-2), ops.cast(stops, state["weights"].dtype), state["weights"])
        return {"weights": stops}

    def marginals(self, scores, mask=None):
        """The expectation without noise, `(..., T, S)`."""
        return self._first_walk(ops.sigmoid(self._logits(scores, mask)), scores, mask)

    def mode(self, scores, mask=None):
        """The walk of inference, `(..., T, S)`: the likelier choice at each step, which need not be the likeliest walk."""
        return self._first_walk(self._stops(scores, mask), scores, mask)

    def sample(self, scores, mask=None, seed=None):
        """A walk drawn at random, `(..., T, S)`."""
        probabilities = ops.stop_gradient(ops.sigmoid(self._logits(scores, mask)))
        stops = uniform_like(probabilities, seed=seed) < probabilities
        return self._first_walk(ops.cast(stops, probabilities.dtype), scores, mask)

    def log_prob(self, selection, scores, mask=None):
        """Log-probability `(...)` of a walk `(..., T, S)`: rows of zeros with at most a single one."""
        logits = self._logits(scores, mask)
        log_prob = walk_log_prob(ops.cast(selection, logits.dtype), logits, has_choice(logits, mask))
        return ops.where(ops.any(is_diverged(scores, mask), axis=(-2, -1)), math.nan, log_prob)

    def entropy(self, scores, mask=None):
        """Entropy of the walk in nats, `(...)`: sum of probability of coming by · entropy of stopping there or not."""
        logits = self._logits(scores, mask)
        probabilities = ops.sigmoid(logits)
        reached = reach_probabilities(ops.where(has_choice(logits, mask), probabilities, 1.0), first_start(logits))
        entropies = probabilities * ops.softplus(-logits) + (1.0 - probabilities) * ops.softplus(logits)
        entropy = ops.sum(reached * entropies, axis=(-2, -1))
        return ops.where(ops.any(is_diverged(scores, mask), axis=(-2, -1)), math.nan, entropy)

    def _logits(self, scores, mask):
        """Scores with the offset, LOWEST where masked, so that the probability there is zero and so is its gradient."""
        if not self.built:
            raise ValueError("A Monotonic alignment must be built. Call it once, or `build(scores.shape)`.")
        scores = at_least(at_least_float32(scores), LOWEST)
        return mask_scores(scores + ops.cast(self.offset, scores.dtype), mask)

    def _stops(self, scores, mask):
        """Ones `(..., T, S)` where a query that comes by stops at inference."""
        logits = self._logits(scores, mask)
        return ops.stop_gradient(ops.cast(logits >= 0.0, logits.dtype))

    @staticmethod
    def _walk(probabilities, scores, mask, state):
        """Weights `(..., T, S)` and the next state, given the probabilities of stopping where a query comes by."""
        start = ops.cast(state["weights"], probabilities.dtype)
        lost = is_lost(scores, mask, start)
        # No NaN enters the recursion, which would carry it to masked positions, too.
        probabilities, start = ops.where(lost, 0.0, probabilities), ops.where(ops.isnan(start), 0.0, start)
        weights, last = expected_alignment(probabilities, mask, start)
        last = ops.where(ops.any(lost, axis=-2), math.nan, last)
        weights = ops.cast(with_nan(weights, lost, mask), scores.dtype)
        return weights, {"weights": ops.cast(last, state["weights"].dtype)}

    def _first_walk(self, probabilities, scores, mask):
        return self._walk(probabilities, scores, mask, {"weights": first_start(scores)})[0]

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
