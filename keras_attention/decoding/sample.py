"""Sampling: the next token is drawn at random, from the model's distribution or from a part of it."""

import numbers

import keras
import numpy as np
from keras import ops

from keras_attention.checks.arguments import check_number, check_positive_integer
from keras_attention.decoding.loop import extend_until_end
from keras_attention.decoding.step import check_max_length
from keras_attention.decoding.symbols import check_symbols
from keras_attention.decoding.threefry import threefry_uniform
from keras_attention.ops.known_values import may_hold_integers
from keras_attention.ops.softmax import LOWEST, mask_scores
from keras_attention.tokens import END, PAD

COLDEST = 1e-30  # a temperature in float32; much smaller ones are zero there


def apply_temperature(log_probabilities, temperature):
    """`log p / temperature`, up to a constant: `(B, V)` -> `(B, V)`, zero for the most probable token of a row."""
    # Divided as distances from the maximum, so that no temperature lifts a masked token or drops the best below it.
    distances = log_probabilities - ops.max(log_probabilities, axis=-1, keepdims=True)
    return mask_scores(distances / max(temperature, COLDEST), log_probabilities > LOWEST / 2)


def keep_top_k(log_probabilities, top_k):
    """LOWEST for all but the `top_k` most probable tokens: `(B, V)` -> `(B, V)`. Equals of the last one stay, too."""
    V = ops.shape(log_probabilities)[-1]
    count = min(top_k, V) if isinstance(V, int) else ops.minimum(top_k, V)
    smallest = ops.min(ops.top_k(log_probabilities, count)[0], axis=-1, keepdims=True)
    return mask_scores(log_probabilities, log_probabilities >= smallest)


def keep_top_p(log_probabilities, top_p):
    """LOWEST for all but the nucleus: `(B, V)` -> `(B, V)`. Equals of its last token stay, too.

    The nucleus is the smallest set of most probable tokens whose mass reaches `top_p`; the token that crosses stays.
    The mass is that of the distribution that the argument stands for, renormalised.
    """
    ascending = ops.sort(log_probabilities, axis=-1)
    tail = ops.cumsum(ops.softmax(ascending, axis=-1), axis=-1)  # mass of a token and of all less probable ones
    in_nucleus = tail > 1.0 - top_p  # the more probable ones alone don't reach top_p
    smallest = ops.min(ops.where(in_nucleus, ascending, ascending[:, -1:]), axis=-1, keepdims=True)
    return mask_scores(log_probabilities, log_probabilities >= smallest)


def keep_min_p(log_probabilities, min_p):
    """LOWEST for tokens less probable than `min_p` times the most probable one: `(B, V)` -> `(B, V)`."""
    best = ops.max(log_probabilities, axis=-1, keepdims=True)
    return mask_scores(log_probabilities, ops.exp(log_probabilities - best) >= min_p)


def draw(log_probabilities, uniform):
    """Tokens `(B,)` drawn by inversion: the first whose cumulative probability reaches the row's number in `uniform`.

    Args:
        log_probabilities: `(B, V)`, up to a constant for each row.
        uniform: `(B,)`, numbers in [0, 1).
    """
    weights = ops.exp(log_probabilities - ops.max(log_probabilities, axis=-1, keepdims=True))
    reached = ops.cumsum(weights, axis=-1)  # (B, V)
    target = uniform[:, None] * reached[:, -1:]
    # The maximum is at the first token that reaches the target, or at the last possible one if rounding lets none.
    return ops.argmax(ops.where(weights > 0, ops.minimum(reached, target), -1.0), axis=-1)


