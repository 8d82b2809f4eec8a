import keras
import numpy as np
import pytest
from keras import ops
from models.conftest import SOURCE, make_transformer

from keras_attention.decoding import Sample, greedy_search, sample
from keras_attention.decoding.sample import apply_temperature, draw, keep_min_p, keep_top_k, keep_top_p
from keras_attention.ops.softmax import LOWEST
from keras_attention.tokens import END, PAD, START

V = 7
BACKEND = keras.backend.backend()
PROBABILITIES = np.array([0.1, 0.03, 0.2, 0.05, 0.4, 0.15, 0.07])  # of padding, start, end and four more
EVERYTHING = {"temperature": 1.7, "top_k": 5, "top_p": 0.9, "min_p": 0.05}
DEFAULTS = {"temperature": 1.0, "top_k": None, "top_p": None, "min_p": None}

# Options, and the tokens that they leave of PROBABILITIES without padding; the sum of these is 0.9.
CASES = {
    "nothing": ({}, [1, 2, 3, 4, 5, 6]),
    "sharper": ({"temperature": 0.5}, [1, 2, 3, 4, 5, 6]),
    "flatter": ({"temperature": 1.7}, [1, 2, 3, 4, 5, 6]),
    "top_k": ({"top_k": 3}, [4, 2, 5]),
    "top_k_of_all": ({"top_k": 101}, [1, 2, 3, 4, 5, 6]),
    "top_p": ({"top_p": 0.7}, [4, 2, 5]),  # 0.4, 0.6 and 0.75, each over 0.9: the third one crosses
    "top_p_of_all": ({"top_p": 1.0}, [1, 2, 3, 4, 5, 6]),
    "top_p_of_one": ({"top_p": 1e-9}, [4]),
    "min_p": ({"min_p": 0.15}, [4, 2, 5, 6]),  # 0.06 and more
    "min_p_of_all": ({"min_p": 0.0}, [1, 2, 3, 4, 5, 6]),
    "min_p_of_one": ({"min_p": 1.0}, [4]),
    "top_p_after_top_k": ({"top_k": 3, "top_p": 0.75}, [4, 2]),  # 0.4 and 0.6, each over 0.75; 0.667 without top_k
    "min_p_after_temperature": ({"temperature": 0.5, "min_p": 0.2}, [4, 2]),  # squares: 0.16, 0.04, 0.0225
    "all": ({"temperature": 2.0, "top_k": 5, "top_p": 0.8, "min_p": 0.65}, [4, 2]),
}


def constant(probabilities=PROBABILITIES):
    """Step function of independent tokens."""
    logits = ops.convert_to_tensor(np.log(probabilities)[None], dtype="float32")

    def step(tokens, state):
        return ops.repeat(logits, ops.shape(tokens)[0], axis=0), state

    return step


def markov(seed):
    """Table of log-probabilities of a chain, and its step function."""
    logits = np.random.default_rng(seed).normal(scale=2.0, size=(V, V))
    log_probabilities = logits - np.log(np.sum(np.exp(logits), axis=-1, keepdims=True))
    table = ops.convert_to_tensor(logits, dtype="float32")

    def step(tokens, state):
        return ops.take(table, tokens, axis=0), state

    return log_probabilities, step


def filtered(probabilities, temperature, top_k, top_p, min_p):
    """The distribution that is drawn from, one token at a time."""
    weights = {v: p ** (1 / temperature) for v, p in enumerate(probabilities) if v != PAD}

    def keep(tokens):
        total = sum(weights[v] for v in tokens)
        return {v: weights[v] / total for v in tokens}

    weights = keep(weights)
    ranking = sorted(weights, key=weights.get, reverse=True)
    if top_k is not None:
        ranking = ranking[:top_k]
        weights = keep(ranking)
    if top_p is not None:
        nucleus = []
        while sum(weights[v] for v in nucleus) < top_p - 1e-12:
            nucleus.append(ranking[len(nucleus)])
        ranking = nucleus
        weights = keep(ranking)
    if min_p is not None:
        weights = keep([v for v in ranking if weights[v] >= min_p * weights[ranking[0]]])
    return np.array([weights.get(v, 0.0) for v in range(len(probabilities))])


