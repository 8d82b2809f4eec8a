import keras
import numpy as np
import pytest
from keras import ops
from reference import attention
from reference.arrays import normal, to_numpy
from reference.gradients import gradient
from tolerances import FLOAT32

from keras_attention.ops import LOWEST, at_least_float32, mask_scores, masked_log_softmax, masked_softmax

B, T, S = 2, 3, 5


@pytest.fixture
def mask(rng):
    mask = rng.random((B, T, S)) < 0.6
    mask[0, 1] = False
    mask[0, 2] = True
    return mask


def test_lowest_is_finite_and_its_exponential_is_zero():
    assert np.isfinite(np.float32(LOWEST))
    assert np.exp(np.float32(LOWEST)) == 0.0
    assert np.isfinite(np.float32(LOWEST) * 2)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("float16", "float32"), ("bfloat16", "float32"), ("float32", "float32"), ("int32", "float32")],
)
def test_at_least_float32_raises_lower_types_only(dtype, expected):
    assert keras.backend.standardize_dtype(at_least_float32(ops.ones((2,), dtype)).dtype) == expected


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="JAX has no float64 unless it is switched on")
def test_float64_stays_float64():
    scores = ops.cast(np.array([[1.0, 1.0 + 1e-12]]), "float64")
    assert keras.backend.standardize_dtype(at_least_float32(scores).dtype) == "float64"
    weights = to_numpy(masked_softmax(scores))
    assert weights.dtype == "float64"
    assert weights[0, 0] < weights[0, 1]


def test_masked_scores_are_selected_not_added():
    scores = np.array([[-3e38, 3e38, np.inf, np.nan]], "float32")
    masked = to_numpy(mask_scores(scores, np.array([[True, False, False, False]])))
    np.testing.assert_array_equal(masked, np.array([[-3e38, LOWEST, LOWEST, LOWEST]], "float32"))


def test_softmax_equals_the_loop(mask):
    scores = normal(B, T, S)
    np.testing.assert_allclose(masked_softmax(scores), attention.softmax(scores), atol=FLOAT32)
    np.testing.assert_allclose(masked_softmax(scores, mask), attention.softmax(scores, mask), atol=FLOAT32)


def test_log_softmax_is_the_logarithm_of_the_softmax(mask):
    scores = normal(B, T, S)
    weights = attention.softmax(scores, mask)
    expected = np.log(np.where(weights > 0, weights, 1.0))
    log_weights = to_numpy(masked_log_softmax(scores, mask))
    np.testing.assert_allclose(np.where(weights > 0, log_weights, 0.0), expected, atol=FLOAT32)
    assert (log_weights[weights == 0] == np.float32(LOWEST)).all()


def test_log_softmax_is_exact_where_the_softmax_underflows():
    log_weights = masked_log_softmax(np.array([[0.0, -500.0]], "float32"))
    np.testing.assert_allclose(log_weights, [[0.0, -500.0]], atol=FLOAT32)


def test_a_single_position_has_weight_one_or_zero_and_no_gradient():
    scores, mask = np.array([[5.0], [-7.0]], "float32"), np.array([[True], [False]])
    assert to_numpy(masked_softmax(scores)).tolist() == [[1.0], [1.0]]
    assert to_numpy(masked_softmax(scores, mask)).tolist() == [[1.0], [0.0]]
    assert not gradient(lambda scores: ops.sum(masked_softmax(scores, mask)), scores).any()


@pytest.mark.parametrize("function", [masked_softmax, masked_log_softmax])
def test_results_are_finite_whatever_is_masked(function, mask):
    scores = np.where(mask, normal(B, T, S), np.nan).astype("float32")
    assert np.isfinite(to_numpy(function(scores, mask))).all()


@pytest.mark.parametrize("function", [masked_softmax, masked_log_softmax])
def test_gradient_is_finite_and_zero_at_masked_positions_and_rows(function, mask):
    factors = np.where(mask, normal(B, T, S, seed=1), 0.0).astype("float32")
    found = gradient(lambda scores: ops.sum(function(scores, mask) * factors), normal(B, T, S))
    assert np.isfinite(found).all()
    assert not found[~mask].any()
    assert not found[0, 1].any()
    assert np.abs(found[0, 2]).min() > 0


def test_gradient_equals_the_formula():
    scores, factors = normal(1, S), normal(1, S, seed=1)
    weights = attention.softmax(scores)
    expected = weights * (factors - (weights * factors).sum())
    found = gradient(lambda scores: ops.sum(masked_softmax(scores) * factors), scores)
    np.testing.assert_allclose(found, expected, atol=FLOAT32)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_normalized_in_float32_and_returned_in_its_type(dtype):
    # D02: scores of -1600 in float16, with nothing, two of three and everything allowed.
    scores = ops.full((3, 3), -1600.0, dtype)
    mask = np.array([[False] * 3, [True, True, False], [True] * 3])
    weights = masked_softmax(scores, mask)
    assert weights.dtype == scores.dtype
    expected = [[0.0, 0.0, 0.0], [0.5, 0.5, 0.0], [1 / 3] * 3]
    np.testing.assert_allclose(ops.cast(weights, "float32"), expected, atol=2e-3)


def test_log_softmax_of_half_precision_is_float32():
    assert keras.backend.standardize_dtype(masked_log_softmax(ops.ones((2, 3), "float16")).dtype) == "float32"


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_empty_scores_give_empty_weights(shape):
    assert masked_softmax(ops.zeros(shape)).shape == shape
    assert masked_softmax(ops.zeros(shape), np.zeros(shape, bool)).shape == shape
    assert masked_log_softmax(ops.zeros(shape)).shape == shape
