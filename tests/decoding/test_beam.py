import itertools

import keras
import numpy as np
import pytest
from keras import ops

from keras_attention import decoding
from keras_attention.decoding import BeamSearch, beam_search, greedy_search
from keras_attention.ops.softmax import LOWEST
from keras_attention.tokens import END, PAD, START

BACKEND = keras.backend.backend()
B, S, D = 5, 3, 7


def numpy(tensor):
    return ops.convert_to_numpy(tensor)


def log_softmax(logits):
    return logits - np.log(np.sum(np.exp(logits)))


class Recurrent:
    """A small random network, so that the next token depends on all before it; each row starts from a state of its own.

    `hidden' = tanh(hidden · W + E[token])`, `logits = hidden' · U`, `attention = softmax(hidden' · A)`
    """

    def __init__(self, seed, vocabulary_size):
        rng = np.random.default_rng(seed)
        sizes = {"W": (D, D), "E": (vocabulary_size, D), "U": (D, vocabulary_size), "A": (D, S)}
        self.weights = {name: rng.normal(size=size).astype("float32") for name, size in sizes.items()}
        self.first = rng.normal(size=(B, D)).astype("float32")
        self.is_padding = np.arange(S) > np.arange(B)[:, None] % S
        self.start = np.arange(B, dtype="int32") % vocabulary_size
        self.vocabulary_size = vocabulary_size

    def state(self):
        return {
            "hidden": ops.convert_to_tensor(self.first),
            "coverage": ops.convert_to_tensor(self.is_padding.astype("float32")),
            "is_padding": ops.convert_to_tensor(self.is_padding),
        }

    def step(self, tokens, state):
        W, E, U, A = (ops.convert_to_tensor(self.weights[name]) for name in "WEUA")
        hidden = ops.tanh(ops.matmul(state["hidden"], W) + ops.take(E, tokens, axis=0))
        attention = ops.softmax(ops.where(state["is_padding"], LOWEST, ops.matmul(hidden, A)))
        return ops.matmul(hidden, U), {**state, "hidden": hidden, "coverage": state["coverage"] + attention}

    def next(self, row, hidden, token):
        """`(log-probabilities, hidden, attention)` of one row, in float64."""
        hidden = np.tanh(hidden.astype("float64") @ self.weights["W"] + self.weights["E"][token])
        attention = np.where(self.is_padding[row], 0.0, np.exp(hidden @ self.weights["A"]))
        return log_softmax(hidden @ self.weights["U"]), hidden, attention / attention.sum()

    def search(self, max_length, **options):
        return beam_search(self.step, self.state(), self.start, max_length, **options)


def score(total, length, coverage, alpha, beta):
    """Equation (14) of Wu et al."""
    return total / ((5 + length) / 6) ** alpha + beta * np.sum(np.log(np.minimum(coverage, 1)))


def plain_beam(model, row, max_length, beam_width, alpha, beta=0.0, end=END, pad=PAD):
    """Beam search on one row, hypothesis by hypothesis, that always runs to the limit."""
    ends = end if isinstance(end, list) else [end]
    live = [((), 0.0, model.first[row], model.is_padding[row].astype("float64"))]
    finished = []
    for length in range(1, max_length + 1):
        candidates = []
        for tokens, total, hidden, coverage in live:
            last = tokens[-1] if tokens else model.start[row]
            log_probabilities, hidden, attention = model.next(row, hidden, last)
            for token in range(model.vocabulary_size):
                if token != pad or pad in ends:
                    extended = (*tokens, token), total + log_probabilities[token]
                    candidates.append((*extended, hidden, coverage + attention))
        candidates = sorted(candidates, key=lambda candidate: -candidate[1])[: (1 + len(ends)) * beam_width]
        finished += [
            (score(total, length, coverage, alpha, beta), tokens)
            for tokens, total, _, coverage in candidates
            if tokens[-1] in ends
        ]
        live = [candidate for candidate in candidates if candidate[0][-1] not in ends][:beam_width]
    finished += [(score(total, max_length, coverage, alpha, beta), tokens) for tokens, total, _, coverage in live]
    return sorted(finished, key=lambda hypothesis: -hypothesis[0])[:beam_width]