def sample(step, state, start, max_length, seed, temperature=1.0, top_k=None, top_p=None, min_p=None, end=END, pad=PAD):
    """Extends each sequence by tokens drawn at random until it ends.

    `tokens[t] ~ q(v | start, tokens[:t])`, `score = sum over t of log p(tokens[t] | start, tokens[:t])`

    `q` comes from the model's distribution `p` in this order, each filter acting on what the previous ones left:

        padding         removed, unless it is the end symbol
        temperature     q ∝ p^(1 / temperature): below 1 sharper, above 1 flatter
        top_k           the k most probable tokens stay
        top_p           the nucleus stays: the smallest set of most probable tokens whose mass reaches top_p
        min_p           tokens with q >= min_p · max q stay

    Tokens as probable as the last token that stays also stay: more than `top_k` tokens may be left where several are
    equally probable. The most probable token always stays. The score is that of the model, before all of this.

    The number behind a token is a function of the seed, its row and its position alone. So the same seed gives the same
    result eagerly, in a graph and compiled, on every backend, up to numbers that fall within a rounding error of the
    border between two tokens; a larger `max_length` only extends it; and rows are independent of each other.

    Args:
        step: Function `(tokens, state) -> (logits, state)`, as in `greedy_search`.
        state: Nest of tensors, as in `greedy_search`.
        start: Integer tensor `(B,)`, the start symbols.
        max_length: Integer or integer scalar tensor, size L of the result, as in `greedy_search`.
        seed: Integer; or an integer tensor `(2,)`, as `keras.random.SeedGenerator.next()` gives.
        temperature: Number above 0.
        top_k: Integer of 1 or more, or `None` for all tokens.
        top_p: Number in (0, 1], or `None`.
        min_p: Number in [0, 1], or `None`.
        end, pad: Integers, as in `greedy_search`; `end` may be a list or tuple of them.

    Returns:
        `(tokens, scores)`: int32 `(B, L)` and float32 `(B,)`, as in `greedy_search`: padding and NaN where the logits are no
        distribution.

    Raises:
        ValueError: If an option is outside its range, or as in `greedy_search`.
        TypeError: As in `greedy_search`.

    Example:
        After the start symbol 1 comes 3 or the end symbol 2, after 3 always the end.

        >>> probabilities = ops.array([[0, 0, 1, 0], [0, 0, 0.25, 0.75], [0, 0, 1, 0], [0, 0, 1, 0.0]])
        >>> def step(tokens, state):
        ...     return ops.log(ops.take(probabilities, tokens, axis=0) + 1e-9), state
        >>> tokens, scores = sample(step, (), start=ops.array([1, 1, 1]), max_length=2, seed=5)
        >>> ops.convert_to_numpy(tokens).tolist()
        [[3, 2], [3, 2], [2, 0]]
        >>> [round(float(score), 4) for score in scores]  # log(0.75) twice, log(0.25)
        [-0.2877, -0.2877, -1.3863]

    References:
        top_k: Fan, Lewis and Dauphin, 2018, arXiv:1805.04833. top_p: Holtzman et al., 2020, arXiv:1904.09751.
        min_p: Nguyen et al., 2024, arXiv:2407.01082.
    """
    start, symbols = check_symbols(start, end, pad)
    max_length = check_max_length(max_length)
    check_options(temperature, top_k, top_p, min_p)
    rows = ops.arange(ops.shape(start)[0], dtype="int32")
    positions = ops.arange(max_length, dtype="int32")
    uniform = threefry_uniform(seed_words(seed), (rows[:, None], positions))  # (B, L)

    def choose(log_probabilities, index):
        kept = apply_temperature(log_probabilities, temperature)
        if top_k is not None:
            kept = keep_top_k(kept, top_k)
        if top_p is not None:
            kept = keep_top_p(kept, top_p)
        if min_p is not None:
            kept = keep_min_p(kept, min_p)
        return draw(kept, ops.sum(ops.where(positions == index, uniform, 0.0), axis=-1))

    return extend_until_end(step, choose, state, start, max_length, symbols)


class Sample:
    """`sample` as an object for `generate(sampler=...)`: it holds the options and a seed for each call.

    A new object gives the same sequence of results for the same `seed`; each call gives another result. A compiled model
    must track `seed_generator`, its only state.

    Args:
        temperature: Number above 0; below 1 sharper than the model, above 1 flatter.
        top_k: Integer, the most probable tokens that stay, or `None`.
        top_p: Number in (0, 1], the mass of the nucleus that stays, or `None`.
        min_p: Number in [0, 1], the share of the largest probability from which a token stays, or `None`.
        seed: Integer, or `None` for a random one.

    Call arguments:
        step, state, start, max_length, end: As in `sample`.

    Returns:
        `(tokens, scores)`: int32 `(B, L)` and float32 `(B,)`.

    Raises:
        ValueError: If an option is outside its range.

    Example:
        >>> def step(tokens, state):  # all but padding equally probable
        ...     return ops.zeros((tokens.shape[0], 7)), state
        >>> sampler = Sample(top_p=0.9, seed=5)
        >>> tokens, scores = sampler(step, (), start=ops.array([1, 1]), max_length=3)
        >>> tokens.shape
        (2, 3)
    """

    def __init__(self, temperature=1.0, top_k=None, top_p=None, min_p=None, seed=None):
        check_options(temperature, top_k, top_p, min_p)
        self.temperature = temperature
        self.top_k = top_k
        self.top_p = top_p
        self.min_p = min_p
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(None if seed is None else int(seed) % 2**31)

    def __call__(self, step, state, start, max_length, end=END):
        seed = self.seed_generator.next()
        return sample(step, state, start, max_length, seed, self.temperature, self.top_k, self.top_p, self.min_p, end)

    def __repr__(self):
        options = ("temperature", "top_k", "top_p", "min_p", "seed")
        return f"Sample({', '.join(f'{name}={getattr(self, name)!r}' for name in options)})"


def check_options(temperature, top_k, top_p, min_p):
    """Raises unless every option is in its range; `None`, except for the temperature, switches it off."""
    check_number("temperature", temperature, "a number above 0 and finite", lambda value: value > 0)
    if top_k is not None:
        check_positive_integer("top_k", top_k)
    if top_p is not None:
        check_number("top_p", top_p, "a number in (0, 1]", lambda value: 0 < value <= 1)
    if min_p is not None:
        check_number("min_p", min_p, "a number in [0, 1]", lambda value: 0 <= value <= 1)


def seed_words(seed):
    """The two int32 words of an integer or of an integer tensor `(2,)`; bits beyond 32 are cut off."""
    if isinstance(seed, numbers.Integral):
        seed = np.array([int(seed) % 2**32, 0], "uint32")
    if tuple(getattr(seed, "shape", ())) != (2,) or not may_hold_integers(seed):
        raise TypeError(
            "`seed` must be an integer, or an integer tensor of shape `(2,)`. "
            f"Received: {seed!r}. Pass `seed_generator.next()` for a `keras.random.SeedGenerator`."
        )
    words = ops.cast(seed, "int32")
    return words[0], words[1]
