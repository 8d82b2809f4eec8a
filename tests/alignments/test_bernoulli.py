import functools
import itertools
import math

import keras
import numpy as np
import pytest
from compiled import whole
from keras import ops
from reference.arrays import normal, to_numpy
from reference.gradients import gradient
from tolerances import EXACT, FLOAT32

from keras_attention import alignments
from keras_attention.alignments import Bernoulli, Categorical, LinearChain

B, T, S = 2, 3, 5

SELECTIONS = np.array(list(itertools.product([0.0, 1.0], repeat=S)), "float32")


@functools.cache
def made(kind, **options):
    """An alignment of Bernoulli or a chain that has learned nothing, which JAX compiles once for all tests."""
    return whole(kind(**options))


def sigmoid(scores):
    return 1.0 / (1.0 + np.exp(-np.asarray(scores, "float64")))


def test_each_position_is_on_with_the_probability_of_its_own_score():
    scores, mask = normal(B, T, S), np.array([True, False, True, True, False])
    np.testing.assert_allclose(made(Bernoulli)(scores), sigmoid(scores), atol=FLOAT32)
    np.testing.assert_allclose(made(Bernoulli)(scores, mask=mask), sigmoid(scores) * mask, atol=FLOAT32)
    np.testing.assert_allclose(made(Bernoulli).marginals(scores, mask), sigmoid(scores) * mask, atol=FLOAT32)


def test_distribution_equals_the_enumeration_of_all_selections():
    scores, mask = normal(S), np.array([True, True, False, True, True])
    possible = SELECTIONS[SELECTIONS[:, 2] == 0.0]
    totals = np.sum(possible * scores, axis=-1, dtype="float64")
    log_partition = np.logaddexp.reduce(totals)
    probabilities = np.exp(totals - log_partition)
    alignment, rows = made(Bernoulli), np.broadcast_to(scores, possible.shape)
    np.testing.assert_allclose(alignment.log_partition(scores, mask), log_partition, atol=FLOAT32)
    np.testing.assert_allclose(alignment.log_prob(possible, rows, mask), np.log(probabilities), atol=FLOAT32)
    np.testing.assert_allclose(alignment.marginals(scores, mask), probabilities @ possible, atol=FLOAT32)
    np.testing.assert_allclose(
        alignment.entropy(scores, mask), -np.sum(probabilities * np.log(probabilities)), atol=FLOAT32
    )
    np.testing.assert_array_equal(alignment.mode(scores, mask), possible[np.argmax(probabilities)])


def test_a_selection_of_a_masked_position_is_impossible():
    mask = np.array([True, False])
    log_prob = to_numpy(made(Bernoulli).log_prob(np.eye(2, dtype="float32"), np.zeros((2, 2), "float32"), mask))
    np.testing.assert_allclose(log_prob, [math.log(0.5), -1e30])


def test_samples_have_the_frequencies_of_the_marginals():
    scores, mask = np.broadcast_to(normal(S), (4001, S)), np.array([True, True, True, False, True])
    samples = to_numpy(made(Bernoulli).sample(scores, mask, seed=3))
    assert set(np.unique(samples)) == {0.0, 1.0}
    np.testing.assert_allclose(samples.mean(axis=0), sigmoid(scores[0]) * mask, atol=0.03)


# === Weights that sum to something ===


@pytest.mark.parametrize("kind", [Bernoulli, LinearChain])
def test_normalized_weights_are_shares_of_the_marginals_times_the_scale(kind):
    scores, mask = normal(B, T, S), np.array([True, False, True, True, False])
    alignment = made(kind, normalize="l1", scale=2.0)
    weights, marginals = to_numpy(alignment(scores, mask=mask)), sigmoid(scores) * mask
    np.testing.assert_allclose(weights, 2.0 * marginals / marginals.sum(axis=-1, keepdims=True), atol=FLOAT32)
    np.testing.assert_allclose(alignment.marginals(scores, mask), marginals, atol=FLOAT32)
    np.testing.assert_allclose(made(kind, scale=0.5)(scores, mask=mask), 0.5 * marginals, atol=FLOAT32)


@pytest.mark.parametrize("kind", [Bernoulli, LinearChain])
@pytest.mark.parametrize("level", [-50.0, -1e4, 50.0])
def test_normalized_weights_are_exact_where_all_probabilities_round_to_zero_or_one(kind, level):
    # Of tiny probabilities the shares are those of the exponentials; of ones they are equal.
    scores = np.array([[level, level + 1.0, level - 2.0]], "float32")
    shares = np.exp([0.0, 1.0, -2.0]) if level < 0 else np.ones(3)
    expected, factors = shares / shares.sum(), np.array([1.0, -2.0, 3.0])
    alignment = made(kind, normalize="l1")
    np.testing.assert_allclose(alignment(scores), [expected], atol=FLOAT32)
    found = gradient(lambda scores: ops.sum(alignment(scores) * ops.array(factors, "float32")), scores)
    slopes = expected * (factors - np.sum(expected * factors)) if level < 0 else np.zeros(3)
    np.testing.assert_allclose(found, [slopes], atol=FLOAT32)


