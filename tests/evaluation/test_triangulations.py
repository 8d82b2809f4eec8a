import itertools

import numpy as np
import pytest

from keras_attention.evaluation.triangulations import (
    evaluate_triangulations,
    same_triangulation,
    triangle_coverage,
)

REFERENCE = [1, 2, 3, 2, 3, 5, 3, 5, 7]
POINTS = np.random.default_rng(7).random((7, 2))


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_order_of_triangles_and_corners_means_nothing(order):
    triangles = np.reshape(REFERENCE, (3, 3))
    assert same_triangulation([*triangles[list(order)].ravel(), 0], REFERENCE)
    assert same_triangulation(triangles[:, order].ravel(), REFERENCE)
    assert triangle_coverage(triangles[:, order].ravel(), REFERENCE) == 1.0


@pytest.mark.parametrize(
    ("answer", "coverage"),
    [
        ([1, 2, 3, 2, 3, 5, 0, 0, 0], 2 / 3),
        ([1, 2, 3, 2, 3, 5, 3, 5, 0], 2 / 3),  # the last triangle is unfinished
        ([1, 2, 3, 3, 2, 1, 3, 5, 7], 2 / 3),  # one is there twice
        ([*REFERENCE, 1, 2, 3], 1.0),
        ([*REFERENCE, 1, 2, 7], 1.0),
        ([*REFERENCE, 1, 2], 1.0),
        ([1, 1, 2, 2, 3, 5], 1 / 3),  # one is no triangle
        ([2, 1, 3, 5, 2, 3, 7, 5, 2], 2 / 3),
        ([4, 5, 6], 0.0),
        ([1, 2], 0.0),
        ([0, 0], 0.0),
        ([], 0.0),
    ],
)
def test_another_triangulation_covers_the_triangles_it_shares(answer, coverage):
    assert not same_triangulation(answer, REFERENCE)
    assert triangle_coverage(answer, REFERENCE) == pytest.approx(coverage)


def test_shifted_corners_are_other_triangles():
    assert not same_triangulation([*REFERENCE[1:], REFERENCE[0]], REFERENCE)


def test_points_without_triangle_are_covered_by_anything():
    assert same_triangulation([0, 0], [])
    assert not same_triangulation([1, 2, 3], [])
    assert triangle_coverage([0, 0], []) == triangle_coverage([1, 2, 3], []) == 1.0


def test_evaluation_is_the_mean_over_examples():
    examples = [{"points": POINTS, "indices": REFERENCE}, {"points": POINTS[:3], "indices": [1, 2, 3]}]
    answers = np.int32([[2, 3, 1, 5, 3, 2, 4, 5, 6, 0], [3, 2, 1, 0, 0, 0, 0, 0, 0, 0]])
    assert evaluate_triangulations(examples, answers) == {
        "accuracy": 0.5,
        "triangle_coverage": pytest.approx((2 / 3 + 1) / 2),
    }


def test_unfinished_reference_raises():
    with pytest.raises(ValueError, match=r"three indices for each triangle\. Received 4 indices: \[1, 2, 3, 1\]"):
        same_triangulation([1, 2, 3], [1, 2, 3, 1])


def test_index_beyond_the_points_raises():
    with pytest.raises(ValueError, match=r"from 1 to 3, the number of points\. Received 4 among \[1, 2, 4\]"):
        evaluate_triangulations([{"points": POINTS[:3], "indices": [1, 2, 3]}], [[1, 2, 4]])


def test_negative_index_raises():
    with pytest.raises(ValueError, match=r"Received -1 among \[-1, 2, 3\]"):
        triangle_coverage([-1, 2, 3], REFERENCE)
