import numpy as np
import pytest
from keras import ops
from reference.arrays import to_numpy

from keras_attention.masks import Prefix


@pytest.mark.parametrize("length", [3, np.int64(3), np.array(3), np.array([3], "uint8"), [3]])
def test_a_length_is_a_number_or_one_for_each_row(length):
    assert to_numpy(Prefix(length).mask(2, 5)).tolist() == [[[True, True, True, False, False]] * 2]


@pytest.mark.parametrize(("length", "expected"), [(0, 0), (7, 5)])
def test_a_prefix_may_be_empty_or_longer_than_the_keys(length, expected):
    assert to_numpy(Prefix(length).mask(1, 5)).sum() == expected


def test_a_prefix_says_its_length():
    assert repr(Prefix(3)) == "Prefix(3)"
    assert repr(Prefix(ops.array([3, 2]))) == "Prefix(shape=(2,))"


@pytest.mark.parametrize(
    ("length", "error", "message"),
    [
        (-1, ValueError, r"`length` must be at least 0\. Received length=-1"),
        (2.0, TypeError, r"`length` must be integers\. Received dtype float32"),
        ([[1]], ValueError, r"`length` must be an integer, or integers of shape \(B,\)\. Received shape \(1, 1\)"),
    ],
)
def test_a_length_is_an_integer(length, error, message):
    with pytest.raises(error, match=message):
        Prefix(length)
