import keras
import numpy as np
import pytest
from keras import ops
from reference import sparse_weights
from reference.arrays import normal, to_numpy
from reference.gradients import gradient
from tolerances import FLOAT32, FLOAT64

from keras_attention.alignments import AdaptiveEntmax, Entmax
from keras_attention.alignments.adaptive_entmax import adaptive_entmax
from keras_attention.layers import MultiHeadAttention

B, N, T, S = 2, 3, 5, 7

MASK = np.array([[True] * S, [True] * 3 + [False] * 4, [False] * S, [True] + [False] * 6, [False, True] * 3 + [True]])


@pytest.mark.parametrize("alpha", [1.05, 1.5, 1.9])
def test_weights_are_those_of_a_fixed_alpha(alpha):
    scores = 2.0 * normal(B, T, S)
    found = AdaptiveEntmax(alpha)(scores, mask=MASK)
    np.testing.assert_allclose(found, sparse_weights.entmax(scores, alpha, MASK), atol=FLOAT32)
    np.testing.assert_allclose(found, Entmax(alpha)(scores, mask=MASK), atol=FLOAT32)


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="JAX has no float64 unless it is switched on")
@pytest.mark.parametrize("alpha", [1.02, 1.25, 1.5, 1.99])
def test_the_gradient_by_alpha_equals_finite_differences(alpha):
    scores, factors = normal(T, S).astype("float64"), normal(T, S, seed=1).astype("float64")

    def value(alpha):
        return (factors * sparse_weights.entmax(scores, alpha, MASK)).sum()

    found = gradient(
        lambda alpha: ops.sum(adaptive_entmax(ops.convert_to_tensor(scores), MASK, alpha) * factors), np.array(alpha)
    )
    expected = (value(alpha + 1e-5) - value(alpha - 1e-5)) / 2e-5
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_gradient_by_alpha_in_float32_has_its_digits():
    scores, factors = normal(T, S), normal(T, S, seed=1)
    expected = sum(
        sign * (factors * sparse_weights.entmax(scores, 1.5 + sign * 1e-5, MASK)).sum() / 2e-5 for sign in (1, -1)
    )
    found = gradient(
        lambda alpha: ops.sum(adaptive_entmax(ops.convert_to_tensor(scores), MASK, alpha) * factors), np.float32(1.5)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize("content", [np.nan, np.inf, 1e30])
def test_content_of_masked_positions_reaches_no_gradient_by_alpha(content):
    scores, factors = normal(T, S), normal(T, S, seed=1)

    def slope(scores):
        scores = ops.convert_to_tensor(scores.astype("float32"))
        return gradient(lambda alpha: ops.sum(adaptive_entmax(scores, MASK, alpha) * factors), np.float32(1.5))

    np.testing.assert_allclose(slope(np.where(MASK, scores, content)), slope(scores), rtol=FLOAT32)


def test_a_diverged_row_is_nan_where_it_may_attend_alone():
    scores = normal(T, S)
    scores[1, 0] = np.nan
    weights = to_numpy(AdaptiveEntmax()(scores, mask=MASK))
    assert np.isnan(weights[1]).tolist() == MASK[1].tolist() and np.isfinite(np.delete(weights, 1, axis=0)).all()


def test_each_head_has_an_alpha_of_its_own():
    alignment, scores = AdaptiveEntmax(num_heads=N), normal(B, N, T, S)
    alignment.build(scores.shape)
    alignment.logit.assign(np.array([-1.0, 0.0, 2.0]).reshape(N, 1, 1))
    alphas = to_numpy(alignment.alpha)
    np.testing.assert_allclose(alphas.ravel(), 1.01 + 0.99 / (1 + np.exp([1.0, 0.0, -2.0])), atol=FLOAT32)
    expected = np.stack([sparse_weights.entmax(scores[:, n], alphas[n, 0, 0]) for n in range(N)], axis=1)
    np.testing.assert_allclose(alignment(scores), expected, atol=FLOAT32)


def test_the_alphas_of_heads_are_learned():
    query, value = keras.Input((T, 11)), keras.Input((S, 11))
    alignment = AdaptiveEntmax(num_heads=N)
    model = keras.Model([query, value], MultiHeadAttention(N, 5, alignment=alignment)(query, value))
    model.compile("sgd", "mse")
    model.train_on_batch([normal(B, T, 11), normal(B, S, 11, seed=1)], normal(B, T, 11, seed=2))
    alphas = to_numpy(alignment.alpha).ravel()
    assert len(np.unique(alphas)) == N and np.abs(alphas - 1.5).max() > 1e-6


def test_another_number_of_heads_is_refused():
    for shape in ((B, 5, T, S), (T, S)):
        with pytest.raises(ValueError, match=r"num_heads=3 takes scores of shape \(\.\.\., 3, T, S\)\. Received shape"):
            AdaptiveEntmax(num_heads=3).build(shape)


@pytest.mark.parametrize("alpha", [1.0, 2.0, np.nan, "1.5"])
def test_an_alpha_outside_of_its_bounds_is_refused(alpha):
    with pytest.raises(ValueError, match=rf"`initial_alpha` must be a number between 1.01 and 2. Received: {alpha!r}"):
        AdaptiveEntmax(alpha)


def test_an_alignment_that_is_not_built_says_so():
    with pytest.raises(ValueError, match=r"An AdaptiveEntmax alignment must be built\. Call it once"):
        AdaptiveEntmax().marginals(normal(T, S))


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="JAX has no float64 unless it is switched on")
def test_float64_keeps_its_digits():
    scores = normal(T, S).astype("float64")
    alignment = AdaptiveEntmax(dtype="float64")
    weights = to_numpy(alignment(ops.convert_to_tensor(scores)))
    np.testing.assert_allclose(weights, sparse_weights.entmax(scores, 1.5), atol=FLOAT64)
