import pytest
from reference.arrays import to_numpy

from keras_attention.masks import Causal, Window


def test_a_window_looks_both_ways_and_with_causality_back():
    assert to_numpy(Window(2).mask(1, 3)).tolist() == [[[False, True, True]]]
    assert to_numpy((Causal() & Window(2)).mask(2, 3)).tolist() == [[[True, True, False], [False, True, True]]]


@pytest.mark.parametrize("width", [0, 1.5, None])
def test_a_window_has_a_width(width):
    with pytest.raises(ValueError, match=rf"`width` must be a positive integer\. Received: {width}"):
        Window(width)
