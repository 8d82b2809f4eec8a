import math

import keras
import numpy as np
import pytest
from keras import ops
from reference import monotonic
from reference.arrays import normal, to_numpy
from reference.gradients import gradient
from tolerances import EXACT, FLOAT32

from keras_attention import alignments
from keras_attention.alignments import Monotonic
from keras_attention.alignments.monotonic import expected_alignment, first_start
from keras_attention.layers import MultiHeadAttention, SoftAttention
from keras_attention.models import Transformer
from keras_attention.ops import LOWEST

B, N, T, S = 2, 17, 3, 5
OFFSET = -0.5

WALKS = monotonic.walks(T, S)
SELECTIONS = np.array([monotonic.selection(walk, S) for walk in WALKS], "float32")
MASKS = {
    "none": np.ones((T, S), bool),
    "padding": np.array([[True, True, True, False, False]] * T),
    "first_position": np.array([[False, True, True, True, True]] * T),
    "each_query_its_own": np.array([[1, 0, 1, 0, 1], [0, 1, 1, 0, 0], [1, 1, 0, 0, 1]], bool),
    "first_query": np.array([[False] * S, [True] * S, [True] * S]),
    "query_between": np.array([[True] * S, [False] * S, [True] * S]),
    "everything": np.zeros((T, S), bool),
}
EACH_MASK = pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)


def made(**options):
    alignment = Monotonic(**{"initial_offset": OFFSET, **options})
    alignment.build((T, S))
    return alignment


def expectation(probabilities):
    return expected_alignment(ops.array(probabilities), None, first_start(ops.array(probabilities)))[0]


def stopping(scores):
    return np.vectorize(monotonic.sigmoid)(scores.astype("float64") + OFFSET)


def walk_probabilities(scores, mask):
    return np.array([monotonic.probability(walk, stopping(scores), mask) for walk in WALKS])


# === All walks ===


@EACH_MASK
def test_marginals_are_the_mean_of_all_walks(mask):
    scores = normal(T, S)
    probabilities = walk_probabilities(scores, mask)
    np.testing.assert_allclose(probabilities.sum(), 1.0, atol=FLOAT32)
    expected = np.einsum("w,wts->ts", probabilities, SELECTIONS)
    np.testing.assert_allclose(made().marginals(scores, mask), expected, atol=FLOAT32)


@EACH_MASK
def test_log_probabilities_of_all_walks(mask):
    scores = normal(T, S)
    probabilities = walk_probabilities(scores, mask)
    found = to_numpy(made().log_prob(SELECTIONS, scores, mask))
    possible = probabilities > 0
    np.testing.assert_allclose(found[possible], np.log(probabilities[possible]), atol=FLOAT32)
    np.testing.assert_allclose(found[~possible], LOWEST, rtol=FLOAT32)


@EACH_MASK
def test_entropy_is_that_of_all_walks(mask):
    scores = normal(T, S)
    probabilities = walk_probabilities(scores, mask)
    expected = -sum(probability * math.log(probability) for probability in probabilities if probability > 0)
    np.testing.assert_allclose(made().entropy(scores, mask), expected, atol=FLOAT32)


def test_two_stops_of_one_query_are_impossible():
    selection = np.zeros((T, S), "float32")
    selection[0, :2] = 1.0
    assert to_numpy(made().log_prob(selection, normal(T, S))) == np.float32(LOWEST)


def test_the_gradient_of_the_log_probability_equals_finite_differences():
    scores, walk = normal(T, S), (1, 1, 4)
    selection = monotonic.selection(walk, S)
    found = gradient(lambda scores: made().log_prob(selection, scores), scores)
    expected, everything = np.zeros((T, S)), MASKS["none"]
    for index in np.ndindex(T, S):
        step = 1e-6 * (np.arange(T * S).reshape(T, S) == np.ravel_multi_index(index, (T, S)))
        ends = [math.log(monotonic.probability(walk, stopping(scores + sign * step), everything)) for sign in (1, -1)]
        expected[index] = (ends[0] - ends[1]) / 2e-6
    np.testing.assert_allclose(found, expected, atol=FLOAT32)


# === The expectation ===


