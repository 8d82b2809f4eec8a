"""Beam search: the best sequences, found by extending K hypotheses at a time."""

import dataclasses
import math

import keras
from keras import ops

from keras_attention.checks.arguments import check_number, check_positive_integer
from keras_attention.decoding.step import check_batch_first, check_max_length, next_log_probabilities
from keras_attention.decoding.symbols import check_symbols
from keras_attention.ops.softmax import LOWEST
from keras_attention.tokens import END, PAD

# A source position that was never attended counts as this much attention: the logarithm of zero is never taken.
COVERAGE_FLOOR = 1e-6


def beam_search(
    step,
    state,
    start,
    max_length,
    beam_width=4,
    length_penalty=0.6,
    coverage_penalty=0.0,
    end=END,
    pad=PAD,
):
    """Extends the K best hypotheses of each sequence at once, and returns the K best that it has seen.

    `sum[n] = sum over t < n of log p(tokens[t] | start, tokens[:t])`
    `score = sum[n] / ((5 + n) / 6)^length_penalty + coverage_penalty · sum over s of log(min(coverage[s], 1))`

    n counts the end symbol, and `coverage[s]` is the attention that source position s has received in the n steps. In
    the paper the penalties are α and β, the coverage is the sum of p_ij over j. As in `greedy_search`, `p` is the
    model's distribution with padding in it, and a hypothesis that has not ended never emits padding unless `pad` ends it.
    A sequence of probability zero is not a hypothesis.

    Each step looks at the 2K likeliest extensions (K more for each further end symbol): those that end join the finished
    ones, of which the K best are kept as they are; the K likeliest of the others stay alive. Those that are alive after
    L steps count like the finished ones. A source stops before that when none of its live hypotheses can reach its K-th
    best finished one any more, which never changes the result; no source's result depends on the others of the batch.

    All is one `keras.ops.while_loop` that writes into preallocated tensors, as in `greedy_search`.

    Args:
        step: Function `(tokens, state) -> (logits, state)` that takes int32 `(B·K,)`, the beams of a source side by
            side, and returns logits `(B·K, V)`. Rows without a live hypothesis are ignored.
        state: Nest (tuples, lists, dicts) of tensors, batch first, and scalars; `()` if there is none. Each row is
            repeated K times, and the rows follow their hypotheses from step to step. Scalars pass through.
        start: Integer tensor `(B,)`, the start symbols.
        max_length: Integer, size L of the result; or a scalar tensor, as in `greedy_search`.
        beam_width: Integer K.
        length_penalty: Float from -10 to 10, 0 for none; the larger, the longer the result.
        coverage_penalty: Float of 0 or more. Other than 0 it needs a state `{"coverage": (B, S), ...}` to which `step`
            adds the attention weights of its step, and which is 1 where the source is padding. Less than 1e-6 counts
            as 1e-6.
        end, pad: Integers, as in `greedy_search`; `end` may be a list or tuple of them.

    Returns:
        `(tokens, scores)`: int32 `(B, K, L)` and float32 `(B, K)`, all different, the best first. Where fewer than K
        hypotheses exist, the rest are rows of padding with the score LOWEST of `ops/softmax.py`, -1e30. A source of
        which a live hypothesis meets logits that are no distribution, as `greedy_search` says, or a coverage of NaN,
        has only rows of padding with the score NaN.

    Raises:
        ValueError: If a value or shape is wrong, or the coverage is missing.
        TypeError: As in `greedy_search`, or if `step` does not return a pair.

    Example:
        At every step the end symbol 2 comes with probability 0.3, 1 with 0.5 and 3 with 0.19.

        >>> def step(tokens, state):
        ...     return ops.ones((ops.shape(tokens)[0], 1)) * ops.log([[0.01, 0.5, 0.3, 0.19]]), state
        >>> tokens, scores = beam_search(step, (), ops.array([1]), max_length=3, beam_width=3, length_penalty=0.0)
        >>> ops.convert_to_numpy(tokens).tolist()
        [[[2, 0, 0], [1, 2, 0], [1, 1, 1]]]
        >>> scores  # log(0.3), log(0.5 · 0.3), log(0.5 · 0.5 · 0.5)
        [[-1.204, -1.8971, -2.0794]]

    References:
        Wu et al., 2016, section 7, eq. (14), arXiv:1609.08144.
    """
    start, symbols = check_symbols(start, end, pad)
    max_length = check_max_length(max_length)
    check_options(beam_width, length_penalty, coverage_penalty)
    length_penalty, coverage_penalty = float(length_penalty), float(coverage_penalty)
    state = keras.tree.map_structure(ops.convert_to_tensor, state)
    check_batch_first(state, start)
    if coverage_penalty != 0:
        check_coverage(state)
    B, K = ops.shape(start)[0], int(beam_width)
    positions = ops.arange(max_length, dtype="int32")

    def unfinished(index, tokens, sums, ids, finished_scores, finished_ids, is_broken, state):
        return ops.logical_and(index < max_length, ops.any(sums > LOWEST))

    def extend(index, tokens, sums, ids, finished_scores, finished_ids, is_broken, state):
        log_probabilities, has_no_distribution, state = next_log_probabilities(step, tokens, state, symbols)  # (B·K, V)
        coverage = coverage_scores(state, coverage_penalty, (B, K))
        has_no_score = ops.logical_or(ops.reshape(has_no_distribution, (B, K)), ops.isnan(coverage))
        is_broken = ops.logical_or(is_broken, ops.any(ops.logical_and(sums > LOWEST, has_no_score), axis=1))
        sums = ops.where(is_broken[:, None], LOWEST, sums)  # nothing goes on where a hypothesis is broken

        log_probabilities = ops.reshape(log_probabilities, (B, K, ops.shape(log_probabilities)[-1]))
        sums, parents, tokens = likeliest(sums, log_probabilities, 1 + len(symbols.end))  # (B, n)
        ids = ops.where(positions == index, tokens[..., None], pick(ids, parents))  # (B, n, L)
        ended = symbols.ended(tokens)
        scores = normalise(ops.where(ended, sums, LOWEST), index + 1, length_penalty, pick(coverage, parents))
        finished_scores, finished_ids = best(K, (finished_scores, scores), (finished_ids, ids))

        sums, choice = top(ops.where(ended, LOWEST, sums), K)  # (B, K)
        tokens, parents, ids = (pick(tensor, choice) for tensor in (tokens, parents, ids))
        state = take_rows(state, rows_of(parents, K))
        # A sum only falls; at best it stays as it is up to the length of the largest divisor, the next one or L.
        divisor = ops.maximum(length_divisor(index + 2, length_penalty), length_divisor(max_length, length_penalty))
        has_hope = sums[:, :1] / divisor > finished_scores[:, -1:]
        sums = ops.where(has_hope, sums, LOWEST)
        tokens = ops.reshape(tokens, (B * K,))
        return index + 1, tokens, sums, ids, finished_scores, finished_ids, is_broken, state

    nothing = ops.full((B, K), LOWEST, dtype="float32")
    blank = ops.full((B, K, max_length), symbols.pad, dtype="int32")
    rows = rows_of(ops.zeros((B, K), dtype="int32"), 1)  # each source K times
    _, _, sums, ids, finished_scores, finished_ids, is_broken, state = ops.while_loop(
        unfinished,
        extend,
        (
            ops.convert_to_tensor(0, dtype="int32"),
            take_rows(start, rows),
            ops.where(ops.arange(K) == 0, 0.0, nothing),  # one hypothesis, of no tokens
            blank,
            nothing,
            blank,
            ops.zeros((B,), dtype="bool"),
            take_rows(state, rows),
        ),
    )
    scores = normalise(sums, max_length, length_penalty, coverage_scores(state, coverage_penalty, (B, K)))
    scores, ids = best(K, (finished_scores, scores), (finished_ids, ids))
    scores = ops.where(is_broken[:, None], math.nan, scores)
    return ops.where(scores[..., None] > LOWEST, ids, symbols.pad), scores


