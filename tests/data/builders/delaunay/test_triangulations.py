import itertools
import sys
from fractions import Fraction

import numpy as np
import pytest

from keras_attention.data.builders.delaunay import delaunay_triangulations
from keras_attention.data.builders.delaunay.triangulations import incenters

pytest.importorskip("scipy", reason="scipy, of the extra `geometry`, is not installed")


def triangles(points):
    (indices,) = delaunay_triangulations([points])
    return indices.reshape(-1, 3).tolist()


def twice_the_area(a, b, c):
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def is_in_circle(a, b, c, point):
    """Positive where the point is inside of the circle through a, b and c; exact for fractions."""
    rows = [(x - point[0], y - point[1], (x - point[0]) ** 2 + (y - point[1]) ** 2) for x, y in (a, b, c)]
    (a, b, c), (d, e, f), (g, h, i) = rows
    determinant = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
    corners = [(x + point[0], y + point[1]) for x, y, _ in rows]
    return determinant * (1 if twice_the_area(*corners) > 0 else -1)


def triangles_by_definition(points):
    """All triangles with an empty circumcircle, by the incenter written as in a schoolbook."""
    exact = [(Fraction(x), Fraction(y)) for x, y in points]
    found = []
    for corners in itertools.combinations(range(len(points)), 3):
        a, b, c = (exact[corner] for corner in corners)
        others = [point for position, point in enumerate(exact) if position not in corners]
        if twice_the_area(a, b, c) and all(is_in_circle(a, b, c, point) < 0 for point in others):
            found.append(corners)

    def incenter(corners):
        a, b, c = (np.array(points[corner]) for corner in corners)
        sides = [np.hypot(*(b - c)), np.hypot(*(c - a)), np.hypot(*(a - b))]
        return tuple((sides[0] * a + sides[1] * b + sides[2] * c) / sum(sides))

    return [[corner + 1 for corner in corners] for corners in sorted(found, key=incenter)]


def test_triangles_run_from_left_to_right_and_their_corners_by_index():
    assert triangles([[0, 0], [1, 0.1], [0.1, 1], [1, 1]]) == [[1, 2, 3], [2, 3, 4]]
    assert triangles([[1, 1], [0.1, 1], [1, 0.1], [0, 0]]) == [[2, 3, 4], [1, 2, 3]]


def test_answers_are_flat_int32_lists():
    (indices,) = delaunay_triangulations([[[0, 0], [1, 0.1], [0.1, 1]]])
    assert (indices.dtype, indices.tolist()) == ("int32", [1, 2, 3])


@pytest.mark.parametrize("n", [3, 4, 5, 7])
def test_triangles_are_all_those_with_an_empty_circumcircle(n, rng):
    points = rng.random((31, n, 2), dtype="float32").astype("float64")
    for one_set, indices in zip(points.tolist(), delaunay_triangulations(points), strict=True):
        assert indices.reshape(-1, 3).tolist() == triangles_by_definition(one_set)


@pytest.mark.parametrize(
    "points",
    [
        [[0.5, 0.2]],
        [[0.9, 0.2], [0.1, 0.7]],
        [[0.5, 0.5], [0.75, 0.75], [0.0, 0.0], [0.25, 0.25]],
        [[0.5, 0.1], [0.5, 0.9], [0.5, 0.4]],
        [[0.5, 0.2]] * 5,
        [[0.5, 0.2], [0.9, 0.7]] * 3,
    ],
    ids=["one", "two", "diagonal line", "vertical line", "equal", "two places"],
)
def test_sets_without_a_triangle_have_an_empty_answer(points):
    assert triangles(points) == []


def test_lowest_index_stands_for_equal_points():
    assert triangles([[0, 0], [1, 0.1], [0, 0], [0.1, 1], [1, 0.1]]) == [[1, 2, 4]]


def test_triangles_of_a_grid_cover_it_and_their_circumcircles_are_empty():
    grid = [(Fraction(x), Fraction(y)) for x in range(4) for y in range(3)]  # every cell has four points on one circle
    found = triangles([[float(x), float(y)] for x, y in grid])
    areas = [abs(twice_the_area(*(grid[corner - 1] for corner in corners))) for corners in found]
    assert (len(found), min(areas), sum(areas)) == (12, 1, 12)
    for corners in found:
        assert all(is_in_circle(*(grid[corner - 1] for corner in corners), point) <= 0 for point in grid)


def test_a_set_has_the_same_triangles_alone_and_among_others(rng):
    points = rng.random((13, 11, 2))
    for one_set, indices in zip(points, delaunay_triangulations(points), strict=True):
        assert triangles(one_set) == indices.reshape(-1, 3).tolist()


@pytest.mark.parametrize(
    "offset, scale", [(1.7e9, 1.0), (5e6, 1.0), (-3e5, 2.0**-14), (0.0, 2.0**500), (0.0, 2.0**-700)]
)
def test_triangles_far_from_the_origin_and_of_any_size_are_those_at_the_origin(offset, scale, rng):
    points = rng.integers(0, 2**20, (20, 2)) / 2**20  # so that adding the offset rounds nothing away
    moved = (points + offset) * scale
    np.testing.assert_array_equal(moved / scale - offset, points)
    assert len(triangles(points)) > 20
    assert triangles(moved) == triangles(points)


def test_triangles_of_places_ten_metres_apart_are_all_found(rng):
    places = [13.4, 52.5] + 1e-4 * rng.random((7, 2))  # longitude and latitude
    assert triangles(places) == triangles_by_definition((places - places.mean(axis=0)).tolist())


def test_incenter_of_a_right_triangle():
    np.testing.assert_allclose(incenters(np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 3.0]])), [1, 1])


def test_no_sets_have_no_triangles():
    assert delaunay_triangulations(np.zeros((0, 5, 2))) == []


def test_points_of_another_shape_raise():
    with pytest.raises(ValueError, match=r"Received shape \(2, 5, 3\)"):
        delaunay_triangulations(np.zeros((2, 5, 3)))


def test_missing_scipy_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.spatial", None)
    with pytest.raises(ImportError, match=r"scipy, which is not installed.*pip install '\.\[geometry\]'"):
        delaunay_triangulations(np.zeros((1, 3, 2)))
