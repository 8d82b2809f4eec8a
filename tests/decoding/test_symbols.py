"""Start, end and padding, and logits that are no distribution: one rule for every search."""

import functools

import keras
import numpy as np
import pytest
from keras import ops
from reference.markov import markov

from keras_attention.decoding import Sample, beam_search, greedy_search, sample
from keras_attention.tokens import END, PAD, START

V = 7
SEARCHES = {
    "greedy": greedy_search,
    "beam": functools.partial(beam_search, beam_width=3),
    "sample": functools.partial(sample, seed=5),
}
each_search = pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)


def table_of(transitions):
    """Logits in which `transitions[token]` follows `token` with probability 0.94, each other with 0.01."""
    probabilities = np.full((V, V), 1 / V)
    for token, following in transitions.items():
        probabilities[token] = 0.01
        probabilities[token, following] = 0.94
    return np.log(probabilities).astype("float32")


def best(result):
    """`(tokens (B, L), scores (B,))` as arrays, of a beam the best."""
    tokens, scores = map(ops.convert_to_numpy, result)
    return (tokens[:, 0], scores[:, 0]) if tokens.ndim == 3 else (tokens, scores)


# 1 goes to 4 and then to 3 for good; 5 goes to 2 and then to 6 for good
CHAIN = table_of({START: 4, 4: 3, 3: 3, 5: 2, 2: 6, 6: 6})


@pytest.mark.parametrize("end", [[2, 3], (2, 3), [np.int64(3), 2]], ids=str)
@pytest.mark.parametrize("search", [SEARCHES["greedy"], functools.partial(beam_search, beam_width=1)])
def test_each_of_several_ends_ends_a_sequence(search, end):
    tokens, scores = best(search(markov(CHAIN), (), np.array([START, 5]), 5, end=end))
    assert tokens.tolist() == [[4, 3, PAD, PAD, PAD], [2, PAD, PAD, PAD, PAD]]
    length_penalty = 1.0 if search is greedy_search else (7 / 6) ** 0.6
    np.testing.assert_allclose(scores, np.log(0.94) * np.array([2 / length_penalty, 1]), rtol=1e-4)


@each_search
def test_several_ends_give_a_row_the_same_answer_in_every_batch(search):
    start = np.array([6, START, 5])
    tokens, scores = best(search(markov(CHAIN), (), start, 3, end=[2, 3]))
    alone, score = best(search(markov(CHAIN), (), start[:1], 3, end=[2, 3]))
    assert alone[0].tolist() == tokens[0].tolist()
    np.testing.assert_allclose(score[0], scores[0], rtol=1e-5)


@each_search
def test_one_end_in_a_list_is_that_end(search):
    start = np.arange(V)
    for result, expected in zip(
        search(markov(CHAIN), (), start, 5, end=[END]), search(markov(CHAIN), (), start, 5), strict=True
    ):
        np.testing.assert_array_equal(ops.convert_to_numpy(result), ops.convert_to_numpy(expected))


def test_padding_may_be_one_of_several_ends():
    table = table_of({START: 4, 4: PAD, 5: 3})
    for search in (greedy_search, functools.partial(beam_search, beam_width=1)):
        tokens, _ = best(search(markov(table), (), np.array([START, 5]), 3, end=[3, PAD]))
        assert tokens.tolist() == [[4, PAD, PAD], [3, PAD, PAD]]


def test_a_sampler_takes_several_ends():
    tokens, _ = Sample(temperature=0.01, seed=3)(markov(CHAIN), (), np.array([START, 5]), 3, end=[2, 3])
    assert ops.convert_to_numpy(tokens).tolist() == [[4, 3, PAD], [2, PAD, PAD]]


# === Logits that are no distribution ===


@each_search
@pytest.mark.parametrize("wrong", [np.nan, np.inf], ids=str)
def test_a_row_of_broken_logits_is_padding_with_the_score_nan(search, wrong):
    table = CHAIN.copy()
    table[6, 3] = wrong  # one of seven
    tokens, scores = map(ops.convert_to_numpy, search(markov(table), (), np.array([6, 3, 6]), 1, pad=0, end=3))
    assert (tokens[[0, 2]] == PAD).all()
    assert np.isnan(scores[[0, 2]]).all()
    assert np.isfinite(scores[1]).any()


@each_search
def test_logits_that_break_on_the_way_take_the_whole_answer_with_them(search):
    table = table_of({START: 4, 4: 5}) + np.where(np.arange(V)[:, None] == 5, np.nan, 0.0).astype("float32")
    table[[START, 4]] += np.where(np.arange(V) == [[4], [5]], 50.0, 0.0)
    tokens, scores = best(search(markov(table), (), np.array([START]), 5))
    assert tokens.tolist() == [[PAD] * 5]
    assert np.isnan(scores).all()