def brute_force(model, row, max_length, alpha, beta):
    """Every sequence there is, with its score, best first."""
    others = [token for token in range(model.vocabulary_size) if token not in (PAD, END)]
    hypotheses = [
        (*prefix, END) for length in range(max_length) for prefix in itertools.product(others, repeat=length)
    ] + list(itertools.product(others, repeat=max_length))
    scored = []
    for tokens in hypotheses:
        total, hidden, coverage = 0.0, model.first[row], model.is_padding[row].astype("float64")
        for last, token in zip((model.start[row], *tokens), tokens, strict=False):
            log_probabilities, hidden, attention = model.next(row, hidden, last)
            total, coverage = total + log_probabilities[token], coverage + attention
        scored.append((score(total, len(tokens), coverage, alpha, beta), tokens))
    return sorted(scored, reverse=True)


def check(result, hypotheses, pad=PAD):
    """`result` is, row by row, the list `hypotheses[row]` of `(score, tokens)`, and padding after it."""
    tokens, scores = map(numpy, result)
    assert tokens.dtype == "int32" and scores.dtype == "float32"
    expected_tokens, expected_scores = np.full(tokens.shape, pad), np.full(scores.shape, LOWEST)
    for row, beams in enumerate(hypotheses):
        for beam, (value, ids) in enumerate(beams):
            expected_tokens[row, beam, : len(ids)], expected_scores[row, beam] = ids, value
    np.testing.assert_array_equal(tokens, expected_tokens)
    np.testing.assert_allclose(scores, expected_scores, rtol=2e-5, atol=2e-6)


def constant(probabilities):
    """Step function that gives every token the same probability at every step."""
    logits = np.log(np.array([probabilities], "float32"))

    def step(tokens, state):
        return ops.repeat(ops.convert_to_tensor(logits), ops.shape(tokens)[0], axis=0), state

    return step


def compiled(function):
    """`function` as the running backend compiles it: XLA in TensorFlow and JAX; torch runs it as it is."""
    if BACKEND == "tensorflow":
        import tensorflow as tf

        return tf.function(function, jit_compile=True)
    if BACKEND == "jax":
        import jax

        return jax.jit(function)
    return function


# === The result ===


@pytest.mark.parametrize(
    ("vocabulary_size", "max_length", "number", "alpha", "beta"),
    [
        (3, 3, 4, 0.6, 0.3),
        (4, 3, 15, 1.4, 0.0),
        (5, 4, 121, 0.0, 0.0),
        (5, 4, 121, 0.6, 0.3),
        (5, 4, 121, 1.4, 0.3),
        (5, 4, 121, -0.7, 0.0),
    ],
)
def test_a_beam_as_wide_as_all_sequences_finds_every_one_of_them(vocabulary_size, max_length, number, alpha, beta):
    model = Recurrent(vocabulary_size, vocabulary_size)
    expected = [brute_force(model, row, max_length, alpha, beta) for row in range(B)]
    assert [len(hypotheses) for hypotheses in expected] == [number] * B
    result = model.search(max_length, beam_width=number + 2, length_penalty=alpha, coverage_penalty=beta)
    check(result, expected)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("beam_width", "alpha", "beta"),
    [(1, 0.6, 0.0), (np.int64(2), np.float32(-0.7), np.float64(0.3)), (3, 0.0, 0.0), (5, 1.4, 0.3)],
)
def test_a_narrow_beam_equals_a_plain_one_that_never_stops_early(seed, beam_width, alpha, beta):
    model = Recurrent(seed, 11)
    expected = [plain_beam(model, row, 13, beam_width, alpha, beta) for row in range(B)]
    result = model.search(13, beam_width=beam_width, length_penalty=alpha, coverage_penalty=beta)
    check(result, expected)


@pytest.mark.parametrize("end", [[2, 3], [6, PAD, 4]], ids=str)
def test_a_beam_with_several_ends_equals_a_plain_one(end):
    model = Recurrent(5, 7)
    expected = [plain_beam(model, row, 5, 3, 0.6, end=end) for row in range(B)]
    check(model.search(5, beam_width=3, end=end), expected)