def test_the_expectation_by_hand():
    stopping = np.array([[0.5, 0.25], [0.5, 0.75]], "float32")
    # Query 0: 0.5, then (1 - 0.5) · 0.25. Query 1: 0.5 · 0.5, then (0.5 · 0.5 + 0.125) · 0.75.
    np.testing.assert_allclose(expectation(stopping), [[0.5, 0.125], [0.25, 0.28125]], atol=FLOAT32)


@pytest.mark.parametrize("kind", ["any", "zeros_and_ones", "near_zero", "near_one"])
def test_the_expectation_is_exact_at_a_hundred_positions(kind, rng):
    shape = (13, 101)
    probabilities = {
        "any": rng.random(shape),
        "zeros_and_ones": rng.choice([0.0, 1.0, 0.3], shape, p=[0.8, 0.1, 0.1]),
        "near_zero": 1e-3 * rng.random(shape),
        "near_one": 1 - 1e-7 * rng.random(shape),
    }[kind].astype("float32")
    expected = monotonic.expectation(probabilities.astype("float64"))
    np.testing.assert_allclose(expectation(probabilities), expected, atol=FLOAT32, rtol=FLOAT32)


@pytest.mark.parametrize("probabilities", [[0.0, 1.0, 0.0, 1.0, 0.0], [1.0] * S, [0.0] * S, [0.5, 0.1, 0.9, 0.3, 0.7]])
def test_the_gradient_of_the_expectation_is_exact_also_at_zero_and_one(probabilities):
    probabilities, factors = np.array([probabilities] * T, "float32"), normal(T, S)
    found = gradient(lambda probabilities: ops.sum(expectation(probabilities) * ops.array(factors)), probabilities)
    expected = np.zeros((T, S))
    for index in np.ndindex(T, S):
        ends = [probabilities.astype("float64") for _ in range(2)]
        ends[0][index] += 1e-6  # the expectation is a polynomial: it does not mind what is no probability
        ends[1][index] -= 1e-6
        expected[index] = (factors * (monotonic.expectation(ends[0]) - monotonic.expectation(ends[1]))).sum() / 2e-6
    np.testing.assert_allclose(found, expected, atol=FLOAT32)


def test_any_axes_may_stand_left_of_the_queries_and_a_mask_broadcasts(rng):
    scores, mask = normal(B, N, T, S), rng.random((B, 1, 1, S)) < 0.6
    together = made().marginals(scores, mask)
    for b, n in ((0, 0), (1, 5)):
        np.testing.assert_allclose(together[b, n], made().marginals(scores[b, n], mask[b, 0]), atol=FLOAT32)


# === Inference ===


def test_inference_is_the_first_position_that_is_likely_from_where_the_last_query_stopped(rng):
    for seed in range(3):
        scores = normal(7, 11, seed=seed)
        expected = monotonic.hard(scores + OFFSET >= 0)
        np.testing.assert_allclose(made()(scores), expected, atol=EXACT)


def test_a_query_that_stops_nowhere_attends_to_nothing_nor_do_those_after_it():
    scores = np.array([[1.0, 0, 0, 0, 0], [0.0] * S, [1.0] * S], "float32")
    assert to_numpy(made()(scores)).tolist() == [[1.0, 0, 0, 0, 0], [0.0] * S, [0.0] * S]


def test_a_masked_position_is_passed_over_and_a_masked_query_is_skipped():
    scores = np.ones((T, S), "float32")
    assert to_numpy(made()(scores, mask=MASKS["first_position"])).tolist() == [[0.0, 1.0, 0, 0, 0]] * T
    scores[2, 0] = -1.0
    expected = [[1.0, 0, 0, 0, 0], [0.0] * S, [0.0, 1.0, 0, 0, 0]]
    assert to_numpy(made()(scores, mask=MASKS["query_between"])).tolist() == expected


# === Step by step ===

MASKS_OF_STEPS = {  # of seven queries at eleven positions
    "none": np.ones((7, 11), bool),
    "padding": np.arange(11)[None] < [[7]] * 7,
    "queries_without_choice": np.ones((7, 11), bool) & (np.arange(7) % 3 > 0)[:, None],
    "causal": np.arange(11)[None] <= np.arange(7)[:, None] + 1,
    "behind_the_walk": np.arange(11)[None] < np.array([11, 11, 1, 11, 11, 11, 11])[:, None],
}


