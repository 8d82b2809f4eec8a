import keras
import numpy as np
import pytest
from reference import attention
from reference.arrays import normal, to_numpy
from tolerances import FLOAT32

from keras_attention.scores import BilinearScore

B, T, S, D_QUERY, D_KEY = 2, 3, 5, 7, 11


def test_a_score_is_the_bilinear_form_of_query_and_key():
    score = BilinearScore()
    score.build((1, 2), (1, 3))
    score.set_weights([np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]])])
    query, key = np.array([[1.0, 10.0]], "float32"), np.array([[3.0, 4.0, 5.0]], "float32")
    assert to_numpy(score(query, key)).tolist() == [[53.0]]  # 1·3 + 1·2·5 + 10·4


def test_the_identity_kernel_gives_the_dot_product():
    score = BilinearScore(kernel_initializer="identity")
    query, key = normal(B, T, D_QUERY), normal(B, S, D_QUERY, seed=1)
    np.testing.assert_allclose(score(query, key), attention.scores(query, key, attention.dot), atol=FLOAT32)


@pytest.mark.parametrize("leading", [(), (B,), (B, 13)])
def test_scores_equal_the_loop_for_different_widths_and_any_leading_axes(leading):
    query, key = normal(*leading, T, D_QUERY), normal(*leading, S, D_KEY, seed=1)
    score = BilinearScore()
    scores = to_numpy(score(query, key))
    (kernel,) = score.get_weights()
    assert kernel.shape == (D_QUERY, D_KEY)
    np.testing.assert_allclose(scores, attention.scores(query, key, attention.bilinear, kernel), atol=FLOAT32)


def test_half_precision_does_not_overflow():
    query = keras.ops.full((1, 1, 64), 60.0, dtype="float16")
    score = BilinearScore(kernel_initializer="identity", dtype="mixed_float16")
    assert to_numpy(score(query, query)).tolist() == [[[230400.0]]]


def test_both_widths_must_be_known():
    with pytest.raises(ValueError, match=r"`key` must have a known last axis.* shape \(None, 5, None\)"):
        BilinearScore()(keras.Input((3, 7)), keras.Input((5, None)))