def test_hypotheses_go_on_beside_more_ends_than_the_beam_is_wide():
    # Six of the likeliest seven tokens end; 7 goes on.
    step = constant([0.01, 0.16, 0.16, 0.16, 0.16, 0.16, 0.1, 0.09])
    tokens, _ = beam_search(step, (), np.array([7]), 2, 1, length_penalty=-3.0, end=[1, 2, 3, 4, 5, 6])
    assert numpy(tokens).tolist() == [[[1, 0]]]
    tokens, _ = beam_search(step, (), np.array([7]), 2, 7, length_penalty=0.0, end=[1, 2, 3, 4, 5, 6])
    assert [7, 1] in numpy(tokens)[0].tolist()


def test_finished_hypotheses_are_frozen():  # KNOWN_FAULTS, D18
    tokens, scores = beam_search(constant([0.01, 0.5, 0.3, 0.19]), (), np.array([1]), 3, 3, length_penalty=0.0)
    assert numpy(tokens).tolist() == [[[END, PAD, PAD], [1, END, PAD], [1, 1, 1]]]
    np.testing.assert_allclose(numpy(scores), [[-1.2040, -1.8971, -2.0794]], atol=1e-4)


def test_the_length_counts_the_end_symbol():
    _, scores = beam_search(constant([0.01, 0.5, 0.3, 0.19]), (), np.array([1]), 2, 2, length_penalty=1.0)
    # [END] has length 1, divisor 1; [1, 1], cut off, has length 2, divisor 7/6.
    np.testing.assert_allclose(numpy(scores), [[2 * np.log(0.5) * 6 / 7, np.log(0.3)]], rtol=1e-5)


def test_coverage_rewards_reading_the_whole_source():
    # The step after token 1 reads the first source position, the one after 3 half of the second.
    reads = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 0.5]], "float32")

    def step(tokens, state):
        coverage = state["coverage"] + ops.take(ops.convert_to_tensor(reads), tokens, axis=0)
        return ops.zeros((ops.shape(tokens)[0], 4)), {"coverage": coverage}

    options = {"beam_width": 17, "length_penalty": 0.0, "coverage_penalty": 1.0}
    tokens, scores = beam_search(step, {"coverage": ops.zeros((1, 2))}, np.array([PAD]), 3, **options)
    score_of = {tuple(ids): value for ids, value in zip(numpy(tokens)[0].tolist(), numpy(scores)[0], strict=True)}
    np.testing.assert_allclose(score_of[1, 3, END], 3 * np.log(0.25) + np.log(0.5), rtol=1e-5)
    np.testing.assert_allclose(score_of[1, END, PAD], 2 * np.log(0.25) + np.log(1e-6), rtol=1e-5)
    np.testing.assert_allclose(score_of[3, 3, 1], 3 * np.log(0.25) + np.log(1e-6), rtol=1e-5)
    np.testing.assert_allclose(score_of[END, PAD, PAD], np.log(0.25) + 2 * np.log(1e-6), rtol=1e-5)
    assert numpy(scores)[0, 0] == score_of[1, 3, END]


@pytest.mark.parametrize("seed", range(2))
def test_more_beams_are_at_least_as_likely_as_greedy_search(seed):
    model = Recurrent(seed, 11)
    _, greedy_scores = greedy_search(model.step, model.state(), model.start, 7)
    for beam_width in (1, 17):
        _, scores = model.search(7, beam_width=beam_width, length_penalty=0.0)
        assert (numpy(scores)[:, 0] >= numpy(greedy_scores) - 1e-5).all()


def test_one_beam_is_greedy_search_where_stopping_earlier_is_less_likely():
    transitions = np.full((7, 7), np.log(0.1 / 6), "float32")
    transitions[[START, 3, 5, 4], [3, 5, 4, END]] = np.log(0.9)

    def step(tokens, state):
        return ops.take(ops.convert_to_tensor(transitions), tokens, axis=0), state

    arguments = step, (), np.array([START, 5, 6]), 5
    tokens, scores = beam_search(*arguments, beam_width=1, length_penalty=0.0)
    for one, greedy in zip((tokens[:2, 0], scores[:2, 0]), greedy_search(*arguments), strict=True):
        np.testing.assert_array_equal(numpy(one), numpy(greedy)[:2])


def test_hypotheses_are_sorted_and_all_different():
    tokens, scores = map(numpy, Recurrent(3, 11).search(7, beam_width=13))
    assert (np.diff(scores, axis=1) <= 0).all()
    for row in tokens:
        assert len({tuple(ids) for ids in row.tolist()}) == 13


