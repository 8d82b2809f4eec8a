import keras
import numpy as np
import pytest
from reference import attention
from reference.arrays import normal, to_numpy
from tolerances import FLOAT32

from keras_attention.scores import ScaledDotScore

B, T, S, D = 2, 3, 5, 7


def test_a_score_is_the_dot_product_over_the_root_of_the_width():
    query, key = np.array([[1.0, 2.0, 0.0, 0.0]], "float32"), np.array([[3.0, 4.0, 9.0, 9.0]], "float32")
    assert to_numpy(ScaledDotScore()(query, key)).tolist() == [[5.5]]


@pytest.mark.parametrize("leading", [(), (B,), (B, 11), (B, 1, 13)])
def test_scores_equal_the_loop_for_any_leading_axes(leading):
    query, key = normal(*leading, T, D), normal(*leading, S, D, seed=1)
    expected = attention.scores(query, key, attention.scaled_dot)
    np.testing.assert_allclose(ScaledDotScore()(query, key), expected, atol=FLOAT32)


def test_half_precision_does_not_overflow():
    query = keras.ops.full((1, 1, 64), 200.0, dtype="float16")
    scores = ScaledDotScore(dtype="float16")(query, query)
    assert to_numpy(scores).tolist() == [[[320000.0]]]


def test_widths_must_be_equal():
    with pytest.raises(ValueError, match=r"ScaledDotScore needs .* same width D.*\(D=7\).*\(D=11\)"):
        ScaledDotScore()(normal(B, T, D), normal(B, S, 11))


def test_the_width_must_be_known():
    with pytest.raises(ValueError, match=r"`query` must have a known last axis.* shape \(None, 3, None\)"):
        ScaledDotScore()(keras.Input((3, None)), keras.Input((5, 7)))
