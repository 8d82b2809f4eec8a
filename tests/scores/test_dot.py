import keras
import numpy as np
import pytest
from reference import attention
from reference.arrays import normal, to_numpy
from tolerances import FLOAT32

from keras_attention.scores import DotScore

B, T, S, D = 2, 3, 5, 7


def test_a_score_is_the_dot_product_of_query_and_key():
    query, key = np.array([[1.0, 2.0], [0.0, -1.0]], "float32"), np.array([[3.0, 4.0]], "float32")
    assert to_numpy(DotScore()(query, key)).tolist() == [[11.0], [-4.0]]


@pytest.mark.parametrize("leading", [(), (B,), (B, 11), (B, 1, 13)])
def test_scores_equal_the_loop_for_any_leading_axes(leading):
    query, key = normal(*leading, T, D), normal(*leading, S, D, seed=1)
    np.testing.assert_allclose(DotScore()(query, key), attention.scores(query, key, attention.dot), atol=FLOAT32)


def test_half_precision_does_not_overflow():
    query = keras.ops.full((1, 1, 64), 60.0, dtype="float16")
    scores = DotScore(dtype="mixed_float16")(query, query)
    assert to_numpy(scores).tolist() == [[[230400.0]]]  # the largest float16 is 65504


def test_widths_must_be_equal():
    with pytest.raises(
        ValueError, match=r"DotScore needs .* same width D.* \(2, 3, 7\) \(D=7\).* \(2, 5, 11\) \(D=11\)"
    ):
        DotScore()(normal(B, T, D), normal(B, S, 11))
