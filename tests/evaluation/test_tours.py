import itertools
import math

import numpy as np
import pytest
from keras import ops

from keras_attention.evaluation.tours import evaluate_tours, is_tour, tour_length

RECTANGLE = [[0.0, 0.0], [3.0, 0.0], [3.0, 4.0], [0.0, 4.0]]


def length_of_loop(points, indices):
    """The sides of a closed tour one after the other."""
    stops = [points[index - 1] for index in itertools.takewhile(bool, indices)]
    return sum(math.dist(stops[k - 1], stops[k]) for k in range(len(stops)))


@pytest.mark.parametrize(
    ("indices", "length"),
    [
        ([1, 2, 3, 4], 14),
        ([2, 3, 4, 1, 0, 0], 14),
        ([1, 3, 2, 4, 0], 18),
        ([1, 2, 3, 0], 12),
        ([1, 3, 0, 2, 4], 10),
        ([1, 2, 2, 1, 0], 6),
        ([4, 0, 0], 0),
        ([0, 0], 0),
        (np.zeros(0, int), 0),
    ],
)
def test_length_is_that_of_all_sides_the_last_included(indices, length):
    assert tour_length(RECTANGLE, indices) == length


@pytest.mark.parametrize("width", [1, 2, 3])
def test_batch_has_the_length_of_each_tour(width, rng):
    B, n, L = 11, 7, 13
    points = rng.random((B, n, width))
    indices = np.zeros((B, L), "int32")
    for row in range(B):
        count = rng.integers(0, n + 1)
        indices[row, :count] = rng.permutation(n)[:count] + 1
    expected = [length_of_loop(*tour) for tour in zip(points, indices.tolist(), strict=True)]
    np.testing.assert_allclose(tour_length(points, indices), expected, rtol=1e-12)
    np.testing.assert_array_equal(
        tour_length(points.reshape(1, B, n, width), indices[None]), tour_length(points, indices)[None]
    )


def test_padding_of_points_and_tours_changes_nothing(rng):
    points, indices = rng.random((5, 7, 2)), np.stack([rng.permutation(7) + 1 for _ in range(5)])
    padded = tour_length(np.pad(points, [[0, 0], [0, 3], [0, 0]]), np.pad(indices, [[0, 0], [0, 2]]))
    np.testing.assert_allclose(padded, tour_length(points, indices), rtol=1e-12)


def test_float32_points_and_tensors_are_summed_in_float64(rng):
    points = rng.random((5, 7, 2)).astype("float32")
    indices = np.int32([[1, 2, 3, 4, 5, 6, 7]] * 5)
    lengths = tour_length(ops.array(points), ops.array(indices))
    assert lengths.dtype == "float64"
    np.testing.assert_array_equal(lengths, tour_length(points.astype("float64"), indices))


def test_empty_batch_has_no_length():
    assert tour_length(np.zeros((0, 7, 2)), np.zeros((0, 5), "int32")).shape == (0,)


@pytest.mark.parametrize(
    ("indices", "expected"),
    [
        ([3, 1, 4, 2, 0, 0], True),
        ([3, 1, 4, 2], True),
        ([3, 1, 4, 0], False),
        ([3, 1, 4, 1], False),
        ([3, 1, 4, 2, 3], False),
        ([3, 1, 0, 4, 2], False),
        ([0], False),
        ([], False),
    ],
)
def test_tour_visits_every_point_once(indices, expected):
    assert is_tour(RECTANGLE, indices) is expected


def test_one_and_two_points_have_tours():
    assert is_tour([[0.5, 0.5]], [1, 0])
    assert is_tour([[0.5, 0.5], [0.2, 0.2]], [2, 1, 0])


def test_evaluation_of_tours_by_hand():
    examples = [{"points": RECTANGLE, "indices": [1, 2, 3, 4]}, {"points": RECTANGLE[:2], "indices": [1, 2]}]
    answers = np.int32([[1, 3, 2, 4, 0], [2, 1, 0, 0, 0], [1, 2, 3, 3, 0], [1, 0, 0, 0, 0]])
    assert evaluate_tours(examples * 2, answers) == {
        "tour_length": pytest.approx((18 + 6) / 2),
        "reference_length": pytest.approx((14 + 6) / 2),
        "gap": pytest.approx(20.0),
        "valid": 0.5,
    }


def test_tours_of_single_points_have_no_gap():
    measures = evaluate_tours([{"points": [[0.5, 0.5]], "indices": [1]}], [[1, 0]])
    assert measures == {"tour_length": 0.0, "reference_length": 0.0, "gap": 0.0, "valid": 1.0}


def test_without_a_tour_there_is_no_length():
    measures = evaluate_tours([{"points": RECTANGLE, "indices": [1, 2, 3, 4]}], [[1, 2, 3, 0]])
    assert measures["valid"] == 0.0
    assert np.isnan([measures["tour_length"], measures["reference_length"], measures["gap"]]).all()


def test_index_beyond_the_points_raises():
    with pytest.raises(ValueError, match=r"from 1 to 4, the number of points\. Received 5 among \[1, 2, 5\]"):
        tour_length(RECTANGLE, [1, 2, 5])
    with pytest.raises(ValueError, match=r"Received -1 among \[1, 2, -1\]"):
        tour_length(RECTANGLE, [1, 2, -1])
    with pytest.raises(ValueError, match=r"from 1 to 4, the number of points\. Received 5 among \[1, 2, 5\]"):
        is_tour(RECTANGLE, [1, 2, 5])


def test_shapes_that_do_not_fit_raise():
    with pytest.raises(ValueError, match=r"Received points of shape \(2, 4, 2\) and indices of shape \(3, 4\)"):
        tour_length([RECTANGLE] * 2, [[1, 2, 3, 4]] * 3)
    with pytest.raises(ValueError, match=r"Received points of shape \(2,\) and indices of shape \(1,\)"):
        tour_length([0.5, 0.5], [1])


def test_indices_that_are_no_integers_raise():
    with pytest.raises(TypeError, match=r"`indices` must be integers\. Received float64 of shape \(2,\)"):
        tour_length(RECTANGLE, [1.0, 2.0])
