import pathlib

import numpy as np
import pytest

from keras_attention.data import read_points, shortest_tours
from keras_attention.data.builders.tsp.tours import canonical_tours

PUBLISHED = pathlib.Path(__file__).parents[5] / "shared" / "data" / "pointer" / "tsp_10.txt.gz"


def corners_of(points, tours):
    return np.take_along_axis(np.asarray(points), np.asarray(tours)[..., None] - 1, axis=1)


def lengths(points, tours):
    """Lengths of closed tours: `(N, n, 2)` and positions from 1 `(N, n)`  ->  `(N,)`"""
    corners = corners_of(points, tours)
    return np.sqrt(((corners - np.roll(corners, -1, axis=1)) ** 2).sum(axis=-1)).sum(axis=1)


def signed_areas(points, tours):
    x, y = np.moveaxis(corners_of(points, tours), -1, 0)
    return (x * np.roll(y, -1, axis=1) - np.roll(x, -1, axis=1) * y).sum(axis=1) / 2


def as_given(points):
    return np.arange(len(points))


def test_tour_of_a_square_goes_around_it_counter_clockwise():
    tours = shortest_tours([[[0, 0], [1, 1], [1, 0], [0, 1]]])
    assert (tours.dtype, tours.tolist()) == ("int32", [[1, 3, 2, 4]])


@pytest.mark.parametrize(
    ("points", "tour"),
    [
        ([[0.5, 0.2]], [1]),
        ([[0.5, 0.2], [0.1, 0.9]], [1, 2]),
        ([[0, 0], [1, 0], [0, 1]], [1, 2, 3]),
        ([[0, 0], [0, 1], [1, 0]], [1, 3, 2]),
        ([[0, 0], [1, 1], [0.5, 0.5]], [1, 2, 3]),
    ],
    ids=["one", "two", "counter-clockwise", "clockwise", "line"],
)
def test_small_sets_have_the_documented_answer(points, tour):
    assert shortest_tours([points]).tolist() == [tour]


def test_tours_begin_at_index_1_and_run_counter_clockwise(rng):
    points = rng.random((53, 7, 2))
    tours = shortest_tours(points)
    assert (tours[:, 0] == 1).all()
    assert (np.sort(tours, axis=1) == np.arange(1, 8)).all()
    assert (signed_areas(points, tours) > 0).all()


def test_tour_on_a_line_has_the_lower_of_its_two_neighbours_second(rng):
    places = np.array([rng.permutation(7) for _ in range(11)]) / 8
    points = np.stack([places, places], axis=-1)
    tours = shortest_tours(points)
    assert (tours[:, 1] < tours[:, -1]).all()
    np.testing.assert_allclose(lengths(points, tours), 2 * np.sqrt(2) * 6 / 8)


def test_rounding_does_not_bend_a_line(rng):
    start, direction = rng.random((2, 101, 1, 2))
    tours = shortest_tours(start + rng.random((101, 5, 1)) * direction)
    assert (tours[:, 1] < tours[:, -1]).all()


@pytest.mark.parametrize("offset, scale", [(1.7e9, 1.0), (5e6, 1.0), (0.0, 2.0**600), (0.0, 2.0**-700)])
def test_a_tour_far_from_the_origin_and_of_any_size_is_that_at_the_origin(offset, scale, rng):
    points = rng.integers(0, 2**20, (3, 7, 2)) / 2**20  # so that adding the offset rounds nothing away
    np.testing.assert_array_equal(shortest_tours((points + offset) * scale), shortest_tours(points))


def test_equal_points_have_a_tour_of_length_zero():
    tours = shortest_tours(np.full((2, 5, 2), 0.5))
    assert np.sort(tours, axis=1).tolist() == [[1, 2, 3, 4, 5]] * 2


@pytest.mark.parametrize("tour", [[0, 2, 1, 3], [1, 2, 0, 3], [3, 0, 2, 1], [2, 0, 3, 1], [0, 3, 1, 2]])
def test_every_writing_of_a_tour_has_one_canonical_form(tour):
    square = np.array([[[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]])
    assert canonical_tours(square, np.array([tour])).tolist() == [[0, 2, 1, 3]]


def test_more_than_twelve_points_are_left_to_the_solver():
    angles = 2 * np.pi * np.arange(13) / 13
    circle = np.stack([np.cos(-angles), np.sin(-angles)], axis=-1)[None]
    assert shortest_tours(circle, solver=as_given).tolist() == [[1, *range(13, 1, -1)]]


def test_twelve_points_are_solved_exactly_whatever_the_solver(rng):
    points = rng.random((3, 12, 2))
    np.testing.assert_array_equal(shortest_tours(points, solver=as_given), shortest_tours(points))


def test_more_than_twelve_points_without_a_solver_raise():
    with pytest.raises(
        ValueError, match=r"more than 12 points need a solver. Received 13 points and solver=None.*PyVRP"
    ):
        shortest_tours(np.zeros((1, 13, 2)))


@pytest.mark.parametrize("answer", [[0, 1, 2], [0] * 13, list(range(1, 14))])
def test_answer_of_a_solver_that_is_no_tour_raises(answer):
    with pytest.raises(ValueError, match=r"every position from 0 to 12 once. Received \[.*\] from <function"):
        shortest_tours(np.zeros((1, 13, 2)), solver=lambda points: answer)


def test_no_sets_have_no_tours():
    assert shortest_tours(np.zeros((0, 5, 2))).shape == (0, 5)


def test_points_of_another_shape_raise():
    with pytest.raises(ValueError, match=r"Received shape \(5, 2\)"):
        shortest_tours(np.zeros((5, 2)))


def test_tours_are_as_long_as_the_published_optimal_ones():
    if not PUBLISHED.exists():
        pytest.skip(f"{PUBLISHED.name}, the published tours, is not in ../shared/data/pointer")
    points, published = (
        np.array([example[name] for example in read_points(PUBLISHED)]) for name in ("points", "indices")
    )
    assert published.shape == (2000, 10)
    points = points.astype("float64")
    np.testing.assert_allclose(lengths(points, shortest_tours(points)), lengths(points, published), rtol=1e-14)