@dataclasses.dataclass(frozen=True)
class BeamSearch:
    """`beam_search` with its options, as a sampler for `generate`. Equal ones share one compiled search.

    Args:
        beam_width, length_penalty, coverage_penalty: As in `beam_search`.
        num_results: Integer n, at most `beam_width`: the n best. `None`: the best alone.

    Call arguments:
        step, state, start, max_length, end: As in `beam_search`.

    Returns:
        `(tokens, scores)`: int32 `(B, L)` and float32 `(B,)`; with `num_results` `(B, n, L)` and `(B, n)`.

    Raises:
        ValueError: If a value is out of range.

    Example:
        >>> def step(tokens, state):
        ...     return ops.ones((ops.shape(tokens)[0], 1)) * ops.log([[0.01, 0.5, 0.3, 0.19]]), state
        >>> search = BeamSearch(beam_width=3, num_results=2)
        >>> tokens, scores = search(step, (), ops.array([1, 3, 1, 1, 3]), 7)
        >>> tokens.shape, scores.shape
        ((5, 2, 7), (5, 2))
    """

    beam_width: int = 4
    length_penalty: float = 0.6
    coverage_penalty: float = 0.0
    num_results: int | None = None

    def __post_init__(self):
        check_options(self.beam_width, self.length_penalty, self.coverage_penalty)
        if self.num_results is not None and check_positive_integer("num_results", self.num_results) > self.beam_width:
            raise ValueError(
                f"`num_results` must be at most `beam_width`. Received num_results={self.num_results} with "
                f"beam_width={self.beam_width}. Search with a wider beam."
            )

    def __call__(self, step, state, start, max_length, end=END):
        tokens, scores = beam_search(
            step, state, start, max_length, self.beam_width, self.length_penalty, self.coverage_penalty, end
        )
        if self.num_results is None:
            return tokens[:, 0], scores[:, 0]
        return tokens[:, : self.num_results], scores[:, : self.num_results]


