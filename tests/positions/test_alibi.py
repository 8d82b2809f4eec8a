"""Attention with linear biases: the slopes of the paper, for any number of heads, and the bias."""

import numpy as np
import pytest
from reference.arrays import to_numpy
from reference.position_schemes import slope
from tolerances import FLOAT32

from keras_attention.positions import ALiBi

# As the published code gives them.
OF_TWELVE = (
    *(0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625),
    *(0.7071067811865476, 0.35355339059327384, 0.1767766952966369, 0.08838834764831849),
)


def built(N):
    scheme = ALiBi()
    scheme.build((None, N, None, 7))
    return scheme


@pytest.mark.parametrize("slopes", [OF_TWELVE[:8], OF_TWELVE], ids=len)
def test_slopes_of_eight_and_twelve_heads_are_the_published_ones(slopes):
    np.testing.assert_allclose(built(len(slopes)).slopes, slopes, rtol=FLOAT32)


@pytest.mark.parametrize("N", [*range(1, 8), 16, 17, 31])
def test_slopes_follow_the_rule_of_the_paper(N):
    np.testing.assert_allclose(built(N).slopes, [slope(n, N) for n in range(N)], rtol=FLOAT32)


def test_bias_falls_with_the_distance_on_both_sides():
    bias = to_numpy(built(2).bias(np.array([[2], [5000]], "int32"), np.array([[0, 1, 2, 4], [5000, 1, 2, 3]], "int32")))
    distances = np.array([[0.0 + 2, 1, 0, 2], [0, 4999, 4998, 4997]])
    expected = -np.array([1 / 16, 1 / 256])[:, None, None] * distances[:, None, None]  # (B, N, T, S)
    np.testing.assert_allclose(bias, expected, rtol=FLOAT32)