def in_steps(alignment, scores, mask, lengths, training):
    state, weights, begin = alignment.initial_state((*scores.shape[:-2], scores.shape[-1])), [], 0
    for length in lengths:
        rows = slice(begin, begin + length)
        row, state = alignment.step(scores[..., rows, :], mask[rows], state, training=training)
        weights.append(to_numpy(row))
        begin += length
    return np.concatenate(weights, axis=-2)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("lengths", [[1] * 7, [2, 0, 3, 1, 1], [7]])
@pytest.mark.parametrize("mask", MASKS_OF_STEPS.values(), ids=MASKS_OF_STEPS)
def test_steps_give_the_weights_of_one_call(mask, lengths, training):
    scores, alignment = 2.0 * normal(B, 3, 7, 11), made(noise=0.0)
    expected = to_numpy(alignment(scores, mask=mask, training=training))
    assert expected.any()
    found = in_steps(alignment, ops.array(scores), mask, lengths, training)
    np.testing.assert_allclose(found, expected, atol=FLOAT32 if training else EXACT)


@pytest.mark.parametrize("training", [False, True])
def test_after_a_diverged_step_the_rows_of_its_example_are_nan(training):
    scores, mask = normal(B, 7, 11), MASKS_OF_STEPS["queries_without_choice"]
    scores[1, 2, 5] = np.nan
    alignment = made(noise=0.0)
    expected = to_numpy(alignment(scores, mask=mask, training=training))
    assert np.isnan(expected[1, 2:]).any() and np.isfinite(expected[0]).all()
    found = in_steps(alignment, ops.array(scores), mask, [1] * 7, training)
    np.testing.assert_allclose(found, expected, atol=FLOAT32)


def test_after_a_query_that_stopped_nowhere_no_step_attends():
    alignment, state = made(), {"weights": ops.zeros((B, S))}
    weights, state = alignment.step(ops.ones((B, 1, S)), None, state)
    assert not to_numpy(weights).any() and not to_numpy(state["weights"]).any()


def test_the_state_is_in_float32_also_of_half_precision():
    scores, state = ops.ones((B, 1, S), "float16"), made().initial_state((B, S), "float16")
    weights, following = made().step(scores, None, state)
    for tensor, dtype in ((state["weights"], "float32"), (following["weights"], "float32"), (weights, "float16")):
        assert keras.backend.standardize_dtype(tensor.dtype) == dtype


# === Training ===


def test_training_without_noise_gives_the_marginals():
    scores, alignment = normal(T, S), made(noise=0.0)
    np.testing.assert_allclose(alignment(scores, training=True), alignment.marginals(scores), atol=FLOAT32)


def test_the_noise_is_normal_with_the_given_deviation():
    count = 20_000
    weights = to_numpy(made(noise=0.7, seed=3)(np.full((count, 1, 1), 0.2, "float32"), training=True))
    noise = np.log(weights / (1 - weights)) - (0.2 + OFFSET)
    np.testing.assert_allclose(noise.mean(), 0.0, atol=5 * 0.7 / math.sqrt(count))
    np.testing.assert_allclose(noise.std(), 0.7, atol=5 * 0.7 / math.sqrt(2 * count))
    np.testing.assert_allclose((np.abs(noise) < 0.7).mean(), 0.6827, atol=5 * math.sqrt(0.22 / count))


def test_a_seed_gives_the_same_noise_and_every_call_another():
    scores = normal(T, S)
    first, second = (made(seed=3) for _ in range(2))
    results = [to_numpy(alignment(scores, training=True)) for alignment in (first, second, first)]
    np.testing.assert_allclose(results[0], results[1], atol=EXACT)
    assert np.abs(results[0] - results[2]).max() > FLOAT32


