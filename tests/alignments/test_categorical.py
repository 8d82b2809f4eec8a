import itertools
import math

import keras
import numpy as np
import pytest
from keras import ops
from reference import attention
from reference.arrays import normal, to_numpy
from reference.gradients import gradient
from tolerances import FLOAT32

from keras_attention.alignments import Categorical

B, N, T, S = 2, 17, 3, 5

ONE_TWO_THREE = np.array([[1.0, 2.0, 3.0]], "float32")
THIRD_MASKED = np.array([[True, True, False]])
NOTHING = np.array([[False, False, False]])


def one_hot_rows(*positions):
    return np.eye(S, dtype="float32")[list(positions)]


def test_marginals_are_the_softmax_of_the_positions_that_may_be_attended():
    weights = Categorical()(ONE_TWO_THREE, mask=THIRD_MASKED)
    odds = math.exp(-1.0)
    np.testing.assert_allclose(weights, [[odds / (1 + odds), 1 / (1 + odds), 0.0]], atol=FLOAT32)
    np.testing.assert_allclose(np.round(weights, 4), [[0.2689, 0.7311, 0.0]], atol=FLOAT32)


@pytest.mark.parametrize("mask_shape", [(T, S), (B, 1, 1, S), (B, 1, T, 1), (B, N, T, S)])
def test_marginals_equal_the_loop_for_any_mask_that_broadcasts(mask_shape, rng):
    scores, mask = normal(B, N, T, S), rng.random(mask_shape) < 0.6
    weights = to_numpy(Categorical()(scores, mask=mask))
    np.testing.assert_allclose(weights, attention.softmax(scores, mask), atol=FLOAT32)
    np.testing.assert_array_equal(weights == 0, ~np.broadcast_to(mask, scores.shape))


def test_large_scores_do_not_overflow():
    weights = Categorical()(np.array([[3e38, 1.0, 2.0], [-3e38, -3e38, -3e38]], "float32"))
    np.testing.assert_allclose(weights, [[1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]], atol=FLOAT32)


def test_the_mode_is_the_best_position_that_may_be_attended():
    assert to_numpy(Categorical().mode(ONE_TWO_THREE)).tolist() == [[0.0, 0.0, 1.0]]
    assert to_numpy(Categorical().mode(ONE_TWO_THREE, THIRD_MASKED)).tolist() == [[0.0, 1.0, 0.0]]


def test_the_mode_of_equal_scores_is_the_first():
    scores = np.array([[1.0, 4.0, 4.0, 4.0], [4.0, 4.0, 0.0, 4.0], [0.0, 0.0, 0.0, 0.0]], "float32")
    mask = np.array([[True, False, True, True]] * 3)
    assert to_numpy(Categorical().mode(scores, mask)).tolist() == [[0, 0, 1, 0], [1, 0, 0, 0], [1, 0, 0, 0]]


def test_the_mode_ignores_masked_scores_however_large():
    scores = np.array([[-1e20, 3e38, np.inf]], "float32")
    assert to_numpy(Categorical().mode(scores, np.array([[True, False, False]]))).tolist() == [[1.0, 0.0, 0.0]]


def test_no_gradient_flows_through_the_mode_or_a_sample():
    alignment, factors = Categorical(), normal(T, S, seed=1)
    for choose in (alignment.mode, lambda scores: alignment.sample(scores, seed=3)):
        found = gradient(lambda scores, choose=choose: ops.sum(choose(scores) * factors), normal(T, S))
        assert not found.any()


def test_a_sample_is_one_position_for_each_query_and_never_a_masked_one(rng):
    scores, mask = normal(B, T, 1000, S), rng.random((B, T, 1, S)) < 0.6
    mask[..., 0] = True
    sample = to_numpy(Categorical().sample(scores, mask, seed=3))
    assert sample.shape == scores.shape
    assert set(np.unique(sample)) == {0.0, 1.0}
    assert (sample.sum(axis=-1) == 1.0).all()
    assert not np.where(mask, 0.0, sample).any()


def test_frequencies_of_samples_approach_the_marginals():
    count = 20_000
    scores = np.broadcast_to(np.array([0.0, 1.0, 2.0, -1.0, 5.0], "float32"), (count, S))
    mask = np.array([True, True, True, True, False])
    frequencies = to_numpy(Categorical().sample(scores, mask, seed=11)).mean(axis=0)
    marginals = attention.softmax(scores[:1], mask)[0]
    five_deviations = 5 * np.sqrt(marginals * (1 - marginals) / count)
    assert (np.abs(frequencies - marginals) <= five_deviations).all()


