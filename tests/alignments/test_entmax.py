import functools

import keras
import numpy as np
import pytest
from compiled import whole
from keras import ops
from reference import attention, sparse_weights
from reference.arrays import normal, to_numpy
from reference.gradients import gradient
from tolerances import EXACT, FLOAT32

from keras_attention import alignments
from keras_attention.alignments import Entmax, Sparsemax

B, T, S = 2, 3, 5

EACH_ALPHA = pytest.mark.parametrize("alpha", sparse_weights.OF_THE_PACKAGE)


@functools.cache
def entmax(*arguments, **options):
    """The alignment, which JAX compiles once for all tests."""
    return whole(Entmax(*arguments, **options))


def finite_differences(function, array, step=1e-6):
    """Gradient of `function(float64 array) -> number` by central differences."""
    found = np.zeros(array.shape)
    for index in np.ndindex(*array.shape):
        ends = [array.astype("float64") for _ in range(2)]
        ends[0][index] -= step
        ends[1][index] += step
        found[index] = (function(ends[1]) - function(ends[0])) / (2 * step)
    return found


@EACH_ALPHA
def test_weights_and_gradients_equal_those_of_the_entmax_package(alpha):
    for scores, (weights, slopes) in zip(sparse_weights.SCORES, sparse_weights.OF_THE_PACKAGE[alpha], strict=True):
        scores, factors = np.array([scores], "float32"), np.array(sparse_weights.FACTORS[: len(scores)], "float32")
        np.testing.assert_allclose(entmax(alpha)(scores), [weights], atol=FLOAT32)
        found = gradient(lambda scores, factors=factors: ops.sum(entmax(alpha)(scores) * ops.array(factors)), scores)
        np.testing.assert_allclose(found, [slopes], atol=FLOAT32)


@EACH_ALPHA
def test_weights_under_a_mask_equal_the_loop_and_sum_to_one(alpha, rng):
    scores, mask = normal(B, T, S), rng.random((B, 1, S)) < 0.6
    weights = to_numpy(entmax(alpha)(scores, mask=mask))
    np.testing.assert_allclose(weights, sparse_weights.entmax(scores, alpha, mask), atol=FLOAT32)
    np.testing.assert_allclose(weights.sum(axis=-1), np.broadcast_to(mask.any(axis=-1), (B, T)), atol=FLOAT32)
    assert not np.where(mask, 0.0, weights).any()


@EACH_ALPHA
def test_gradients_under_a_mask_equal_finite_differences(alpha, rng):
    scores, mask, factors = normal(T, S, seed=1), rng.random((T, S)) < 0.7, normal(T, S, seed=2)
    found = gradient(lambda scores: ops.sum(entmax(alpha)(scores, mask=mask) * ops.array(factors)), scores)
    expected = finite_differences(lambda scores: (factors * sparse_weights.entmax(scores, alpha, mask)).sum(), scores)
    np.testing.assert_allclose(found, expected, atol=FLOAT32)
    assert not np.where(mask, 0.0, found).any()


def test_alpha_near_one_is_almost_softmax():
    scores = normal(T, S)
    np.testing.assert_allclose(entmax(1.001)(scores), attention.softmax(scores), atol=2e-3)


def test_alpha_of_two_is_sparsemax():
    np.testing.assert_allclose(entmax(2)(normal(T, S)), Sparsemax()(normal(T, S)), atol=EXACT)


@EACH_ALPHA
def test_long_rows_keep_the_precision_of_float32(alpha):
    scores = np.random.default_rng(3).normal(size=(2, 1009)).astype("float32") * [[0.03], [10.0]]
    scores[0, 7] = 1.0  # the other weights are small, and many
    scores = scores.astype("float32")
    np.testing.assert_allclose(entmax(alpha)(scores), sparse_weights.entmax(scores, alpha), atol=FLOAT32)


@EACH_ALPHA
def test_equal_scores_get_equal_weights(alpha):
    for score in (0.0, 7.0, -1e30, 3e38):
        np.testing.assert_allclose(entmax(alpha)(np.full((1, S), score, "float32")), [[1 / S] * S], atol=FLOAT32)