def test_padding_is_never_chosen_and_keeps_its_probability():
    tokens, scores = beam_search(constant([0.6, 0.25, 0.05, 0.1]), (), np.array([1]), 3, 2, length_penalty=0.0)
    assert numpy(tokens).tolist() == [[[END, PAD, PAD], [1, 1, 1]]]
    np.testing.assert_allclose(numpy(scores), [[np.log(0.05), 3 * np.log(0.25)]], rtol=1e-5)


def test_padding_may_be_the_end_symbol():
    model = Recurrent(5, 7)
    expected = [plain_beam(model, row, 5, 3, 0.6, end=0, pad=0) for row in range(B)]
    check(model.search(5, beam_width=3, end=0, pad=0), expected, pad=0)


def test_other_special_ids_are_used():
    model = Recurrent(6, 7)
    expected = [plain_beam(model, row, 5, 3, 0.6, end=6, pad=4) for row in range(B)]
    check(model.search(5, beam_width=3, end=6, pad=4), expected, pad=4)


def test_each_source_gets_the_result_it_gets_alone():
    model = Recurrent(2, 11)
    together = [numpy(tensor) for tensor in model.search(13, beam_width=3)]
    for row in (1, B - 1):
        state = keras.tree.map_structure(lambda leaf, row=row: leaf[row : row + 1], model.state())
        tokens, scores = beam_search(model.step, state, model.start[row : row + 1], 13, beam_width=3)
        np.testing.assert_array_equal(numpy(tokens)[0], together[0][row])
        np.testing.assert_allclose(numpy(scores)[0], together[1][row], rtol=1e-5)


@pytest.mark.parametrize(
    ("probabilities", "expected"),
    [
        ([1.0], {(0, 0, 0): 1.0}),
        ([0.6, 0.4], {(0, 0, 0): 0.6, (1, 0, 0): 0.24, (1, 1, 0): 0.096, (1, 1, 1): 0.064}),
    ],
)
def test_fewer_hypotheses_than_beams_are_followed_by_padding(probabilities, expected):
    options = {"beam_width": 5, "length_penalty": 0.0, "end": 0, "pad": 0}
    result = beam_search(constant(probabilities), (), np.array([0]), 3, **options)
    check(result, [[(np.log(probability), ids) for ids, probability in expected.items()]])


@pytest.mark.parametrize("lowest", [LOWEST, -np.inf])
def test_what_has_no_probability_is_no_hypothesis(lowest):
    logits = np.array([[lowest, np.log(0.4), np.log(0.6), lowest]], "float32")

    def step(tokens, state):
        return ops.repeat(ops.convert_to_tensor(logits), ops.shape(tokens)[0], axis=0), state

    expected = [(np.log(0.6), (END,)), (np.log(0.24), (1, END)), (np.log(0.16), (1, 1))]
    check(beam_search(step, (), np.array([1]), 2, beam_width=5, length_penalty=0.0), [expected])


# === Stopping ===


@pytest.mark.skipif(BACKEND == "jax", reason="JAX calls the step function once, to trace it: calls can't be counted")
@pytest.mark.parametrize(("alpha", "steps"), [(0.0, 2), (1.0, 32), (-1.0, 2)])
def test_search_stops_as_soon_as_nothing_better_can_come(alpha, steps):
    # [END] has the score log 0.4. After n steps the live hypothesis has the sum n · log 0.6, which it can keep at best
    # up to the length 101 (divisor 106/6) with alpha 1, and to the length n + 1 (divisor 6/(6 + n)) with alpha -1.
    step, calls = constant([1e-9, 0.6, 0.4]), []

    def counted_step(tokens, state):
        calls.append(tokens)
        return step(tokens, state)

    tokens, scores = beam_search(counted_step, (), np.array([1]), 101, beam_width=1, length_penalty=alpha)
    assert numpy(tokens)[0, 0, :2].tolist() == [END, PAD]
    np.testing.assert_allclose(numpy(scores), [[np.log(0.4)]], rtol=1e-5)
    assert len(calls) == steps


def test_rows_without_a_hypothesis_do_not_disturb_the_others():
    table = np.log([[0.1, 0.2, 0.3, 0.4]] * 4).astype("float32")
    broken = table.copy()
    broken[[PAD, END]] = np.nan

    def search(table):
        def step(tokens, state):
            return ops.take(ops.convert_to_tensor(table), tokens, axis=0), state

        return [numpy(tensor) for tensor in beam_search(step, (), np.array([1, 3]), 5, beam_width=7)]

    for result, expected in zip(search(broken), search(table), strict=True):
        np.testing.assert_array_equal(result, expected)


