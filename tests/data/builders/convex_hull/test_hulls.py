import itertools
import pathlib

import numpy as np
import pytest

from keras_attention.data import convex_hulls, read_points

PUBLISHED = pathlib.Path(__file__).parents[5] / "shared" / "data" / "pointer" / "convex_hull_5.txt.gz"


def hull(points):
    (indices,) = convex_hulls([points])
    return indices.tolist()


def turn(a, b, c):
    """Positive where the way from a over b to c turns left; exact for small whole numbers."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def is_within(point, corners):
    """Whether the point is in the closed triangle or on the closed segment of the corners."""
    if len(corners) == 2:
        a, b = corners
        return turn(a, b, point) == 0 and min(a, b) <= point <= max(a, b)
    a, b, c = corners
    turns = [turn(a, b, point), turn(b, c, point), turn(c, a, point)]
    return turn(a, b, c) != 0 and (min(turns) >= 0 or max(turns) <= 0)


def corners_by_definition(points):
    """Points that are within no triangle and no segment of other points; of equal ones the lowest position."""
    distinct = dict.fromkeys(points)
    corners = set()
    for point in distinct:
        others = [other for other in distinct if other != point]
        parts = [*itertools.combinations(others, 2), *itertools.combinations(others, 3)]
        if not any(is_within(point, part) for part in parts):
            corners.add(points.index(point))
    return corners


def test_corners_of_a_square_are_counter_clockwise_from_the_lowest_index():
    assert hull([[0, 0], [1, 1], [0, 1], [1, 0], [0.4, 0.5]]) == [1, 4, 2, 3]


@pytest.mark.parametrize("offset, scale", [(1.7e9, 1.0), (5e6, 1.0), (0.0, 2.0**600), (0.0, 2.0**-700)])
def test_a_hull_far_from_the_origin_and_of_any_size_is_that_at_the_origin(offset, scale, rng):
    points = rng.integers(0, 2**20, (20, 2)) / 2**20  # so that adding the offset rounds nothing away
    assert hull((points + offset) * scale) == hull(points)


def test_hull_begins_with_the_lowest_index_that_is_a_corner():
    assert hull([[0.5, 0.5], [0.4, 0.6], [1, 1], [0, 0], [0, 1], [1, 0]]) == [3, 5, 4, 6]


def test_answers_are_int32():
    assert convex_hulls(np.zeros((1, 3, 2)))[0].dtype == "int32"


@pytest.mark.parametrize(
    ("points", "indices"),
    [
        ([[0.5, 0.2]], [1]),
        ([[0.9, 0.2], [0.1, 0.7]], [1, 2]),
        ([[0.5, 0.2], [0.5, 0.2], [0.5, 0.2]], [1]),
        ([[0.5, 0.5], [0.75, 0.75], [0.0, 0.0], [0.25, 0.25]], [2, 3]),
        ([[0.5, 0.1], [0.5, 0.9], [0.5, 0.4]], [1, 2]),
        ([[0.3, 0.5], [0.9, 0.5], [0.1, 0.5]], [2, 3]),
        ([[0.75, 0.75], [0.0, 0.0], [0.75, 0.75], [0.0, 0.0]], [1, 2]),
    ],
    ids=["one", "two", "equal", "diagonal line", "vertical line", "horizontal line", "two places"],
)
def test_degenerate_sets_have_the_documented_answer(points, indices):
    assert hull(points) == indices


def test_point_on_an_edge_is_no_corner():
    assert hull([[0, 0], [0.5, 0], [1, 0], [1, 1], [0.5, 0.5]]) == [1, 3, 4]


def test_a_corner_that_qhull_drops_is_kept():
    points = np.array([[0, 0], [12798179, 9180453], [14897632, 10686443], [0, 16777215]])
    assert 12798179 * 10686443 - 9180453 * 14897632 == 1  # twice the area of the first three: a turn to the left
    assert convex_hulls(points[None] * 2.0**-24)[0].tolist() == [1, 2, 3, 4]


def test_lowest_index_stands_for_equal_corners():
    assert hull([[1, 0], [0, 1], [1, 0], [0, 0], [0, 1], [0, 0]]) == [1, 2, 4]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
def test_corners_are_those_of_the_definition_and_all_points_lie_to_the_left_of_every_edge(n, rng):
    points = rng.integers(0, 5, (101, n, 2))  # a small grid: many equal and collinear points
    for one_set, indices in zip(points.tolist(), convex_hulls(points / 8), strict=True):
        ring = [tuple(one_set[index - 1]) for index in indices]
        assert set(indices - 1) == corners_by_definition([tuple(point) for point in one_set])
        assert indices[0] == min(indices)
        for a, b in zip(ring, ring[1:] + ring[:1], strict=True):
            assert all(turn(a, b, point) >= 0 for point in one_set)


def test_corners_are_those_of_shapely():
    shapely = pytest.importorskip("shapely", reason="shapely, of the extra `geometry`, is not installed")
    points = np.random.default_rng(7).random((211, 50, 2), dtype="float32").astype("float64")
    for one_set, indices in zip(points, convex_hulls(points), strict=True):
        ring = shapely.get_coordinates(shapely.convex_hull(shapely.MultiPoint(one_set)).exterior)
        assert {tuple(point) for point in ring} == {tuple(one_set[index - 1]) for index in indices}


def test_a_set_has_the_same_hull_alone_and_among_others(rng):
    points = rng.random((13, 11, 2))
    for one_set, indices in zip(points, convex_hulls(points), strict=True):
        assert hull(one_set) == indices.tolist()


def test_no_sets_have_no_hulls():
    assert convex_hulls(np.zeros((0, 5, 2))) == []


def test_points_of_another_shape_raise():
    with pytest.raises(ValueError, match=r"Received shape \(5, 2\)"):
        convex_hulls(np.zeros((5, 2)))


def test_hulls_of_the_published_file_are_ours():
    if not PUBLISHED.exists():
        pytest.skip(f"{PUBLISHED.name}, the published hulls, is not in ../shared/data/pointer")
    examples = read_points(PUBLISHED)
    assert len(examples) == 2000
    hulls = convex_hulls(np.array([example["points"] for example in examples]))
    assert [indices.tolist() for indices in hulls] == [example["indices"].tolist() for example in examples]