# === Hypotheses ===


def likeliest(sums, log_probabilities, number):
    """The `number`·K likeliest extensions of K hypotheses, or all where there are fewer.

    Each hypothesis can end in as many ways as there are end symbols. With one more than these, K extensions that don't
    end are left.

    Args:
        sums: Float tensor `(B, K)`, LOWEST where there is no hypothesis.
        log_probabilities: Float tensor `(B, K, V)` of the next token.
        number: Integer.

    Returns:
        `(sums, parents, tokens)`, each `(B, n)`: the new sums, falling; the hypothesis extended; the new token.
    """
    B, K, V = ops.shape(log_probabilities)
    is_alive = sums[..., None] > LOWEST
    sums = ops.where(is_alive, ops.maximum(sums[..., None] + log_probabilities, LOWEST), LOWEST)  # (B, K, V)
    count = K * (min(number, V) if isinstance(V, int) else ops.minimum(number, V))
    sums, choice = top(ops.reshape(sums, (B, K * V)), count)
    return sums, ops.floor_divide(choice, V), ops.mod(choice, V)


def length_divisor(length, length_penalty):
    return ops.power((5.0 + ops.cast(length, "float32")) / 6.0, length_penalty)


def normalise(sums, length, length_penalty, coverage):
    """Scores of hypotheses of `length` tokens, eq. (14); LOWEST where there is none."""
    return ops.where(sums > LOWEST, sums / length_divisor(length, length_penalty) + coverage, LOWEST)


def coverage_scores(state, coverage_penalty, shape):
    """The last term of eq. (14) for each live hypothesis, in the shape `(B, K)`."""
    if coverage_penalty == 0:
        return ops.zeros(shape, dtype="float32")
    coverage = ops.clip(ops.cast(state["coverage"], "float32"), COVERAGE_FLOOR, 1.0)  # (B·K, S)
    return coverage_penalty * ops.reshape(ops.sum(ops.log(coverage), axis=-1), shape)


# === Choosing ===


def top(values, k):
    """The k largest of each row of `values (B, n)`, falling, and where they stand: `(B, k)` each."""
    values, choice = ops.top_k(values, k)
    return values, ops.cast(choice, "int32")


def rows_of(choice, n):
    """Where the entries `choice (B, k)` of a tensor `(B, n, ...)` stand when its first two axes are one: `(B·k,)`."""
    B, k = ops.shape(choice)
    return ops.reshape(ops.arange(B, dtype="int32")[:, None] * n + choice, (B * k,))


def pick(tensor, choice):
    """`tensor[b, choice[b, k]]`: the entries `choice (B, k)` of `tensor (B, n, ...)`."""
    B, n, *rest = ops.shape(tensor)
    picked = ops.take(ops.reshape(tensor, (B * n, *rest)), rows_of(choice, n), axis=0)
    return ops.reshape(picked, (*ops.shape(choice), *rest))


def best(k, scores, ids):
    """The k best of two groups of hypotheses with scores `(B, n)` and ids `(B, n, L)`; of equals the first."""
    scores, choice = top(ops.concatenate(scores, axis=1), k)
    return scores, pick(ops.concatenate(ids, axis=1), choice)


def take_rows(state, rows):
    """The state of other rows; scalars have none."""
    return keras.tree.map_structure(lambda leaf: ops.take(leaf, rows, axis=0) if len(leaf.shape) else leaf, state)


# === Checks ===


def check_options(beam_width, length_penalty, coverage_penalty):
    check_positive_integer("beam_width", beam_width)
    for name, value in (("length_penalty", length_penalty), ("coverage_penalty", coverage_penalty)):
        check_number(name, value, "a finite number")
    if abs(length_penalty) > 10:
        raise ValueError(f"`length_penalty` must be from -10 to 10. Received: {length_penalty!r}. Usual are 0 to 2.")
    if coverage_penalty < 0:
        raise ValueError(f"`coverage_penalty` must not be negative. Received: {coverage_penalty!r}. Pass 0 for none.")


def check_coverage(state):
    """Raises unless `state` is a dictionary with "coverage" `(B, S)`."""
    coverage = state.get("coverage") if isinstance(state, dict) else None
    shape = tuple(getattr(coverage, "shape", ()))
    if len(shape) != 2:
        raise ValueError(
            '`coverage_penalty` needs a state that is a dictionary with "coverage" of shape `(B, S)`, the attention that '
            f"each source position has received, 1 at padding. Received: {f'shape {shape}' if shape else 'no coverage'}. "
            "Pass `coverage_penalty=0` for a model without it."
        )