# === State ===


def test_any_nest_of_state_follows_its_hypotheses():
    model = Recurrent(1, 11)

    def split(state):
        hidden = state["hidden"]
        return {**state, "hidden": (hidden[:, :2], [ops.reshape(hidden[:, 2:], (-1, 1, 5, 1))])}

    def step(tokens, state):
        state, count, counts = state
        left, [right] = state["hidden"]
        hidden = ops.concatenate([left, ops.reshape(right, (-1, 5))], axis=-1)
        logits, state = model.step(tokens, {**state, "hidden": hidden})
        logits = ops.where((counts == count)[:, None], logits, np.nan)  # both count the steps
        return logits, (split(state), count + 1, counts + 1)

    state = (split(model.state()), 0, ops.zeros((B,), "int32"))
    tokens, scores = beam_search(step, state, model.start, 7, beam_width=3)
    expected_tokens, expected_scores = model.search(7, beam_width=3)
    np.testing.assert_array_equal(numpy(tokens), numpy(expected_tokens))
    np.testing.assert_allclose(numpy(scores), numpy(expected_scores), rtol=1e-5)


@pytest.mark.parametrize(("batch", "max_length"), [(0, 5), (3, 0), (0, 0)])
def test_empty_batch_and_length_zero_give_empty_results(batch, max_length):
    state = {"coverage": ops.ones((batch, S))}
    start = np.ones((batch,), "int64")
    step = constant([0.01, 0.5, 0.3, 0.19])
    tokens, scores = beam_search(step, state, start, max_length, beam_width=2, coverage_penalty=0.3)
    assert numpy(tokens).shape == (batch, 2, max_length)
    assert numpy(scores).tolist() == [[0.0, np.float32(LOWEST)]] * batch


# === Compiled ===


@pytest.mark.parametrize("max_length", [0, 7])
def test_compiled_search_equals_the_eager_one(max_length):
    model = Recurrent(2, 11)

    def search(start):
        options = {"beam_width": 3, "coverage_penalty": 0.2}
        return beam_search(model.step, model.state(), start, max_length, **options)

    start = ops.convert_to_tensor(model.start)
    for result, expected in zip(compiled(search)(start), search(start), strict=True):
        np.testing.assert_allclose(numpy(result), numpy(expected), rtol=1e-5)


def test_length_may_be_a_tensor():
    model = Recurrent(4, 11)
    expected = [plain_beam(model, row, 5, 3, 0.6) for row in range(B)]
    check(model.search(ops.convert_to_tensor(5, dtype="int32"), beam_width=3), expected)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="only TensorFlow's graphs have unknown sizes")
def test_one_graph_serves_every_batch_size_and_length():
    import tensorflow as tf

    model = Recurrent(4, 11)

    @tf.function(input_signature=[tf.TensorSpec([None, D]), tf.TensorSpec([None, None]), tf.TensorSpec([], tf.int32)])
    def search(hidden, coverage, max_length):
        state = {"hidden": hidden, "coverage": coverage, "is_padding": coverage == 1}
        start = tf.fill([tf.shape(hidden)[0]], START)
        return beam_search(model.step, state, start, max_length, beam_width=3, coverage_penalty=0.2)

    model.start = np.full((B,), START)
    for batch, max_length in [(1, 7), (B, 5), (0, 2), (3, 0)]:
        result = search(model.first[:batch], model.is_padding[:batch].astype("float32"), max_length)
        if max_length:
            check(result, [plain_beam(model, row, max_length, 3, 0.6, 0.2) for row in range(batch)])
        assert numpy(result[0]).shape == (batch, 3, max_length)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="only TensorFlow's graphs have unknown sizes")
