import functools
import math

import keras
import numpy as np
import pytest
from compiled import compiled, jitted
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


shared = functools.cache(made)  # so that JAX compiles it once


def run(method, *tensors, alignment=None, **options):
    return to_numpy(compiled(getattr(Monotonic, method), alignment or shared(), **options)(*tensors))


@jitted
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
    np.testing.assert_allclose(run("marginals", scores, mask), expected, atol=FLOAT32)


@EACH_MASK
def test_log_probabilities_of_all_walks(mask):
    scores = normal(T, S)
    probabilities = walk_probabilities(scores, mask)
    found = run("log_prob", SELECTIONS, scores, mask)
    possible = probabilities > 0
    np.testing.assert_allclose(found[possible], np.log(probabilities[possible]), atol=FLOAT32)
    np.testing.assert_allclose(found[~possible], LOWEST, rtol=FLOAT32)


@EACH_MASK
def test_entropy_is_that_of_all_walks(mask):
    scores = normal(T, S)
    probabilities = walk_probabilities(scores, mask)
    expected = -sum(probability * math.log(probability) for probability in probabilities if probability > 0)
    np.testing.assert_allclose(run("entropy", scores, mask), expected, atol=FLOAT32)


def test_two_stops_of_one_query_are_impossible():
    selections = np.zeros_like(SELECTIONS)
    selections[:, 0, :2] = 1.0
    assert (run("log_prob", selections, normal(T, S), MASKS["none"]) == np.float32(LOWEST)).all()


def test_the_gradient_of_the_log_probability_equals_finite_differences():
    scores, walk = normal(T, S), (1, 1, 4)
    selection = monotonic.selection(walk, S)
    found = gradient(lambda scores: shared().log_prob(selection, scores), scores)
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


def weighted_expectation(probabilities, factors):
    return ops.sum(expectation(probabilities) * factors)


@pytest.mark.parametrize("probabilities", [[0.0, 1.0, 0.0, 1.0, 0.0], [1.0] * S, [0.0] * S, [0.5, 0.1, 0.9, 0.3, 0.7]])
def test_the_gradient_of_the_expectation_is_exact_also_at_zero_and_one(probabilities):
    probabilities, factors = np.array([probabilities] * T, "float32"), normal(T, S)
    found = gradient(weighted_expectation, probabilities, factors)
    expected = np.zeros((T, S))
    for index in np.ndindex(T, S):
        ends = [probabilities.astype("float64") for _ in range(2)]
        ends[0][index] += 1e-6  # the expectation is a polynomial: it does not mind what is no probability
        ends[1][index] -= 1e-6
        expected[index] = (factors * (monotonic.expectation(ends[0]) - monotonic.expectation(ends[1]))).sum() / 2e-6
    np.testing.assert_allclose(found, expected, atol=FLOAT32)


def test_any_axes_may_stand_left_of_the_queries_and_a_mask_broadcasts(rng):
    scores, mask = normal(B, N, T, S), rng.random((B, 1, 1, S)) < 0.6
    together = run("marginals", scores, mask)
    for b, n in ((0, 0), (1, 5)):
        mask_of_one = np.broadcast_to(mask[b, 0], (T, S))
        np.testing.assert_allclose(together[b, n], run("marginals", scores[b, n], mask_of_one), atol=FLOAT32)


# === Inference ===


def test_inference_is_the_first_position_that_is_likely_from_where_the_last_query_stopped(rng):
    for seed in range(3):
        scores = normal(7, 11, seed=seed)
        expected = monotonic.hard(scores + OFFSET >= 0)
        np.testing.assert_allclose(run("__call__", scores), expected, atol=EXACT)


def test_a_query_that_stops_nowhere_attends_to_nothing_nor_do_those_after_it():
    scores = np.array([[1.0, 0, 0, 0, 0], [0.0] * S, [1.0] * S], "float32")
    assert run("__call__", scores, MASKS["none"]).tolist() == [[1.0, 0, 0, 0, 0], [0.0] * S, [0.0] * S]