def test_frequencies_of_samples_approach_the_marginals():
    count, mask = 5_000, MASKS["query_between"]
    sample = to_numpy(made().sample(np.broadcast_to(normal(T, S), (count, T, S)), mask, seed=11))
    assert set(np.unique(sample)) == {0.0, 1.0}
    assert (to_numpy(made().log_prob(sample[:100], normal(T, S), mask)) > -100).all()
    marginals = to_numpy(made().marginals(normal(T, S), mask))
    deviations = np.sqrt(marginals * (1 - marginals) / count)
    assert (np.abs(sample.mean(axis=0) - marginals) <= 5 * deviations + FLOAT32).all()


def test_no_gradient_flows_through_the_mode_or_a_sample():
    for choose in (made().mode, lambda scores: made().sample(scores, seed=3)):
        assert not gradient(lambda scores, choose=choose: ops.sum(choose(scores)[..., 0]), normal(T, S)).any()


# === Numbers ===


@pytest.mark.parametrize("content", [np.nan, np.inf, -np.inf, 1e30])
def test_content_of_masked_positions_has_no_influence(content):
    mask, alignment, factors = MASKS["each_query_its_own"], made(), normal(T, S, seed=1)
    scores = normal(T, S)
    filled = np.where(mask, scores, content).astype("float32")
    for function in (
        lambda scores: ops.sum(alignment.marginals(scores, mask) * ops.array(factors)),
        lambda scores: alignment.entropy(scores, mask),
        lambda scores: alignment.log_prob(monotonic.selection((0, 2, 4), S), scores, mask),
    ):
        np.testing.assert_allclose(function(ops.array(filled)), function(ops.array(scores)), atol=FLOAT32)
        found = gradient(function, filled)
        np.testing.assert_allclose(found, gradient(function, scores), atol=FLOAT32)
        assert not np.where(mask, 0.0, found).any()


def test_huge_scores_are_certain_and_have_finite_gradients():
    scores = np.array([[-1e30, 1e30, -1e30], [-1e30, -1e30, 1e30], [1e30, -1e30, 3e38]], "float32")
    alignment, walk = made(), np.array([[0.0, 1, 0], [0, 0, 1], [0, 0, 1]], "float32")
    np.testing.assert_allclose(alignment.marginals(scores), walk, atol=EXACT)
    for function in (lambda scores: alignment.log_prob(walk, scores), alignment.entropy):
        np.testing.assert_allclose(function(ops.array(scores)), 0.0, atol=FLOAT32)
        assert np.isfinite(gradient(function, scores)).all()
    assert np.isfinite(gradient(lambda scores: ops.sum(alignment.marginals(scores)[..., 1]), scores)).all()


@pytest.mark.parametrize("shape", [(B, T, 0), (0, T, S), (B, 0, S)])
def test_empty_scores_give_empty_results(shape):
    alignment, scores = made(), ops.zeros(shape)
    for weights in (alignment(scores), alignment(scores, training=True), alignment.sample(scores, seed=1)):
        assert weights.shape == shape
    for result in (alignment.entropy(scores), alignment.log_prob(scores, scores)):
        assert result.shape == shape[:1]
        if 0 in shape[1:]:
            assert not to_numpy(result).any()


@pytest.mark.parametrize("training", [False, True])
def test_weights_of_half_precision_scores_are_computed_in_float32(training):
    scores = ops.cast(normal(T, S), "float16")
    weights = made(noise=0.0, dtype="mixed_float16")(scores, training=training)
    expected = made(noise=0.0)(ops.cast(scores, "float32"), training=training)
    assert keras.backend.standardize_dtype(weights.dtype) == "float16"
    np.testing.assert_allclose(ops.cast(weights, "float32"), expected, atol=1e-3)


# === In a layer ===


@pytest.mark.parametrize("kind", ["soft", "heads"])
def test_attention_layers_take_it_by_name(kind):
    layer = SoftAttention(alignment="monotonic") if kind == "soft" else MultiHeadAttention(2, 3, alignment="monotonic")
    query, value = 3.0 * normal(B, T, 7), 3.0 * normal(B, S, 7, seed=1)
    layer(query, value)
    layer.alignment.offset.assign(0.0)
    _, weights = to_numpy(layer(query, value, return_attention_scores=True))
    assert set(np.unique(weights)) == {0.0, 1.0}
    assert (weights.sum(axis=-1) <= 1.0).all()
    _, weights = to_numpy(layer(query, value, return_attention_scores=True, training=True))
    assert ((weights > 0.0) & (weights < 1.0)).any()
    assert (weights.sum(axis=-1) <= 1.0 + FLOAT32).all()


