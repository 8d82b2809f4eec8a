import numpy as np
import pytest

from keras_attention.data.builders.sorting import ascending_orders


def test_order_is_from_the_lowest_to_the_highest():
    assert ascending_orders([[[0.5], [0.1], [0.7], [0.3]]]).tolist() == [[2, 4, 1, 3]]


def test_of_equal_numbers_the_lowest_position_comes_first():
    assert ascending_orders([[[0.5], [0.1], [0.5], [0.1], [0.5]]]).tolist() == [[2, 4, 1, 3, 5]]


def test_orders_are_those_of_python(rng):
    values = rng.integers(0, 7, (11, 23, 1)) / 8
    orders = ascending_orders(values)
    assert orders.dtype == "int32"
    for one_set, order in zip(values[..., 0].tolist(), orders, strict=True):
        assert order.tolist() == [position + 1 for position in sorted(range(23), key=one_set.__getitem__)]


def test_one_number_is_in_order():
    assert ascending_orders([[[0.5]], [[0.1]]]).tolist() == [[1], [1]]


def test_no_sets_have_no_orders():
    assert ascending_orders(np.zeros((0, 5, 1))).shape == (0, 5)


def test_values_of_another_shape_raise():
    with pytest.raises(ValueError, match=r"must have the shape \(N, n, 1\).*Received shape \(2, 5\)"):
        ascending_orders(np.zeros((2, 5)))
