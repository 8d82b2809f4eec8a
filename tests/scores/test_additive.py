import keras
import numpy as np
import pytest
from reference import attention
from reference.arrays import normal, to_numpy
from tolerances import FLOAT32

from keras_attention.scores import AdditiveScore

B, T, S, D_QUERY, D_KEY, U = 2, 3, 5, 7, 11, 13


def test_a_score_is_the_vector_times_the_hidden_layer():
    score = AdditiveScore(units=2)
    score.build((1, 1), (1, 1))
    score.set_weights([np.array([[1.0, 0.5]]), np.array([[0.0, 1.0]]), np.array([2.0, 3.0])])
    scores = score(np.array([[1.0]], "float32"), np.array([[-1.0]], "float32"))
    # 2 · tanh(1) + 3 · tanh(0.5 - 1) = 2 · 0.7616 - 3 · 0.4621
    np.testing.assert_allclose(np.round(scores, 4), [[0.1368]], atol=FLOAT32)


@pytest.mark.parametrize("leading", [(), (B,), (B, 17)])
def test_scores_equal_the_loop_for_different_widths_and_any_leading_axes(leading):
    query, key = normal(*leading, T, D_QUERY), normal(*leading, S, D_KEY, seed=1)
    score = AdditiveScore(units=U)
    scores = to_numpy(score(query, key))
    expected = attention.scores(query, key, attention.additive, *score.get_weights())
    np.testing.assert_allclose(scores, expected, atol=FLOAT32)


def test_weights_are_the_query_kernel_the_key_kernel_and_the_vector():
    score = AdditiveScore(units=U)
    score.build((B, T, D_QUERY), (B, S, D_KEY))
    assert [(weight.name, tuple(weight.shape)) for weight in score.weights] == [
        ("query_kernel", (D_QUERY, U)),
        ("key_kernel", (D_KEY, U)),
        ("vector", (U,)),
    ]


def test_without_units_the_hidden_layer_has_the_width_of_the_key():
    score = AdditiveScore()
    score.build((B, T, D_QUERY), (B, S, D_KEY))
    assert score.vector.shape == (D_KEY,)
    assert score.units is None


def test_kernels_do_not_start_equal():
    score = AdditiveScore(units=U)
    score.build((B, T, D_QUERY), (B, S, D_QUERY))
    query_kernel, key_kernel, _ = score.get_weights()
    assert np.abs(query_kernel - key_kernel).min() > 0


def test_kernels_of_a_seeded_initializer_are_those_of_the_seed():
    score = AdditiveScore(units=U, kernel_initializer=keras.initializers.GlorotUniform(seed=5))
    score.build((B, T, D_QUERY), (B, S, D_KEY))
    expected = keras.initializers.GlorotUniform(seed=5)((D_QUERY, U))
    np.testing.assert_array_equal(score.get_weights()[0], to_numpy(expected))


def test_half_precision_does_not_overflow():
    query = keras.ops.full((1, 1, 64), 60000.0, dtype="float16")
    score = AdditiveScore(units=3, kernel_initializer="ones", dtype="mixed_float16")
    assert to_numpy(score(query, query)).tolist() == [[[3.0]]]
    difference = to_numpy(score(query, -query))
    assert difference.tolist() == [[[0.0]]]  # inf - inf in float16


@pytest.mark.parametrize(
    ("units", "error", "message"),
    [
        (0, ValueError, r"`units` must be a positive integer. Received: 0\."),
        (-2, ValueError, r"`units` must be a positive integer. Received: -2\."),
        (2.5, ValueError, r"`units` must be a positive integer. Received: 2.5 of type float\."),
        ("7", ValueError, r"`units` must be a positive integer. Received: '7' of type str\."),
        (True, ValueError, r"`units` must be a positive integer. Received: True of type bool\."),
    ],
)
def test_units_must_be_a_positive_integer(units, error, message):
    with pytest.raises(error, match=message):
        AdditiveScore(units=units)


def test_both_widths_must_be_known():
    with pytest.raises(ValueError, match=r"`query` must have a known last axis.* shape \(None, 3, None\)"):
        AdditiveScore(units=U)(keras.Input((3, None)), keras.Input((5, 7)))