@EACH_ALPHA
def test_huge_scores_have_finite_weights_and_gradients(alpha):
    scores = np.array([[1e30, -1e30, 0.0], [3e38, -3e38, 3e38], [-1e30, 5.0, 5.0]], "float32")
    np.testing.assert_allclose(entmax(alpha)(scores), [[1, 0, 0], [0.5, 0, 0.5], [0, 0.5, 0.5]], atol=FLOAT32)
    factors = np.array([2.0, -3.0, 5.0], "float32")
    for function in (entmax(alpha), entmax(alpha).entropy):
        found = gradient(lambda scores, function=function: ops.sum(function(scores * 1.0)[..., 0] * 2.0), scores)
        assert np.isfinite(found).all()
    found = gradient(lambda scores: ops.sum(entmax(alpha)(scores) * ops.array(factors)), scores)
    assert np.isfinite(found).all() and not found[0].any()


@EACH_ALPHA
def test_gradients_are_finite_where_a_weight_is_just_about_to_become_zero(alpha):
    border = 1.0 / (alpha - 1.0)  # (α - 1) · (highest - score) = 1
    for distance in (border, np.nextafter(np.float32(border), np.float32(0)), border * (1 - 1e-6)):
        scores = np.array([[0.0, -distance]], "float32")
        for function in (entmax(alpha), lambda scores: entmax(alpha).log_prob(np.eye(2)[:1], scores)[..., None]):
            found = gradient(lambda scores, function=function: ops.sum(function(scores)[..., 0]), scores)
            assert np.isfinite(found).all()


@pytest.mark.parametrize("content", [np.nan, np.inf, 1e30])
def test_content_of_masked_positions_has_no_influence(content):
    scores, mask = np.array([[1.0, content, 0.6]], "float32"), np.array([[True, False, True]])
    np.testing.assert_allclose(entmax()(scores, mask=mask), [[0.64, 0.0, 0.36]], atol=FLOAT32)
    found = gradient(lambda scores: ops.sum(entmax()(scores, mask=mask)[..., 0]), scores)
    np.testing.assert_allclose(found, [[0.48 / 1.4, 0.0, -0.48 / 1.4]], atol=FLOAT32)  # 0.8 · 0.6 / (0.8 + 0.6)


def test_nothing_to_attend_gives_zeros_everywhere():
    scores, nothing = normal(T, S), np.zeros((T, S), bool)
    alignment = entmax()
    for weights in (alignment(scores, mask=nothing), alignment.mode(scores, nothing)):
        assert not to_numpy(weights).any()
    assert not to_numpy(alignment.sample(scores, nothing, seed=1)).any()
    assert not to_numpy(alignment.log_prob(np.zeros((T, S), "float32"), scores, nothing)).any()
    assert not to_numpy(alignment.entropy(scores, nothing)).any()
    assert not gradient(lambda scores: ops.sum(alignment(scores, mask=nothing)), scores).any()


@pytest.mark.parametrize("shape", [(B, T, 0), (0, T, S), (B, 0, S)])
@pytest.mark.parametrize("alpha", [1.25, 1.5, 2.0])
def test_empty_scores_give_empty_results(alpha, shape):
    alignment, scores = entmax(alpha), ops.zeros(shape)
    assert alignment(scores).shape == alignment.sample(scores, seed=1).shape == shape
    assert alignment.entropy(scores).shape == shape[:-1]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_weights_have_the_type_of_the_scores_and_are_computed_in_float32(dtype):
    scores = ops.cast(normal(T, S), dtype)
    weights = entmax(dtype="mixed_float16")(scores)
    assert keras.backend.standardize_dtype(weights.dtype) == dtype
    exact = sparse_weights.entmax(to_numpy(ops.cast(scores, "float32")), 1.5)
    np.testing.assert_allclose(ops.cast(weights, "float32"), exact, atol=4e-3)
    np.testing.assert_allclose(
        entmax().entropy(scores), -(exact * np.log(np.where(exact > 0, exact, 1))).sum(-1), atol=FLOAT32
    )


@pytest.mark.parametrize("alpha", [1, 0.5, np.inf, "2"])
def test_an_alpha_that_is_no_number_above_one_is_refused(alpha):
    with pytest.raises(ValueError, match=rf"`alpha` must be a number above 1.* Received: {alpha!r}"):
        Entmax(alpha)


def test_an_alpha_of_one_is_answered_with_softmax():
    with pytest.raises(
        ValueError, match=r'a number above 1 \(for alpha=1, which is softmax, use "softmax"\)\. Received: 1'
    ):
        Entmax(alpha=1)


def test_the_name_stands_for_an_alpha_of_one_and_a_half():
    assert alignments.get("entmax").get_config()["alpha"] == 1.5