def check_frequencies(drawn, distribution):
    """Counts of tokens are within five standard deviations; what has no probability never occurs."""
    counts = np.bincount(drawn, minlength=len(distribution))
    deviation = np.sqrt(len(drawn) * distribution * (1 - distribution))
    assert (np.abs(counts - len(drawn) * distribution) <= 5 * deviation).all(), (counts, len(drawn) * distribution)


def numpy(result):
    tokens, scores = (ops.convert_to_numpy(tensor) for tensor in result)
    assert tokens.dtype == "int32"
    assert scores.dtype == "float32"
    return tokens, scores


def starts(count):
    return np.full((count,), START, "int32")


# === The distribution ===


@pytest.mark.parametrize(("options", "kept"), CASES.values(), ids=CASES)
def test_frequencies_match_the_filtered_distribution(options, kept):
    distribution = filtered(PROBABILITIES, **{**DEFAULTS, **options})
    assert sorted(np.flatnonzero(distribution)) == sorted(kept)
    tokens, _ = numpy(sample(constant(), (), starts(5_003), 1, seed=3, **options))
    check_frequencies(tokens[:, 0], distribution)


def test_frequencies_of_a_large_vocabulary_match():
    probabilities = np.random.default_rng(1).dirichlet(np.full((10_007,), 0.3)) + 1e-12
    uniform = (np.arange(1_009) + 0.5) / 1_009
    logits = ops.convert_to_tensor(np.repeat(np.log(probabilities)[None], 1_009, axis=0), dtype="float32")
    tokens = ops.convert_to_numpy(draw(logits, ops.convert_to_tensor(uniform, dtype="float32")))
    # Evenly spaced numbers: each token's cumulative frequency is exact to one draw.
    cumulative = np.cumsum(np.bincount(tokens, minlength=10_007)) / 1_009
    np.testing.assert_allclose(cumulative, np.cumsum(probabilities) / probabilities.sum(), atol=1.1 / 1_009)


def test_tokens_of_different_rows_positions_and_calls_are_independent():
    sampler, step = Sample(seed=5), constant(PROBABILITIES[[0, 1, 3, 2, 4, 5, 6]] + [0, 0, -0.05 + 1e-9, 0, 0, 0, 0.05])
    distribution = filtered([0.1, 0.03, 1e-9, 0.2, 0.4, 0.15, 0.12], **DEFAULTS)  # it never ends
    first, second = (numpy(sampler(step, (), starts(2_003), 5))[0] for _ in range(2))
    pairs = {
        "rows": (first[:-1, 0], first[1:, 0]),
        "positions": (first[:, 0], first[:, 1]),
        "calls": (first[:, 0], second[:, 0]),
        "position and row": (first[:-1, 1], first[1:, 0]),
        "position and call": (first[:, 1], second[:, 0]),
    }
    for one, other in pairs.values():
        check_frequencies(one * V + other, np.outer(distribution, distribution).ravel())


def test_scores_are_the_log_probabilities_of_the_model():
    log_probabilities, step = markov(1)
    start = np.arange(1_001) % V
    tokens, scores = numpy(sample(step, (), start, 5, seed=7, **EVERYTHING))
    for row, last in enumerate(start):
        expected = 0.0
        for token in tokens[row]:
            expected += log_probabilities[last, token]
            if token == END:
                break
            last = token
        assert scores[row] == pytest.approx(expected, rel=1e-5)


def test_padding_follows_the_end_and_is_never_drawn():
    step = constant([0.7, 0.05, 0.15, 0.1])
    tokens, _ = numpy(sample(step, (), starts(1_009), 11, seed=5, temperature=1e6))
    ended = np.cumsum(tokens == END, axis=1) - (tokens == END) > 0
    assert ended.any()
    np.testing.assert_array_equal(tokens == PAD, ended)


def test_padding_may_be_the_end_symbol():
    tokens, _ = numpy(sample(constant(), (), starts(10_007), 1, seed=3, end=0, pad=0))
    check_frequencies(tokens[:, 0], PROBABILITIES)


def test_other_special_ids_are_used():
    tokens, _ = numpy(sample(constant(), (), starts(101), 11, seed=3, end=4, pad=-1))
    ended = np.cumsum(tokens == 4, axis=1) - (tokens == 4) > 0
    np.testing.assert_array_equal(tokens == -1, ended)


