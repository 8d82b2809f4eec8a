import doctest

import keras
import numpy as np
import pytest
from keras import ops
from reference.markov import markov

from keras_attention.decoding import greedy, greedy_search
from keras_attention.tokens import END, PAD, START

V = 7
BACKEND = keras.backend.backend()


def random_table(seed):
    """Logits of the next token for each last one."""
    return np.random.default_rng(seed).normal(scale=2.0, size=(V, V)).astype("float32")


def table_of(transitions):
    """Logits in which `transitions[token]` follows `token` with probability 0.9; elsewhere the probability is even."""
    probabilities = np.full((V, V), 1.0 / V)
    for token, following in transitions.items():
        probabilities[token] = 0.1 / (V - 1)
        probabilities[token, following] = 0.9
    return np.log(probabilities).astype("float32")


def reference(table, start, max_length, end=END, pad=PAD):
    """Greedy search on a table, one row and one token at a time."""
    tokens, scores = np.full((len(start), max_length), pad), np.zeros(len(start))
    for row, last in enumerate(start):
        for index in range(max_length):
            logits = table[last].astype("float64")
            log_probabilities = logits - np.log(np.sum(np.exp(logits)))
            allowed = [v for v in range(len(logits)) if v != pad or pad == end]
            last = max(allowed, key=lambda v: log_probabilities[v])
            tokens[row, index] = last
            scores[row] += log_probabilities[last]
            if last == end:
                break
    return tokens, scores


def compiled(function):
    """`function` as the running backend compiles it: XLA in TensorFlow and JAX; torch runs it as it is."""
    if BACKEND == "tensorflow":
        import tensorflow as tf

        return tf.function(function, jit_compile=True)
    if BACKEND == "jax":
        import jax

        return jax.jit(function)
    return function