def test_a_masked_position_is_passed_over_and_a_masked_query_is_skipped():
    scores = np.ones((T, S), "float32")
    assert run("__call__", scores, MASKS["first_position"]).tolist() == [[0.0, 1.0, 0, 0, 0]] * T
    scores[2, 0] = -1.0
    expected = [[1.0, 0, 0, 0, 0], [0.0] * S, [0.0, 1.0, 0, 0, 0]]
    assert run("__call__", scores, MASKS["query_between"]).tolist() == expected


# === Step by step ===

MASKS_OF_STEPS = {  # of seven queries at eleven positions
    "none": np.ones((7, 11), bool),
    "padding": np.arange(11)[None] < [[7]] * 7,
    "queries_without_choice": np.ones((7, 11), bool) & (np.arange(7) % 3 > 0)[:, None],
    "causal": np.arange(11)[None] <= np.arange(7)[:, None] + 1,
    "behind_the_walk": np.arange(11)[None] < np.array([11, 11, 1, 11, 11, 11, 11])[:, None],
}


def in_steps(scores, mask, lengths, training):
    alignment, weights, begin = shared(noise=0.0), [], 0
    state = alignment.initial_state((*scores.shape[:-2], scores.shape[-1]))
    for length in lengths:
        rows = slice(begin, begin + length)
        step = compiled(Monotonic.step, alignment, training=training)
        row, state = step(scores[..., rows, :], mask[..., rows, :], state)
        weights.append(to_numpy(row))
        begin += length
    return np.concatenate(weights, axis=-2)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("lengths", [[1] * 7, [2, 0, 5]])
def test_steps_give_the_weights_of_one_call(lengths, training):
    masks = np.stack(list(MASKS_OF_STEPS.values()))[:, None]
    scores = 2.0 * normal(len(masks), 3, 7, 11)
    expected = run("__call__", scores, masks, alignment=shared(noise=0.0), training=training)
    assert expected.any(axis=(1, 2, 3)).all()
    found = in_steps(scores, masks, lengths, training)
    np.testing.assert_allclose(found, expected, atol=FLOAT32 if training else EXACT)


@pytest.mark.parametrize("training", [False, True])
def test_after_a_diverged_step_the_rows_of_its_example_are_nan(training):
    masks = np.broadcast_to(MASKS_OF_STEPS["queries_without_choice"], (len(MASKS_OF_STEPS), 1, 7, 11))
    scores = normal(len(masks), 3, 7, 11)
    scores[1, :, 2, 5] = np.nan
    expected = run("__call__", scores, masks, alignment=shared(noise=0.0), training=training)
    assert np.isnan(expected[1, :, 2:]).any() and np.isfinite(expected[[0, 2, 3, 4]]).all()
    np.testing.assert_allclose(in_steps(scores, masks, [1] * 7, training), expected, atol=FLOAT32)


def test_after_a_query_that_stopped_nowhere_no_step_attends():
    weights, state = run("step", np.ones((B, 1, S), "float32"), None, {"weights": np.zeros((B, S), "float32")})
    assert not weights.any() and not state["weights"].any()


def test_the_state_is_in_float32_also_of_half_precision():
    scores, state = ops.ones((B, 1, S), "float16"), made().initial_state((B, S), "float16")
    weights, following = compiled(Monotonic.step, shared())(scores, None, state)
    for tensor, dtype in ((state["weights"], "float32"), (following["weights"], "float32"), (weights, "float16")):
        assert keras.backend.standardize_dtype(tensor.dtype) == dtype


# === Training ===


def test_training_without_noise_gives_the_marginals():
    scores, mask = normal(T, S), MASKS["none"]
    weights = run("__call__", scores, mask, alignment=shared(noise=0.0), training=True)
    np.testing.assert_allclose(weights, run("marginals", scores, mask), atol=FLOAT32)