@pytest.mark.parametrize("normalize", [None, "l1"])
@pytest.mark.parametrize("kind", [Bernoulli, LinearChain])
def test_nothing_to_attend_gives_zeros_everywhere(kind, normalize):
    scores, nothing = normal(T, S), np.zeros((T, S), bool)
    alignment = made(kind, normalize=normalize)
    for weights in (alignment(scores, mask=nothing), alignment.mode(scores, nothing)):
        assert not to_numpy(weights).any()
    assert not to_numpy(alignment.sample(scores, nothing, seed=1)).any()
    assert not to_numpy(alignment.log_prob(np.zeros((T, S), "float32"), scores, nothing)).any()
    for name in ("entropy", "log_partition"):
        found = to_numpy(getattr(alignment, name)(scores, nothing))
        assert found.shape == (T,) and not found.any()
    assert not gradient(lambda scores: ops.sum(alignment(scores, mask=nothing)), scores).any()


# === Numbers ===


@pytest.mark.parametrize("content", [np.nan, 1e30])
@pytest.mark.parametrize("kind", [Bernoulli, LinearChain])
def test_content_of_masked_positions_has_no_influence(kind, content):
    scores, mask = np.array([[1.0, content, -2.0]], "float32"), np.array([[True, False, True]])
    alignment = made(kind, normalize="l1")
    alignment(scores, mask=mask)

    def all_results(scores):
        selection = ops.array([[1.0, 0.0, 0.0]])
        rows = [alignment.entropy(scores, mask), alignment.log_partition(scores, mask)]
        rows.append(alignment.log_prob(selection, scores, mask))
        return ops.sum(alignment(scores, mask=mask)[..., 0] + sum(rows))

    found, expected = (gradient(all_results, array) for array in (scores, np.where(mask, scores, 0.0)))
    np.testing.assert_allclose(found, expected, atol=EXACT)
    assert found[0, 1] == 0.0 and found.any()


@pytest.mark.parametrize("kind", [Bernoulli, LinearChain])
def test_huge_scores_have_finite_results_and_gradients(kind):
    scores = np.array([[3e38, -3e38, 0.0], [1e30, 1e30, -1e30]], "float32")
    alignment = made(kind)
    np.testing.assert_allclose(alignment(scores), [[1, 0, 0.5], [1, 1, 0]], atol=FLOAT32)
    for function in (alignment, made(kind, normalize="l1"), alignment.entropy):
        found = gradient(lambda scores, function=function: ops.sum(function(scores)[..., 0]), scores)
        assert np.isfinite(found).all()


@pytest.mark.parametrize("kind", [Bernoulli, LinearChain])
def test_weights_have_the_type_of_the_scores_and_are_computed_in_float32(kind):
    scores = ops.cast(normal(T, S), "bfloat16")
    alignment = made(kind, dtype="mixed_bfloat16")
    weights = alignment(scores)
    assert keras.backend.standardize_dtype(weights.dtype) == "bfloat16"
    assert keras.backend.standardize_dtype(alignment.entropy(scores).dtype) == "float32"
    exact = sigmoid(to_numpy(ops.cast(scores, "float32")))
    np.testing.assert_allclose(ops.cast(weights, "float32"), exact, atol=4e-3)


@pytest.mark.parametrize("shape", [(B, T, 0), (0, T, S), (B, 0, S)])
@pytest.mark.parametrize("kind", [Bernoulli, LinearChain])
def test_empty_scores_give_empty_results(kind, shape):
    alignment, scores = made(kind, normalize="l1"), ops.zeros(shape)
    assert alignment(scores).shape == alignment.sample(scores, seed=1).shape == shape
    assert alignment.entropy(scores).shape == alignment.log_partition(scores).shape == shape[:-1]


# === Arguments ===


@pytest.mark.parametrize("kind", [Bernoulli, LinearChain])
def test_bad_arguments_are_refused_in_words(kind):
    with pytest.raises(ValueError, match=r"`normalize` must be None, .* or \"l1\".* Received: 'l2'"):
        kind(normalize="l2")
    with pytest.raises(ValueError, match=r"`scale` must be a positive number. Received: 0"):
        kind(scale=0)


def test_the_name_stands_for_plain_probabilities():
    config = alignments.get("sigmoid").get_config()
    assert (config["normalize"], config["scale"]) == (None, 1.0)


# === The log-partition of softmax, beside that of sigmoids ===


def test_the_log_partition_of_softmax_is_that_of_one_selection_for_each_position():
    scores, mask = normal(T, S), np.array([[True, False, True, True, False], [True] * 5, [False] * 5])
    expected = [
        np.logaddexp.reduce(row[allowed]) if allowed.any() else 0.0 for row, allowed in zip(scores, mask, strict=True)
    ]
    np.testing.assert_allclose(Categorical().log_partition(scores, mask), expected, atol=FLOAT32)
    found = gradient(lambda scores: ops.sum(Categorical().log_partition(scores, mask)), scores)
    np.testing.assert_allclose(found, Categorical().marginals(scores, mask), atol=FLOAT32)
    assert to_numpy(Categorical().log_partition(np.zeros((T, 0), "float32"))).tolist() == [0.0] * T
    huge = np.array([[1e30, 0.0], [-1e30, -1e30]], "float32")
    np.testing.assert_allclose(Categorical().log_partition(huge), [1e30, -1e30], rtol=1e-6)