def check(result, expected):
    tokens, scores = (ops.convert_to_numpy(tensor) for tensor in result)
    assert tokens.dtype == "int32"
    assert scores.dtype == "float32"
    np.testing.assert_array_equal(tokens, expected[0])
    np.testing.assert_allclose(scores, expected[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("seed", range(11))
def test_result_equals_a_loop_over_rows_and_tokens(seed):
    table = random_table(seed)
    start = np.arange(V)
    check(greedy_search(markov(table), (), start, 5), reference(table, start, 5))


def test_rows_end_at_different_steps_and_are_padded():
    table = table_of({START: 3, 3: 4, 4: END, 5: END, 6: 6})
    tokens, scores = greedy_search(markov(table), (), np.array([START, 4, 6, 5]), 5)
    expected = [[3, 4, END, PAD, PAD], [END, PAD, PAD, PAD, PAD], [6, 6, 6, 6, 6], [END, PAD, PAD, PAD, PAD]]
    check((tokens, scores), (expected, np.log(0.9) * np.array([3, 1, 5, 1])))


@pytest.mark.skipif(BACKEND == "jax", reason="JAX calls the step function once, to trace it: calls can't be counted")
def test_search_stops_as_soon_as_every_row_has_ended():
    step, calls = markov(table_of({START: 3, 3: 4, 4: END})), []

    def counted_step(tokens, state):
        calls.append(ops.convert_to_numpy(tokens).tolist())
        return step(tokens, state)

    greedy_search(counted_step, (), np.array([START, 4]), 1_009)
    assert calls == [[START, 4], [3, END], [4, PAD]]


def test_live_rows_are_not_disturbed_by_what_ended_rows_do():
    table = table_of({START: 3, 3: 3, 4: END})
    table[PAD] = np.nan
    expected = [[3, 3, 3], [END, PAD, PAD]]
    check(greedy_search(markov(table), (), np.array([START, 4]), 3), (expected, np.log(0.9) * np.array([3, 1])))


def test_live_rows_never_emit_padding_and_are_scored_by_the_full_distribution():
    logits = np.log(np.array([[0.6, 0.05, 0.05, 0.3]], "float32"))

    def step(tokens, state):
        return ops.convert_to_tensor(logits), state

    check(greedy_search(step, (), np.array([START]), 2), ([[3, 3]], [2 * np.log(0.3)]))


def test_padding_may_be_the_end_symbol():
    table = random_table(1)
    table[START] = [0, 0, 0, 5, 0, 0, 0]
    table[3] = [5, 0, 0, 0, 0, 0, 0]
    start = np.array([START, 3, 5])
    tokens, scores = greedy_search(markov(table), (), start, 5, end=0, pad=0)
    check((tokens, scores), reference(table, start, 5, end=0, pad=0))
    assert ops.convert_to_numpy(tokens)[:2].tolist() == [[3, 0, 0, 0, 0], [0, 0, 0, 0, 0]]


def test_other_special_ids_are_used():
    table = random_table(3)
    start = np.arange(V)
    check(greedy_search(markov(table), (), start, 5, end=6, pad=4), reference(table, start, 5, end=6, pad=4))
    outside = greedy_search(markov(table), (), start, 5, end=6, pad=-1)
    check(outside, reference(table, start, 5, end=6, pad=-1))


def test_state_is_carried_as_any_nest():
    table = random_table(5)

    def step(tokens, state):
        (table, counts), index = state["memory"], state["index"]
        counts = counts + ops.one_hot(tokens, V, dtype="float32")
        # What was emitted before becomes less likely.
        return ops.take(table, tokens, axis=0) - 3.0 * counts, {"memory": (table, counts), "index": index + 1}

    state = {"memory": (ops.convert_to_tensor(table), ops.zeros((2, V))), "index": 0}
    tokens, scores = greedy_search(step, state, np.array([START, 4]), 5)
    expected_tokens, expected_scores = np.full((2, 5), PAD), np.zeros(2)
    for row, last in enumerate([START, 4]):
        counts = np.zeros(V)
        for index in range(5):
            counts[last] += 1
            logits = table[last] - 3.0 * counts
            log_probabilities = logits - np.log(np.sum(np.exp(logits)))
            last = 1 + int(np.argmax(log_probabilities[1:]))
            expected_tokens[row, index], expected_scores[row] = last, expected_scores[row] + log_probabilities[last]
            if last == END:
                break
    check((tokens, scores), (expected_tokens, expected_scores))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_logits_are_scored_in_float32(dtype):
    table = table_of({START: 3, 3: 3})
    half = ops.cast(ops.convert_to_tensor(table), dtype)

    def step(tokens, state):
        return ops.take(half, tokens, axis=0), state

    tokens, scores = greedy_search(step, (), np.array([START]), 5)
    assert ops.convert_to_numpy(tokens).tolist() == [[3] * 5]
    np.testing.assert_allclose(ops.convert_to_numpy(scores), [5 * np.log(0.9)], atol=0.02)


@pytest.mark.parametrize(("batch", "max_length"), [(0, 5), (3, 0), (0, 0)])
def test_empty_batch_and_length_zero_give_empty_results(batch, max_length):
    tokens, scores = greedy_search(markov(random_table(0)), (), np.ones((batch,), "int64"), max_length)
    assert ops.convert_to_numpy(tokens).shape == (batch, max_length)
    assert ops.convert_to_numpy(scores).tolist() == [0.0] * batch


@pytest.mark.parametrize("max_length", [0, 1, 5])
def test_compiled_search_equals_the_eager_one(max_length):
    table = random_table(2)

    def search(start):
        return greedy_search(markov(table), {"unused": ops.zeros(ops.shape(start))}, start, max_length)

    start = ops.convert_to_tensor(np.arange(V), dtype="int32")
    check(compiled(search)(start), [ops.convert_to_numpy(tensor) for tensor in search(start)])


def test_length_may_be_a_tensor():
    table = random_table(4)
    length = ops.convert_to_tensor(3, dtype="int32")
    check(greedy_search(markov(table), (), np.arange(V), length), reference(table, np.arange(V), 3))
    check(greedy_search(markov(table), (), np.arange(V), np.int64(3)), reference(table, np.arange(V), 3))


@pytest.mark.skipif(BACKEND != "tensorflow", reason="only TensorFlow's graphs have unknown sizes")
def test_one_graph_serves_every_batch_size_and_length():
    import tensorflow as tf

    table = random_table(6)
    search = tf.function(
        lambda start, max_length: greedy_search(markov(table), (), start, max_length),
        input_signature=[tf.TensorSpec([None], tf.int64), tf.TensorSpec([], tf.int32)],
    )
    for batch, max_length in [(1, 5), (7, 3), (0, 2), (3, 0)]:
        start = np.arange(batch) % V
        check(search(start, max_length), reference(table, start, max_length))


@pytest.mark.skipif(BACKEND != "tensorflow", reason="only TensorFlow's graphs have unknown sizes")
def test_step_may_lose_the_static_batch_size():
    import tensorflow as tf

    table = random_table(8)

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32)])
    def search(memory):
        def step(tokens, state):
            logits = tf.gather(table, tf.boolean_mask(tokens, tokens >= 0))
            assert logits.shape[0] is None
            return logits, state + memory

        return greedy_search(step, tf.zeros((1, 5)), tf.ones((1,), tf.int32), 5)

    check(search(tf.zeros((1, 5))), reference(table, [1], 5))