def test_the_noise_is_normal_with_the_given_deviation():
    count = 20_000
    scores = np.full((count, 1, 1), 0.2, "float32")
    weights = run("__call__", scores, alignment=made(noise=0.7, seed=3), training=True)
    noise = np.log(weights / (1 - weights)) - (0.2 + OFFSET)
    np.testing.assert_allclose(noise.mean(), 0.0, atol=5 * 0.7 / math.sqrt(count))
    np.testing.assert_allclose(noise.std(), 0.7, atol=5 * 0.7 / math.sqrt(2 * count))
    np.testing.assert_allclose((np.abs(noise) < 0.7).mean(), 0.6827, atol=5 * math.sqrt(0.22 / count))


def test_a_seed_gives_the_same_noise_and_every_call_another():
    scores = normal(T, S)
    first, second = (made(seed=3) for _ in range(2))
    results = [run("__call__", scores, alignment=alignment, training=True) for alignment in (first, second, first)]
    np.testing.assert_allclose(results[0], results[1], atol=EXACT)
    assert np.abs(results[0] - results[2]).max() > FLOAT32


def test_frequencies_of_samples_approach_the_marginals():
    count, scores, mask = 5_000, normal(T, S), MASKS["query_between"]
    sample = run("sample", np.broadcast_to(scores, (count, T, S)), mask, seed=11)
    assert set(np.unique(sample)) == {0.0, 1.0}
    assert (run("log_prob", sample[: len(SELECTIONS)], scores, mask) > -100).all()
    marginals = run("marginals", scores, mask)
    deviations = np.sqrt(marginals * (1 - marginals) / count)
    assert (np.abs(sample.mean(axis=0) - marginals) <= 5 * deviations + FLOAT32).all()


def test_no_gradient_flows_through_the_mode_or_a_sample():
    for choose in (shared().mode, lambda scores: shared().sample(scores, seed=3)):
        assert not gradient(lambda scores, choose=choose: ops.sum(choose(scores)[..., 0]), normal(T, S)).any()


# === Numbers ===


def all_results(alignment, scores, mask, selection):
    """Marginals, entropy and log-probability, the first with factors that tell the positions apart."""
    factors = normal(*scores.shape[-2:], seed=1)
    marginals, entropy = alignment.marginals(scores, mask), alignment.entropy(scores, mask)
    return marginals, entropy, alignment.log_prob(selection, scores, mask), ops.sum(marginals * factors)


def sum_of_results(scores, mask, selection, which):
    return ops.sum(
        ops.stack([ops.sum(result) for result in all_results(shared(), scores, mask, selection)[1:]]) * which
    )


CONTENTS = [np.nan, np.inf, -np.inf, 1e30]


def test_content_of_masked_positions_has_no_influence():
    shape, mask, selection = (len(CONTENTS), T, S), MASKS["each_query_its_own"], monotonic.selection((0, 2, 4), S)
    scores, content = np.broadcast_to(normal(T, S), shape), np.array(CONTENTS)[:, None, None]
    filled = np.where(mask, scores, content).astype("float32")
    results = compiled(all_results, shared())
    for found, expected in zip(results(filled, mask, selection), results(scores, mask, selection), strict=True):
        np.testing.assert_allclose(found, expected, atol=FLOAT32)
    for which in np.eye(3, dtype="float32"):
        found = gradient(sum_of_results, filled, mask, selection, which)
        np.testing.assert_allclose(found, gradient(sum_of_results, scores, mask, selection, which), atol=FLOAT32)
        assert found.any(axis=(1, 2)).all() and not np.where(mask, 0.0, found).any()


def test_huge_scores_are_certain_and_have_finite_gradients():
    scores, walk = np.full((len(CONTENTS), T, S), -1e30, "float32"), monotonic.selection((1, 2, 2), S)
    scores[:, 0, 1] = scores[:, 1, 2] = scores[:, 2, 0] = 1e30
    scores[:, 2, 2] = 3e38
    marginals, entropy, log_prob, _ = compiled(all_results, shared())(scores, MASKS["none"], walk)
    np.testing.assert_allclose(marginals, np.broadcast_to(walk, scores.shape), atol=EXACT)
    np.testing.assert_allclose(entropy, 0.0, atol=FLOAT32)
    np.testing.assert_allclose(log_prob, 0.0, atol=FLOAT32)
    for which in np.eye(3, dtype="float32"):
        assert np.isfinite(gradient(sum_of_results, scores, MASKS["none"], walk, which)).all()


