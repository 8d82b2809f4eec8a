import itertools
import sys

import numpy as np
import pytest

from keras_attention.evaluation.polygons import (
    area_coverage,
    evaluate_hulls,
    is_simple_polygon,
    polygon_area,
    same_polygon,
)

SQUARE = [[0.0, 0.0], [3.0, 0.0], [3.0, 2.0], [0.0, 2.0]]
INSIDE = [*SQUARE, [1.0, 1.0]]


@pytest.mark.parametrize("start", range(4))
def test_polygon_is_the_same_wherever_it_starts(start):
    reference = [2, 3, 5, 7]
    assert same_polygon([*reference[start:], *reference[:start], 0, 0], reference)


@pytest.mark.parametrize(
    "indices", [[7, 5, 3, 2], [2, 3, 5], [2, 3, 5, 7, 2], [2, 5, 3, 7], [2, 3, 5, 4], [2, 2, 3, 5], [0], []]
)
def test_other_polygons_are_not_the_same(indices):
    assert not same_polygon(indices, [2, 3, 5, 7])


def test_repeated_index_is_compared_with_its_place():
    assert same_polygon([1, 2, 1, 3], [1, 3, 1, 2])
    assert not same_polygon([1, 1, 2, 3], [1, 2, 1, 3])


def test_polygons_of_few_corners():
    assert same_polygon([1, 0, 0], [1])
    assert same_polygon([2, 1, 0], [1, 2])
    assert same_polygon([0, 0], [])
    assert not same_polygon([1, 0], [])


def test_negative_index_raises():
    with pytest.raises(ValueError, match=r"Received -1 among \[1, -1\]"):
        same_polygon([1, -1], [1, 2])


def crosses(p, q, r, s):
    """Whether two segments without common corner in general position cross, by the sides on which the ends lie."""

    def side(a, b, c):
        return np.sign((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))

    return side(p, q, r) != side(p, q, s) and side(r, s, p) != side(r, s, q)


@pytest.mark.parametrize("order", list(itertools.permutations(range(1, 6)))[::7])
def test_polygon_is_simple_when_no_two_sides_cross(order):
    points = np.random.default_rng(7).random((5, 2))
    corners = points[np.array(order) - 1]
    sides = [(corners[k], corners[(k + 1) % 5]) for k in range(5)]
    pairs = [(j, k) for j, k in itertools.combinations(range(5), 2) if (k - j) % 5 not in (1, 4)]
    assert is_simple_polygon(points, [*order, 0]) == (not any(crosses(*sides[j], *sides[k]) for j, k in pairs))


@pytest.mark.parametrize("indices", [[0], [], [1, 0], [1, 2, 0], [1, 2, 2, 0], [1, 2, 3, 1], [1, 2, 1, 3]])
def test_too_few_corners_and_repeated_ones_are_not_simple(indices):
    assert not is_simple_polygon(SQUARE, indices)


def test_corners_on_one_line_are_not_simple():
    assert not is_simple_polygon([[0, 0], [1, 1], [3, 3]], [1, 2, 3])


def test_corner_on_a_straight_side_is_simple():
    assert is_simple_polygon([[0, 0], [1, 0], [3, 0], [0, 2]], [1, 2, 3, 4])


def test_corner_on_another_side_is_not_simple():
    assert not is_simple_polygon([[0, 0], [4, 0], [4, 4], [2, 0], [0, 4]], [1, 2, 3, 4, 5])


def test_coverage_is_the_share_of_the_area():
    assert area_coverage(INSIDE, [1, 2, 3, 4, 0], [1, 2, 3, 4]) == 1.0
    assert area_coverage(INSIDE, [1, 2, 3, 0], [1, 2, 3, 4]) == 0.5
    assert area_coverage(INSIDE, [4, 3, 5, 1, 0], [1, 2, 3, 4]) == pytest.approx(2.5 / 6)


def test_direction_of_the_answer_does_not_matter_for_its_area():
    assert area_coverage(SQUARE, [4, 3, 2, 1], [1, 2, 3, 4]) == 1.0


def test_area_is_the_sum_of_the_triangles_to_the_corners():
    """`1/2 · |sum over corners of x · y_next - x_next · y|`"""
    points = np.random.default_rng(7).random((7, 2))
    checked = 0
    for order in itertools.permutations(range(1, 8), 4):
        corners = points[np.array(order) - 1]
        if is_simple_polygon(points, order):
            checked += 1
            total = sum(np.linalg.det([corners[k - 1], corners[k]]) for k in range(4))
            assert polygon_area(points, order) == pytest.approx(abs(total) / 2, rel=1e-9)
    assert checked > 100


def test_area_far_from_the_origin_is_exact():
    assert polygon_area(np.add(SQUARE, 2.0**30), [1, 2, 3, 4]) == 6.0


@pytest.mark.parametrize("indices", [[1, 3, 2, 4, 0], [1, 2, 0], [0], [1, 2, 3, 3]])
def test_what_is_not_a_simple_polygon_covers_nan(indices):
    assert np.isnan(area_coverage(SQUARE, indices, [1, 2, 3, 4]))


def test_hull_without_area_is_covered_to_nan():
    assert np.isnan(area_coverage(SQUARE, [1, 2, 3], [1, 2]))
    assert np.isnan(area_coverage([[0, 0]], [1], [1]))


def test_evaluation_of_hulls_by_hand():
    examples = [{"points": INSIDE, "indices": [1, 2, 3, 4]}] * 5
    answers = [[3, 4, 1, 2, 0], [1, 2, 3, 0, 0], [4, 3, 2, 1, 0], [1, 3, 2, 4, 0], [0, 0, 0, 0, 0]]
    assert evaluate_hulls(examples, np.int32(answers)) == {
        "accuracy": pytest.approx(1 / 5),
        "area_coverage": pytest.approx((1 + 0.5 + 1) / 3),
        "simple": pytest.approx(3 / 5),
    }


def test_hulls_of_one_and_two_points_can_be_right_but_have_no_area():
    examples = [{"points": [[0.5, 0.5]], "indices": [1]}, {"points": [[0.0, 0.0], [1.0, 1.0]], "indices": [1, 2]}]
    measures = evaluate_hulls(examples, [[1, 0, 0], [2, 1, 0]])
    assert (measures["accuracy"], measures["simple"]) == (1.0, 0.0)
    assert np.isnan(measures["area_coverage"])


def test_index_beyond_the_points_raises():
    for measure in (is_simple_polygon, polygon_area):
        with pytest.raises(ValueError, match=r"from 1 to 4, the number of points\. Received 5 among \[1, 2, 5\]"):
            measure(SQUARE, [1, 2, 5])


@pytest.mark.parametrize("points", [[[0.0, 0.0]] * 3, [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]])
def test_two_corners_at_one_place_are_no_simple_polygon(points):
    assert not is_simple_polygon(points, range(1, len(points) + 1))


def test_points_that_are_not_finite_raise():
    with pytest.raises(ValueError, match=r"`points` must be finite in float64\. Received points\[1\] = \[nan, 0\.0\]"):
        is_simple_polygon([[0.0, 0.0], [np.nan, 0.0], [0.0, 1.0]], [1, 2, 3])


def test_missing_shapely_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "shapely", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[geometry\]'"):
        is_simple_polygon(SQUARE, [1, 2, 3])