def test_the_example_of_the_manual_is_true():
    assert doctest.testmod(greedy).failed == 0


@pytest.mark.parametrize("shape", [(), (2, 1)])
def test_start_of_another_rank_is_an_error(shape):
    with pytest.raises(ValueError, match=r"`start` must have shape `\(B,\)`.*Received shape \(" + str(shape)[1:-1]):
        greedy_search(markov(random_table(0)), (), np.ones(shape, "int32"), 5)


def test_start_that_is_not_integer_is_an_error():
    with pytest.raises(TypeError, match=r"`start` must hold integer ids\. Received dtype float32"):
        greedy_search(markov(random_table(0)), (), np.ones((2,), "float32"), 5)


def test_negative_length_is_an_error():
    with pytest.raises(ValueError, match=r"`max_length` must not be negative\. Received: -1"):
        greedy_search(markov(random_table(0)), (), np.ones((2,), "int32"), -1)


@pytest.mark.parametrize("max_length", [2.5, "5", np.array([5]), np.float32(5)])
def test_length_that_is_not_an_integer_is_an_error(max_length):
    with pytest.raises(TypeError, match=r"`max_length` must be an integer or an integer scalar tensor\. Received: "):
        greedy_search(markov(random_table(0)), (), np.ones((2,), "int32"), max_length)


def search_with(step, state=()):
    return greedy_search(step, state, np.ones((2,), "int32"), 5)


def test_step_without_a_pair_is_an_error():
    with pytest.raises(TypeError, match=r"`step` must return a pair `\(logits, state\)`"):
        search_with(lambda tokens, state: ops.zeros((2, V)))


@pytest.mark.parametrize("shape", [(2, 1, V), (2,), (3, V)])
def test_logits_of_another_shape_are_an_error(shape):
    with pytest.raises(ValueError, match=r"logits of shape `\(B, V\)`.*Received logits of shape " + f"\\({shape[0]}"):
        search_with(lambda tokens, state: (ops.zeros(shape), state))


def test_state_of_another_structure_is_an_error():
    with pytest.raises(ValueError, match=r"in which it came\. Received: {'a': '\*'}, returned: {'b': '\*'}"):
        search_with(lambda tokens, state: (ops.zeros((2, V)), {"b": state["a"]}), {"a": ops.zeros((2, 3))})


def test_growing_state_is_an_error():
    def step(tokens, state):
        return ops.zeros((2, V)), ops.concatenate([state, state], axis=1)

    with pytest.raises(ValueError, match=r"Received shape \(2, 3\) of float32, returned shape \(2, 6\) of float32"):
        search_with(step, ops.zeros((2, 3)))


def test_state_of_another_dtype_is_an_error():
    with pytest.raises(ValueError, match=r"shape \(2, 3\) of float32, returned shape \(2, 3\) of float16"):
        search_with(lambda tokens, state: (ops.zeros((2, V)), ops.cast(state, "float16")), ops.zeros((2, 3)))