def test_the_name_stands_for_the_offset_and_the_noise_of_the_paper():
    alignment = alignments.get("monotonic")
    alignment.build((T, S))
    assert (to_numpy(alignment.offset.value), alignment.noise) == (-4.0, 1.0)


def test_an_alignment_that_is_not_built_says_so():
    with pytest.raises(ValueError, match=r"A Monotonic alignment must be built\. Call it once"):
        Monotonic().marginals(normal(T, S))


@pytest.mark.parametrize("noise", [-0.5, np.nan, "1"])
def test_a_noise_that_is_no_deviation_is_refused(noise):
    with pytest.raises(ValueError, match=rf"`noise` must be a finite number of 0 or more. Received: {noise!r}"):
        Monotonic(noise=noise)


@pytest.mark.parametrize("lengths", [[1] * 7, [2, 4, 1]])
def test_heads_with_a_cache_walk_as_without_one(lengths):
    attention = MultiHeadAttention(num_heads=3, key_dim=5, alignment=Monotonic(initial_offset=0.5))
    inputs = ops.convert_to_tensor(3.0 * normal(B, 7, 11))
    padding = np.arange(7) >= [[0], [2]]
    expected = to_numpy(attention(inputs, inputs, value_mask=padding, use_causal_mask=True))
    cache, begin, outputs = attention.empty_cache(B, 11), 0, []
    filled = np.pad(padding, [(0, 0), (0, 4)])
    for length in lengths:
        part = inputs[:, begin : begin + length]
        options = {"value_mask": filled, "use_causal_mask": True, "cache": cache, "cache_index": begin}
        output, cache = attention(part, part, **options)
        outputs.append(to_numpy(output))
        begin += length
    np.testing.assert_allclose(np.concatenate(outputs, axis=1), expected, atol=FLOAT32)


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="the same steps, each of which JAX compiles for long")
def test_a_transformer_decodes_step_by_step_as_at_once(rng):
    sizes = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 13, "seed": 5}
    model = Transformer(29, alignment=Monotonic(initial_offset=0.5), **sizes)
    source, target = rng.integers(3, 29, (3, 11)), rng.integers(3, 29, (3, 7))
    source[1, 7:] = 0
    expected = to_numpy(model({"source": source, "target": target}))
    weights = model.attention_weights({"source": source, "target": target})
    assert all(set(np.unique(to_numpy(each))) == {0.0, 1.0} for each in keras.tree.flatten(weights))
    state, logits = model.initial_state(source, 7), []
    for t in range(7):
        row, state = model.decode_step(ops.convert_to_tensor(target[:, t]), state)
        logits.append(to_numpy(row))
    np.testing.assert_allclose(np.stack(logits, axis=1), expected, atol=1e-4)
    found = model.generate({"source": source}, max_length=5, sampler="beam")
    assert found.shape == (3, 5)


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="JAX has no float64 unless it is told so before it starts")
def test_scores_in_double_precision_have_noise():
    scores = ops.convert_to_tensor(np.zeros((3, 5)), "float64")
    assert keras.backend.standardize_dtype(Monotonic(seed=1)(scores, training=True).dtype) == "float64"


@pytest.mark.parametrize("kind", [SoftAttention, lambda **options: MultiHeadAttention(2, 5, **options)])
@pytest.mark.parametrize("name", ["monotonic", "sampled"])
def test_a_named_alignment_draws_by_the_seed_of_its_layer(kind, name):
    inputs = ops.convert_to_tensor(normal(2, 3, 7))
    results = []
    for seed in (1, 1, 2):
        keras.utils.set_random_seed(5)
        layer = kind(alignment=name, seed=seed)
        results.append(to_numpy(layer(ops.zeros_like(inputs), inputs, training=True)))  # all positions alike
    np.testing.assert_array_equal(results[0], results[1])
    assert (results[0] != results[2]).any()