@pytest.mark.parametrize("options", [{"top_k": 1}, {"top_p": 1e-9}, {"min_p": 1.0}, {"temperature": 1e-6}], ids=str)
def test_the_most_probable_token_alone_is_greedy_search(options):
    _, step = markov(2)
    start = np.arange(V)
    tokens, scores = numpy(sample(step, (), start, 5, seed=1, **options))
    expected_tokens, expected_scores = numpy(greedy_search(step, (), start, 5))
    np.testing.assert_array_equal(tokens, expected_tokens)
    np.testing.assert_array_equal(scores, expected_scores)


# === Filters ===


def masked(keep, probabilities, *arguments):
    """Positions that a filter leaves, after checking that it changes nothing else."""
    log_probabilities = np.log(np.array(probabilities, "float32"))
    result = ops.convert_to_numpy(keep(ops.convert_to_tensor(log_probabilities), *arguments))
    kept = result != np.float32(LOWEST)
    np.testing.assert_array_equal(result[kept], log_probabilities[kept])
    return [np.flatnonzero(row).tolist() for row in kept]


def test_top_k_keeps_k_of_each_row_and_the_equals_of_the_last():
    rows = [[0.1, 0.4, 0.3, 0.2], [0.25, 0.25, 0.25, 0.25], [0.2, 0.4, 0.2, 0.2]]
    assert masked(keep_top_k, rows, 1) == [[1], [0, 1, 2, 3], [1]]
    assert masked(keep_top_k, rows, 2) == [[1, 2], [0, 1, 2, 3], [0, 1, 2, 3]]
    assert masked(keep_top_k, rows, 5) == [[0, 1, 2, 3]] * 3


def test_top_p_keeps_the_token_that_crosses_and_its_equals():
    rows = [[0.1, 0.4, 0.3, 0.2], [0.25, 0.25, 0.25, 0.25], [0.2, 0.4, 0.2, 0.2]]
    assert masked(keep_top_p, rows, 0.39) == [[1], [0, 1, 2, 3], [1]]
    assert masked(keep_top_p, rows, 0.41) == [[1, 2], [0, 1, 2, 3], [0, 1, 2, 3]]
    assert masked(keep_top_p, rows, 0.69) == [[1, 2], [0, 1, 2, 3], [0, 1, 2, 3]]
    assert masked(keep_top_p, rows, 0.71) == [[1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]]


def test_top_p_of_one_keeps_the_rarest_token():
    rare = [1e-9] * 5
    assert masked(keep_top_p, [[1.0, *rare]], 1.0) == [[0, 1, 2, 3, 4, 5]]


def test_min_p_compares_with_the_most_probable_token():
    rows = [[0.1, 0.4, 0.3, 0.2], [0.7, 0.1, 0.1, 0.1]]
    assert masked(keep_min_p, rows, 0.4) == [[1, 2, 3], [0]]
    assert masked(keep_min_p, rows, 0.1) == [[0, 1, 2, 3], [0, 1, 2, 3]]