@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_vocabulary_of_unknown_size_may_be_smaller_than_the_beam(jit_compile):
    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec([None, None])], jit_compile=jit_compile)
    def search(logits):
        start = tf.zeros([tf.shape(logits)[0]], "int32")
        return beam_search(lambda tokens, _: (tf.gather(logits, tokens), ()), (), start, 2, 5, end=[0], pad=0)

    tokens, scores = search(tf.zeros((2, 1)))
    assert numpy(tokens).tolist() == [[[0, 0]] * 5] * 2
    np.testing.assert_allclose(numpy(scores), [[0.0] + [np.float32(LOWEST)] * 4] * 2, atol=1e-6)
    for result, expected in zip(
        search(tf.zeros((3, 3))),
        beam_search(
            lambda tokens, _: (ops.zeros((ops.shape(tokens)[0], 3)), ()), (), np.zeros(3, "int32"), 2, 5, end=0, pad=0
        ),
        strict=True,
    ):
        np.testing.assert_allclose(numpy(result), numpy(expected), rtol=1e-5)


# === The sampler ===


def test_the_sampler_gives_the_best_or_the_n_best():
    model = Recurrent(0, 11)
    arguments = model.step, model.state(), model.start, 7
    options = {"beam_width": 3, "length_penalty": 1.2, "coverage_penalty": 0.1}
    expected = [numpy(tensor) for tensor in beam_search(*arguments, **options)]
    for number, chosen in [(None, 0), (2, slice(2))]:
        for result, tensor in zip(BeamSearch(**options, num_results=number)(*arguments), expected, strict=True):
            np.testing.assert_array_equal(numpy(result), tensor[:, chosen])


def test_equal_samplers_are_one_key():
    assert len({BeamSearch(), BeamSearch(4, 0.6), decoding.get("beam"), BeamSearch(5)}) == 2


def test_a_name_stands_for_the_sampler():
    assert decoding.get("beam") == BeamSearch()
    assert decoding.get("greedy") is greedy_search
    with pytest.raises(ValueError, match=r'Unknown sampler: \'baem\'. Known: "greedy", "beam"'):
        decoding.get("baem")


# === Errors ===


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"beam_width": 0}, ValueError, "`beam_width` must be a positive integer. Received: 0"),
        ({"beam_width": 2.0}, ValueError, "`beam_width` must be a positive integer. Received: 2.0"),
        (
            {"length_penalty": "0.6"},
            ValueError,
            "`length_penalty` must be a finite number. Received: '0.6' of type str",
        ),
        ({"length_penalty": np.nan}, ValueError, "`length_penalty` must be a finite number. Received: nan"),
        ({"length_penalty": 11}, ValueError, "`length_penalty` must be from -10 to 10. Received: 11"),
        ({"coverage_penalty": -0.1}, ValueError, "`coverage_penalty` must not be negative. Received: -0.1"),
        ({"num_results": 0}, ValueError, "`num_results` must be a positive integer. Received: 0"),
        ({"num_results": 5}, ValueError, "at most `beam_width`. Received num_results=5 with beam_width=4"),
    ],
)
def test_wrong_options_are_named(options, error, message):
    with pytest.raises(error, match=message):
        BeamSearch(**options)
    if "num_results" not in options:
        with pytest.raises(error, match=message):
            beam_search(constant([0.5, 0.5]), (), np.array([1]), 3, **options)


@pytest.mark.parametrize(
    ("state", "received"),
    [
        ((), "no coverage"),
        ({"hidden": np.zeros((1, 2))}, "no coverage"),
        ({"coverage": np.zeros((1,))}, r"shape \(1,\)"),
    ],
)
def test_a_state_without_coverage_is_an_error(state, received):
    message = r'`coverage_penalty` needs a state that is a dictionary with "coverage".*Received: ' + received
    with pytest.raises(ValueError, match=message):
        beam_search(constant([0.5, 0.5]), state, np.array([1]), 3, coverage_penalty=0.2)


def test_a_state_that_is_not_batch_first_is_an_error():
    with pytest.raises(ValueError, match=r"must have the batch as first axis.*Received shape \(5, 7\) for 2 start"):
        beam_search(constant([0.5, 0.5]), [ops.zeros((5, 7))], np.array([1, 1]), 3)


def test_start_and_length_are_checked():
    with pytest.raises(ValueError, match=r"`start` must have shape `\(B,\)`.*Received shape \(1, 1\)"):
        beam_search(constant([0.5, 0.5]), (), np.array([[1]]), 3)
    with pytest.raises(ValueError, match=r"`max_length` must not be negative\. Received: -1"):
        beam_search(constant([0.5, 0.5]), (), np.array([1]), -1)
