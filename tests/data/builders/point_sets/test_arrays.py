import numpy as np
import pytest

from keras_attention.data import ascending_orders, convex_hulls, delaunay_triangulations, shortest_tours
from keras_attention.data.builders.point_sets.arrays import (
    is_first_of_equals,
    lexicographic_order,
    lowest_equals,
    point_sets,
    split_rows,
)

SIZES = [5, 3, 8, 5, 1]


@pytest.mark.parametrize("solve", [convex_hulls, delaunay_triangulations, shortest_tours, ascending_orders])
def test_sets_of_several_sizes_have_the_answers_of_each_alone(solve, rng):
    width = 1 if solve is ascending_orders else 2
    sets = [rng.random((size, width)) for size in SIZES]
    answers = solve(sets)
    assert len(answers) == len(SIZES)
    for one_set, answer in zip(sets, answers, strict=True):
        np.testing.assert_array_equal(answer, solve([one_set])[0])
        assert answer.dtype == "int32"


def test_a_mistake_in_sets_of_several_sizes_is_named():
    with pytest.raises(
        ValueError, match=r"Set 1 \(from 0\): .* finite in float64\. Received points\[0\] = \[0\.5, nan\]"
    ):
        convex_hulls([np.ones((3, 2)), [[0.5, np.nan]]])
    with pytest.raises(ValueError, match=r"shape \(N, n, 2\).* Received shape \(1, 4, 3\)"):
        convex_hulls([np.ones((5, 2)), np.ones((4, 3))])


def test_float32_points_keep_their_values_in_float64(rng):
    points = rng.random((2, 3, 2)).astype("float32")
    sets = point_sets(points)
    assert sets.dtype == "float64"
    np.testing.assert_array_equal(sets, points)


@pytest.mark.parametrize("shape", [(3, 2), (2, 3, 1), (2, 0, 2), (2, 3, 5, 2)])
def test_other_shapes_raise(shape):
    with pytest.raises(ValueError, match=rf"shape \(N, n, 2\).*Received shape \({', '.join(map(str, shape))}\)"):
        point_sets(np.zeros(shape))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_coordinate_that_is_not_finite_raises_with_its_place(value):
    points = np.zeros((3, 5, 2))
    points[2, 1, 0] = value
    with pytest.raises(ValueError, match=rf"finite in float64\. Received points\[2, 1\] = \[{value}, 0\.0\]"):
        point_sets(points)


@pytest.mark.parametrize("points", [[[[2**60, 0], [2**60 + 1, 0], [2**60, 1]]], [[[1j, 0.0], [2.0, 3.0]]]])
def test_numbers_that_float64_does_not_know_raise(points):
    with pytest.raises(
        ValueError, match=r"must be real, and integers from -2\*\*53 to 2\*\*53\. Received (int64|complex128)"
    ):
        point_sets(points)


def test_lexicographic_order_is_by_x_then_y_then_position():
    points = point_sets([[[0.5, 0.9], [0.1, 0.3], [0.5, 0.2], [0.1, 0.3]]])
    np.testing.assert_array_equal(lexicographic_order(points), [[1, 3, 2, 0]])


def test_lexicographic_order_is_that_of_sorted_tuples(rng):
    points = rng.integers(0, 3, (11, 7, 2)) / 4
    for one_set, order in zip(points, lexicographic_order(points), strict=True):
        assert order.tolist() == sorted(range(7), key=lambda position: tuple(one_set[position]))


def test_first_of_equals_differs_from_the_one_before():
    points = point_sets([[[0.1, 0.3], [0.1, 0.4], [0.1, 0.4], [0.2, 0.4]]])
    np.testing.assert_array_equal(is_first_of_equals(points), [[True, True, False, True]])


def test_lowest_equal_is_the_first_position_of_the_same_point(rng):
    points = rng.integers(0, 3, (11, 7, 2)) / 4
    for one_set, lowest in zip(points, lowest_equals(points), strict=True):
        rows = [tuple(point) for point in one_set]
        assert lowest.tolist() == [rows.index(point) for point in rows]


def test_rows_are_split_by_their_lengths():
    assert [row.tolist() for row in split_rows(np.array([3, 1, 4, 1, 5]), [2, 0, 3])] == [[3, 1], [], [4, 1, 5]]


def test_no_lengths_give_no_rows():
    assert split_rows(np.array([]), []) == []