def test_temperature_divides_the_differences_of_log_probabilities():
    log_probabilities = np.log(np.array([[0.1, 0.4, 0.3, 0.2]], "float32"))
    result = ops.convert_to_numpy(apply_temperature(ops.convert_to_tensor(log_probabilities), 0.5))
    np.testing.assert_allclose(result, 2 * (log_probabilities - np.log(0.4)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("temperature", [1e-37, 1e-3, 1.0, 1e35])
def test_no_temperature_brings_back_what_is_masked(temperature):
    result = apply_temperature(ops.convert_to_tensor([[LOWEST, -1.0, -2.0]]), temperature)
    assert ops.convert_to_numpy(result)[0, 0] == np.float32(LOWEST)
    assert ops.convert_to_numpy(draw(result, ops.convert_to_tensor([0.0]))).tolist() == [1]


def test_every_filter_leaves_masked_tokens_masked():
    log_probabilities = ops.convert_to_tensor([[LOWEST, np.log(0.6), LOWEST, np.log(0.4)]])
    for keep, value in [(keep_top_k, 3), (keep_top_p, 1.0), (keep_min_p, 0.0)]:
        result = ops.convert_to_numpy(keep(log_probabilities, value))
        np.testing.assert_array_equal(result, ops.convert_to_numpy(log_probabilities))


def test_draw_takes_the_first_token_that_reaches_the_number():
    log_probabilities = np.array([[LOWEST, 0.2, 0.3, LOWEST, 0.5, LOWEST]], "float32")
    log_probabilities = np.where(log_probabilities > 0, np.log(np.maximum(log_probabilities, 0.1)), LOWEST)
    uniform = np.array([0.0, 0.19, 0.21, 0.49, 0.51, 1 - 2.0**-24], "float32")
    rows = ops.convert_to_tensor(np.repeat(log_probabilities, 6, axis=0), dtype="float32")
    tokens = ops.convert_to_numpy(draw(rows, ops.convert_to_tensor(uniform)))
    assert tokens.tolist() == [1, 1, 2, 2, 4, 4]


# === Seeds ===


def test_a_seed_gives_the_same_numbers_on_every_backend():
    tokens, _ = numpy(sample(constant(), (), starts(3), 5, seed=11))
    assert tokens.tolist() == [[6, 2, 0, 0, 0], [4, 2, 0, 0, 0], [3, 5, 4, 4, 5]]


def test_the_same_seed_gives_the_same_result_and_another_seed_another():
    first, again, other = (numpy(sample(constant(), (), starts(11), 5, seed=seed))[0] for seed in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_a_seed_may_be_a_pair_or_exceed_32_bits():
    pair = ops.convert_to_tensor([5, 0], dtype="int32")
    for seed, same in [(5, pair), (2**32 + 5, 5), (np.int64(5), 5), (-1, 2**32 - 1)]:
        one, other = (numpy(sample(constant(), (), starts(11), 5, seed=each))[0] for each in (seed, same))
        np.testing.assert_array_equal(one, other)


def test_a_larger_limit_or_batch_only_extends_the_result():
    small, _ = numpy(sample(constant(), (), starts(3), 5, seed=5))
    large, _ = numpy(sample(constant(), (), starts(11), 13, seed=5))
    np.testing.assert_array_equal(large[:3, :5], small)


def test_an_object_repeats_its_sequence_of_results_but_not_its_results():
    one, other = Sample(seed=5), Sample(seed=5)
    first, second = (numpy(one(constant(), (), starts(11), 5))[0] for _ in range(2))
    assert (first != second).any()
    np.testing.assert_array_equal(numpy(other(constant(), (), starts(11), 5))[0], first)
    np.testing.assert_array_equal(numpy(other(constant(), (), starts(11), 5))[0], second)


def test_an_object_is_shown_as_it_is_written():
    shown = "Sample(temperature=0.7, top_k=None, top_p=0.9, min_p=None, seed=5)"
    assert repr(Sample(0.7, top_p=0.9, seed=5)) == shown


def test_objects_without_a_seed_differ():
    first, second = (numpy(Sample()(constant(), (), starts(101), 5))[0] for _ in range(2))
    assert (first != second).any()


def test_an_object_uses_its_options():
    tokens, scores = numpy(Sample(**EVERYTHING, seed=5)(constant(), (), starts(101), 5))
    expected_tokens, expected_scores = numpy(sample(constant(), (), starts(101), 5, seed=5, **EVERYTHING))
    np.testing.assert_array_equal(tokens, expected_tokens)
    np.testing.assert_array_equal(scores, expected_scores)


# === Compiled ===


def compilations():
    """Name -> what compiles a function on the running backend; torch runs it as it is."""
    if BACKEND == "tensorflow":
        import tensorflow as tf

        return {"graph": tf.function, "XLA": lambda function: tf.function(function, jit_compile=True)}
    if BACKEND == "jax":
        import jax

        return {"jit": jax.jit}
    return {"none": lambda function: function}


@pytest.mark.parametrize("compilation", compilations())
@pytest.mark.parametrize("options", [{}, EVERYTHING], ids=["no filter", "every filter"])
def test_compiled_sampling_equals_the_eager_one(options, compilation):
    _, step = markov(3)

    def search(start, seed):
        return sample(step, (), start, 5, seed, **options)

    arguments = ops.convert_to_tensor(np.arange(101) % V, dtype="int32"), ops.convert_to_tensor([5, 3], dtype="int32")
    expected_tokens, expected_scores = numpy(search(*arguments))
    tokens, scores = numpy(compilations()[compilation](search)(*arguments))
    np.testing.assert_array_equal(tokens, expected_tokens)
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-5)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="only TensorFlow's graphs have unknown sizes")
def test_one_graph_serves_every_batch_vocabulary_and_length():
    import tensorflow as tf

    @tf.function(
        input_signature=[tf.TensorSpec([None, None]), tf.TensorSpec([None], tf.int32), tf.TensorSpec([], tf.int32)]
    )
    def search(logits, start, max_length):
        return sample(lambda tokens, state: (logits, state), (), start, max_length, 5, **EVERYTHING)

    for batch, size, max_length in [(2, 3, 5), (5, 13, 2), (0, 7, 3), (3, 7, 0)]:
        logits = np.random.default_rng(batch).normal(size=(batch, size)).astype("float32")
        expected = sample(
            lambda tokens, state, logits=logits: (ops.convert_to_tensor(logits), state),
            (),
            starts(batch),
            max_length,
            5,
            **EVERYTHING,
        )
        for one, other in zip(numpy(search(logits, starts(batch), max_length)), numpy(expected), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)


@pytest.mark.parametrize(("batch", "max_length"), [(0, 5), (3, 0), (0, 0)])
def test_empty_batch_and_length_zero_give_empty_results(batch, max_length):
    tokens, scores = numpy(sample(constant(), (), starts(batch), max_length, seed=5, **EVERYTHING))
    assert tokens.shape == (batch, max_length)
    assert scores.tolist() == [0.0] * batch


def test_generate_draws_another_text_at_each_call_and_repeats_itself_with_the_seed():
    model = make_transformer(num_layers=1)
    one, other = Sample(top_p=0.9, seed=5), Sample(top_p=0.9, seed=5)
    first, second = (model.generate(SOURCE, 11, one) for _ in range(2))
    assert (first != second).any()
    np.testing.assert_array_equal(model.generate(SOURCE, 11, other), first)
    np.testing.assert_array_equal(model.generate(SOURCE, 11, other), second)


# === Errors ===


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0}, r"`temperature` must be a number above 0 and finite\. Received: 0\."),
        ({"temperature": float("inf")}, r"`temperature` must be a number above 0 and finite\. Received: inf\."),
        ({"top_k": 0}, r"`top_k` must be a positive integer\. Received: 0\."),
        ({"top_p": 0.0}, r"`top_p` must be a number in \(0, 1\]\. Received: 0\.0\."),
        ({"top_p": 1.5}, r"`top_p` must be a number in \(0, 1\]\. Received: 1\.5\."),
        ({"min_p": -0.5}, r"`min_p` must be a number in \[0, 1\]\. Received: -0\.5\."),
        ({"min_p": float("nan")}, r"`min_p` must be a number in \[0, 1\]\. Received: nan\."),
    ],
)
def test_options_outside_their_range_are_errors(options, message):
    with pytest.raises(ValueError, match=message):
        Sample(**options)
    with pytest.raises(ValueError, match=message):
        sample(constant(), (), starts(2), 5, seed=5, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": "1"}, r"`temperature` must be a number above 0 and finite\. Received: '1' of type str\."),
        (
            {"temperature": None},
            r"`temperature` must be a number above 0 and finite\. Received: None of type NoneType\.",
        ),
        ({"top_k": 2.0}, r"`top_k` must be a positive integer\. Received: 2\.0 of type float\."),
        ({"top_p": True}, r"`top_p` must be a number in \(0, 1\]\. Received: True of type bool\."),
    ],
)
def test_options_of_another_type_are_errors(options, message):
    with pytest.raises(ValueError, match=message):
        Sample(**options)


@pytest.mark.parametrize("seed", [None, 1.5, np.array([1, 2, 3]), np.array([1.0, 2.0])], ids=str)
def test_a_seed_that_is_no_integer_is_an_error(seed):
    with pytest.raises(
        TypeError, match=r"`seed` must be an integer, or an integer tensor of shape `\(2,\)`\. Received"
    ):
        sample(constant(), (), starts(2), 5, seed)


def test_the_smallest_temperature_is_greedy():
    tokens, _ = numpy(sample(constant(), (), starts(3), 2, seed=5, temperature=1e-45))
    assert tokens.tolist() == [[4, 4]] * 3


def test_a_seed_may_be_negative_or_from_numpy():
    assert Sample(seed=-3).seed_generator.next().shape == (2,)
    assert Sample(seed=np.int64(3)).seed_generator.next().shape == (2,)