def test_a_seed_gives_the_same_sample_and_a_generator_another_each_time():
    scores = np.zeros((T, 1000, S), "float32")
    alignment, generator = Categorical(), keras.random.SeedGenerator(5)
    first, second = (to_numpy(alignment.sample(scores, seed=5)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    first, second = (to_numpy(alignment.sample(scores, seed=generator)) for _ in range(2))
    assert (first != second).any()


def test_log_probabilities_are_the_logarithms_of_the_marginals():
    for position, probability in enumerate([1.0, math.e, math.e**2]):
        selection = np.eye(3, dtype="float32")[[position]]
        log_probability = Categorical().log_prob(selection, ONE_TWO_THREE)
        expected = math.log(probability / (1 + math.e + math.e**2))
        np.testing.assert_allclose(log_probability, [expected], atol=FLOAT32)
    np.testing.assert_allclose(
        Categorical().log_prob(np.array([[1.0, 0.0, 0.0]], "float32"), ONE_TWO_THREE, THIRD_MASKED),
        [-math.log(1 + math.e)],
        atol=FLOAT32,
    )


@pytest.mark.parametrize(
    "mask", [None, [[True] * S, [True, False, True, True, False], [False, False, False, True, False]]]
)
def test_probabilities_of_all_selections_sum_to_one(mask):
    scores, mask = normal(T, S), None if mask is None else np.array(mask)
    total, allowed = 0.0, np.ones((T, S), bool) if mask is None else mask
    for positions in itertools.product(range(S), repeat=T):
        if all(allowed[t, s] for t, s in enumerate(positions)):
            total += math.exp(to_numpy(Categorical().log_prob(one_hot_rows(*positions), scores, mask)).sum())
    np.testing.assert_allclose(total, 1.0, atol=FLOAT32)


def test_the_gradient_of_the_log_probability_is_the_selection_minus_the_marginals():
    scores, selection = normal(T, S), one_hot_rows(1, 4, 0)
    found = gradient(lambda scores: ops.sum(Categorical().log_prob(selection, scores)), scores)
    np.testing.assert_allclose(found, selection - attention.softmax(scores), atol=FLOAT32)


def test_entropy_by_hand():
    # p = (0.2689, 0.7311, 0): -p·log p = 0.3532 + 0.2290
    entropy = Categorical().entropy(ONE_TWO_THREE, THIRD_MASKED)
    np.testing.assert_allclose(np.round(entropy, 4), [0.5822], atol=FLOAT32)
    uniform = Categorical().entropy(np.full((T, S), 7.0, "float32"))
    np.testing.assert_allclose(uniform, [math.log(5)] * T, atol=FLOAT32)


def test_entropy_is_the_mean_of_minus_the_log_probability(rng):
    scores, mask = normal(B, T, S), rng.random((B, 1, S)) < 0.6
    marginals = attention.softmax(scores, mask)
    expected = -(marginals * np.log(np.where(marginals > 0, marginals, 1.0))).sum(axis=-1)
    np.testing.assert_allclose(Categorical().entropy(scores, mask), expected, atol=FLOAT32)


def test_nothing_to_attend_gives_zeros_everywhere():
    alignment = Categorical()
    for weights in (
        alignment(ONE_TWO_THREE, mask=NOTHING),
        alignment.marginals(ONE_TWO_THREE, NOTHING),
        alignment.mode(ONE_TWO_THREE, NOTHING),
        alignment.sample(ONE_TWO_THREE, NOTHING, seed=1),
    ):
        assert to_numpy(weights).tolist() == [[0.0, 0.0, 0.0]]
    assert to_numpy(alignment.log_prob(np.zeros((1, 3), "float32"), ONE_TWO_THREE, NOTHING)).tolist() == [0.0]
    assert to_numpy(alignment.entropy(ONE_TWO_THREE, NOTHING)).tolist() == [0.0]


@pytest.mark.parametrize("mask", [THIRD_MASKED, NOTHING], ids=["third_masked", "nothing"])
def test_gradients_under_a_mask_are_finite_and_zero_where_it_is_false(mask):
    alignment = Categorical()
    factors = np.array([[2.0, -3.0, 5.0]], "float32")
    selection = np.where(mask, np.array([[1.0, 0.0, 0.0]], "float32"), 0.0).astype("float32")
    for function in (
        lambda scores: ops.sum(alignment.marginals(scores, mask) * factors),
        lambda scores: ops.sum(alignment.log_prob(selection, scores, mask)),
        lambda scores: ops.sum(alignment.entropy(scores, mask)),
    ):
        found = gradient(function, ONE_TWO_THREE)
        assert np.isfinite(found).all()
        assert not np.where(mask, 0.0, found).any()


@pytest.mark.parametrize("shape", [(B, T, 0), (0, T, S), (B, 0, S)])
def test_empty_scores_give_empty_or_zero_results(shape):
    alignment, scores, mask = Categorical(), ops.zeros(shape), np.zeros(shape, bool)
    for weights in (alignment(scores), alignment(scores, mask=mask), alignment.mode(scores, mask)):
        assert weights.shape == shape
    sample = alignment.sample(scores, mask, seed=1)
    assert sample.shape == shape
    for result in (alignment.log_prob(sample, scores, mask), alignment.entropy(scores, mask)):
        assert result.shape == shape[:-1]
        assert not to_numpy(result).any()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_weights_have_the_type_of_the_scores(dtype):
    scores = ops.cast(ONE_TWO_THREE, dtype)
    weights = Categorical(dtype="mixed_float16")(scores, mask=THIRD_MASKED)
    assert keras.backend.standardize_dtype(weights.dtype) == dtype
    np.testing.assert_allclose(ops.cast(weights, "float32"), [[0.2689, 0.7311, 0.0]], atol=2e-3)


def test_float32_scores_stay_float32_under_a_mixed_policy():
    # 2049 and 2048 are one number in float16.
    scores = ops.convert_to_tensor(np.array([[2048.0, 2049.0]], "float32"))
    weights = to_numpy(Categorical(dtype="mixed_float16")(scores))
    np.testing.assert_allclose(weights, [[1 / (1 + math.e), math.e / (1 + math.e)]], atol=FLOAT32)


def test_log_probability_of_half_precision_scores_is_computed_in_float32():
    scores, alignment = ops.cast(ONE_TWO_THREE, "float16"), Categorical()
    expected = alignment.log_prob(alignment.mode(ONE_TWO_THREE), ONE_TWO_THREE)
    np.testing.assert_allclose(alignment.log_prob(alignment.mode(scores), scores), expected, atol=FLOAT32)


def test_entropy_of_half_precision_scores_is_computed_in_float32():
    expected = Categorical().entropy(ONE_TWO_THREE)
    np.testing.assert_allclose(Categorical().entropy(ops.cast(ONE_TWO_THREE, "float16")), expected, atol=FLOAT32)