@each_search
def test_nothing_but_minus_infinity_is_no_distribution(search):
    tokens, scores = best(search(markov(np.full((V, V), -np.inf, "float32")), (), np.array([START]), 3))
    assert tokens.tolist() == [[PAD] * 3]
    assert np.isnan(scores).all()


@each_search
def test_what_comes_after_the_end_may_break(search):
    table = table_of({START: END, 4: END})
    table[:, END] += 50.0
    table[[END, PAD]] = np.nan
    tokens, scores = best(search(markov(table), (), np.array([START, 4]), 3))
    assert tokens.tolist() == [[END, PAD, PAD]] * 2
    assert np.isfinite(scores).all()


def test_a_coverage_of_nan_is_no_score():
    def step(tokens, state):
        return ops.take(ops.convert_to_tensor(CHAIN), tokens, axis=0), {"coverage": state["coverage"] + 0.1}

    state = {"coverage": ops.convert_to_tensor(np.array([[0.0, 0.0], [0.0, np.nan]], "float32"))}
    result = beam_search(step, state, np.array([START, START]), 3, beam_width=2, coverage_penalty=0.2)
    tokens, scores = map(ops.convert_to_numpy, result)
    assert np.isfinite(scores[0]).all() and np.isnan(scores[1]).all()
    assert not tokens[1].any()


# === Errors ===


@each_search
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"end": []}, ValueError, r"`end` must be an id of 0 or more, or a list of such ids\. Received: \[\]"),
        ({"end": [2, -3]}, ValueError, r"`end` must be an id of 0 or more.* Received: -3"),
        ({"end": [2, V]}, ValueError, r"`end` must be in the vocabulary of the logits, \[0, 7\)\. Received: 7"),
        ({"end": 2.0}, ValueError, r"`end` must be .* Received: 2\.0 of type float"),
        ({"end": [2, "3"]}, ValueError, r"`end` must be .* Received: '3' of type str"),
        ({"end": True}, ValueError, r"`end` must be .* Received: True of type bool"),
        ({"end": None}, ValueError, r"`end` must be .* Received: None of type NoneType"),
        ({"pad": V}, ValueError, r"`pad` must be in the vocabulary of the logits, \[0, 7\)\. Received: 7"),
        ({"pad": [0]}, ValueError, r"`pad` must be an integer\. Received: \[0\] of type list"),
        ({"pad": 0.0}, ValueError, r"`pad` must be an integer\. Received: 0\.0 of type float"),
        ({"start": [1, -2]}, ValueError, r"`start` must hold ids of 0 or more\. Received: -2"),
        ({"start": [1, V]}, ValueError, r"`start` must be in the vocabulary of the logits, \[0, 7\)\. Received: 7"),
        ({"start": [True, False]}, TypeError, r"`start` must hold integer ids\. Received dtype bool"),
        ({"max_length": True}, TypeError, r"`max_length` must be an integer or .* Received: True"),
        ({"max_length": np.array(-3)}, ValueError, r"`max_length` must not be negative\. Received: -3"),
    ],
    ids=str,
)
def test_mistakes_are_named(search, arguments, error, message):
    start = ops.convert_to_tensor(np.array(arguments.get("start", [1])))
    options = {name: arguments[name] for name in ("end", "pad") if name in arguments}

    def step(tokens, state):  # of tokens alone TensorFlow would complain by itself
        return ops.zeros((ops.shape(tokens)[0], V)), state

    with pytest.raises(error, match=message):
        search(step, (), start, arguments.get("max_length", 3), **options)


def test_symbols_are_checked_while_a_graph_is_built():
    if keras.backend.backend() == "torch":
        pytest.skip("torch runs without a graph")
    if keras.backend.backend() == "jax":
        from jax import jit as compile_function
    else:
        from tensorflow import function as compile_function
    search = compile_function(lambda start: greedy_search(markov(CHAIN), (), start, 3, end=[2, V]))
    with pytest.raises(ValueError, match=r"`end` must be in the vocabulary of the logits, \[0, 7\)\. Received: 7"):
        search(ops.convert_to_tensor(np.array([START])))


def test_logits_over_no_id_are_an_error():
    with pytest.raises(ValueError, match=r"a row for each token, V not 0\. Received logits of shape \(1, 0\)"):
        greedy_search(lambda tokens, state: (ops.zeros((1, 0)), state), (), np.array([1]), 3)