def all_of_empty(alignment, scores):
    weights = alignment(scores), alignment(scores, training=True), alignment.sample(scores, seed=1)
    return weights, (alignment.entropy(scores), alignment.log_prob(scores, scores))


@pytest.mark.parametrize("shape", [(B, T, 0), (0, T, S), (B, 0, S)])
def test_empty_scores_give_empty_results(shape):
    weights, results = compiled(all_of_empty, shared())(np.zeros(shape, "float32"))
    assert [each.shape for each in weights] == [shape] * 3
    for result in results:
        assert result.shape == shape[:1]
        if 0 in shape[1:]:
            assert not to_numpy(result).any()


@pytest.mark.parametrize("training", [False, True])
def test_weights_of_half_precision_scores_are_computed_in_float32(training):
    scores = ops.convert_to_tensor(normal(T, S).astype("float16"))
    weights = compiled(Monotonic.__call__, shared(noise=0.0, dtype="mixed_float16"), training=training)(scores)
    expected = run("__call__", to_numpy(scores).astype("float32"), alignment=shared(noise=0.0), training=training)
    assert keras.backend.standardize_dtype(weights.dtype) == "float16"
    np.testing.assert_allclose(to_numpy(weights).astype("float32"), expected, atol=1e-3)


# === In a layer ===


@pytest.mark.parametrize("kind", ["soft", "heads"])
def test_attention_layers_take_it_by_name(kind):
    layer = SoftAttention(alignment="monotonic") if kind == "soft" else MultiHeadAttention(2, 3, alignment="monotonic")
    query, value = 3.0 * normal(B, T, 7), 3.0 * normal(B, S, 7, seed=1)
    layer.build(query.shape, value.shape)
    layer.alignment.offset.assign(0.0)
    call = type(layer).__call__
    _, weights = to_numpy(compiled(call, layer, return_attention_scores=True)(query, value))
    assert set(np.unique(weights)) == {0.0, 1.0}
    assert (weights.sum(axis=-1) <= 1.0).all()
    _, weights = to_numpy(compiled(call, layer, return_attention_scores=True, training=True)(query, value))
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


def call_with_cache(attention, inputs, mask, cache, index):
    return attention(inputs, inputs, value_mask=mask, use_causal_mask=True, cache=cache, cache_index=index)


def test_heads_with_a_cache_walk_as_without_one():
    attention = MultiHeadAttention(num_heads=3, key_dim=5, alignment=Monotonic(initial_offset=0.5))
    inputs, padding = 3.0 * normal(B, 7, 11), np.arange(7) >= [[0], [2]]
    attention.build(inputs.shape, inputs.shape)
    call = compiled(lambda layer, inputs, mask: layer(inputs, inputs, value_mask=mask, use_causal_mask=True), attention)
    expected = to_numpy(call(inputs, padding))
    filled = np.pad(padding, [(0, 0), (0, 4)])
    for lengths in ([1] * 7, [2, 4, 1]):
        cache, begin, outputs = attention.empty_cache(B, 11), 0, []
        for length in lengths:
            part = inputs[:, begin : begin + length]
            output, cache = compiled(call_with_cache, attention)(part, filled, cache, begin)
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
    inputs, results = normal(2, 3, 7), []
    for seed in (1, 1, 2):
        keras.utils.set_random_seed(5)
        layer = kind(alignment=name, seed=seed)
        layer.build(inputs.shape, inputs.shape)
        output = compiled(type(layer).__call__, layer, training=True)(np.zeros_like(inputs), inputs)
        results.append(to_numpy(output))  # all positions alike
    np.testing.assert_array_equal(results[0], results[1])
    assert (results[0] != results[2]).any()
