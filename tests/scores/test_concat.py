import keras
import numpy as np
import pytest
from reference import attention
from reference.arrays import normal, to_numpy
from tolerances import FLOAT32

from keras_attention.scores import ConcatScore

B, T, S, D_QUERY, D_KEY, U = 2, 3, 5, 7, 11, 13


def test_a_score_is_the_vector_times_a_layer_on_query_and_key_side_by_side():
    score = ConcatScore(units=2)
    score.build((1, 1), (1, 1))
    score.set_weights([np.array([[1.0, 0.5], [0.0, 1.0]]), np.array([2.0, 3.0])])
    scores = score(np.array([[1.0]], "float32"), np.array([[-1.0]], "float32"))
    # 2 · tanh(1) + 3 · tanh(0.5 - 1) = 2 · 0.7616 - 3 · 0.4621
    np.testing.assert_allclose(np.round(scores, 4), [[0.1368]], atol=FLOAT32)


@pytest.mark.parametrize("leading", [(), (B,), (B, 17)])
def test_scores_equal_the_loop_for_different_widths_and_any_leading_axes(leading):
    query, key = normal(*leading, T, D_QUERY), normal(*leading, S, D_KEY, seed=1)
    score = ConcatScore(units=U)
    scores = to_numpy(score(query, key))
    expected = attention.scores(query, key, attention.concat, *score.get_weights())
    np.testing.assert_allclose(scores, expected, atol=FLOAT32)


def test_weights_are_one_kernel_for_the_pair_and_the_vector():
    score = ConcatScore(units=U)
    score.build((B, T, D_QUERY), (B, S, D_KEY))
    assert [(weight.name, tuple(weight.shape)) for weight in score.weights] == [
        ("kernel", (D_QUERY + D_KEY, U)),
        ("vector", (U,)),
    ]


def test_without_units_the_hidden_layer_has_the_width_of_the_key():
    score = ConcatScore()
    score.build((B, T, D_QUERY), (B, S, D_KEY))
    assert score.vector.shape == (D_KEY,)


def test_half_precision_does_not_overflow():
    query = keras.ops.full((1, 1, 64), 60000.0, dtype="float16")
    score = ConcatScore(units=3, kernel_initializer="ones", dtype="mixed_float16")
    assert to_numpy(score(query, -query)).tolist() == [[[0.0]]]  # inf - inf in float16


def test_units_must_be_a_positive_integer():
    with pytest.raises(ValueError, match=r"`units` must be a positive integer. Received: -3\."):
        ConcatScore(units=-3)


def test_both_widths_must_be_known():
    with pytest.raises(ValueError, match=r"`key` must have a known last axis.* shape \(None, 5, None\)"):
        ConcatScore(units=U)(keras.Input((3, 7)), keras.Input((5, None)))
