import numpy as np
import pytest

from keras_attention.checks.points import check_positions, finite_points, plane_points, positions_before_end


@pytest.mark.parametrize(
    ("indices", "expected"),
    [([3, 1, 2, 0, 0], [3, 1, 2]), ([3, 1], [3, 1]), ([2, 0, 3], [2]), ([0, 0], []), ([], []), ([2, 2, 2], [2, 2, 2])],
)
def test_positions_are_what_stands_before_the_end(indices, expected):
    assert positions_before_end("indices", indices, 3) == expected


@pytest.mark.parametrize("indices", [[1.0, 2.0], [[1, 2]], 3, [True]])
def test_indices_of_another_type_or_rank_raise(indices):
    with pytest.raises(TypeError, match=r"`answer` must be integers of shape \(L,\)\. Received"):
        positions_before_end("answer", indices)


def test_an_index_that_is_no_position_raises():
    with pytest.raises(
        ValueError, match=r"`answer` must be positions, from 1 on\. Received -1 among \[2, -1\]\. .*add 1"
    ):
        positions_before_end("answer", [2, -1, 0])
    with pytest.raises(
        ValueError, match=r"from 1 to 3, the number of points\. Received 4 among \[\[1, 4\], \[2, 3\]\]"
    ):
        check_positions("tours", [[1, 4], [2, 3]], 3)
    check_positions("tours", [], 0)


def test_points_are_finite_in_the_type_in_which_they_are_read():
    points = finite_points("points", [[[0.5, 1e30]], [[2, 3]]], "float32")
    assert points.dtype == "float32" and points.shape == (2, 1, 2)
    with pytest.raises(ValueError, match=r"must be finite in float32\. Received points\[1, 0\] = \[1e\+39, 3\.0\]"):
        finite_points("points", [[[0.5, 0.25]], [[1e39, 3.0]]], "float32")
    assert finite_points("points", np.zeros((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("points", [[[0.5, 0.5, 0.5]], [0.5, 0.5], [[[0.5, 0.5]]]])
def test_points_of_a_plane_have_two_coordinates(points):
    with pytest.raises(ValueError, match=r"`points` must have shape \(n, 2\), .* Received points of shape"):
        plane_points(points)
