"""Convex hulls of `N` sets of `n` points at once, by the monotone chain."""

import numpy as np

from keras_attention.data.builders.point_sets.arrays import (
    is_first_of_equals,
    lexicographic_order,
    near_origin,
    point_sets,
    sets_of_any_size,
    split_rows,
)


@sets_of_any_size
def convex_hulls(points):
    """Vertices of the convex hull of every set, counter-clockwise from the lowest index.

    `[[[0, 0], [1, 1], [0, 1], [1, 0], [0.4, 0.5]]]`  ->  `[array([1, 4, 2, 3])]`

    Only corners are vertices: a point between two others on an edge is not a vertex, and of equal points the lowest
    index stands for all. Points that are all on one line have their two ends as hull, equal points and a single one
    have one vertex. As usual in this package the first vertex is not repeated at the end.

    A turn is computed in float64, which is exact for coordinates in [0, 1) that are multiples of 2^-24, such as those
    of the data set. For others, points that are collinear to the last digit may count as a corner or not.

    `scipy.spatial.ConvexHull` rounds: of (0, 0), (12798179, 9180453), (14897632, 10686443) and (0, 16777215), all times
    2^-24, it drops the second, a corner. It also refuses points on one line.

    Args:
        points: Array of shape `(N, n, 2)`, n at least 1, or a list of N arrays `(n, 2)` that may differ in n.

    Returns:
        List of N int32 arrays, positions counted from 1.

    Raises:
        ValueError: `points` has another shape, or a coordinate that is not finite.

    References:
        Andrew, 1979, Another efficient algorithm for convex hulls in two dimensions.
    """
    points = point_sets(points)
    n = points.shape[1]
    order = lexicographic_order(points)
    sorted_points = np.take_along_axis(points, order[..., None], axis=1)
    fresh = is_first_of_equals(sorted_points)
    sorted_points = near_origin(sorted_points)
    lower, lower_length = half_hulls(sorted_points, fresh, range(n))
    upper, upper_length = half_hulls(sorted_points, fresh, range(n - 1, -1, -1))

    # Both halves end where the other one begins; a single point is only in the lower one.
    column = np.arange(n)
    kept = np.hstack([column < np.maximum(lower_length - 1, 1)[:, None], column < upper_length[:, None] - 1])
    rings = np.take_along_axis(order, np.hstack([lower, upper]), axis=1)  # (N, 2n)
    lengths = kept.sum(axis=1)
    return split_rows(from_lowest(rings[kept], lengths).astype("int32") + 1, lengths)


def half_hulls(sorted_points, fresh, positions):
    """The corners of one side of every set, all of them turns to the left.

    Args:
        sorted_points: Array of shape `(N, n, 2)`.
        fresh: Boolean array of shape `(N, n)`, False for a point to leave out.
        positions: The positions of the points in the order in which they are visited.

    Returns:
        `(stack, length)`: positions of shape `(N, n)`, of which the first `length`, of shape `(N,)`, are the corners.
    """
    x, y = np.ascontiguousarray(sorted_points.T)  # (n, N)
    stack = np.zeros(x.shape, dtype="int64")
    length = np.zeros(x.shape[1], dtype="int64")
    for position in positions:
        added = np.flatnonzero(fresh[:, position])
        open_sets = added[length[added] >= 2]
        while open_sets.size:
            before, last = stack[length[open_sets] - 2, open_sets], stack[length[open_sets] - 1, open_sets]
            x_before, y_before = x[before, open_sets], y[before, open_sets]
            turn = (x[last, open_sets] - x_before) * (y[position, open_sets] - y_before)
            turn -= (y[last, open_sets] - y_before) * (x[position, open_sets] - x_before)
            open_sets = open_sets[turn <= 0]  # `last` is not a corner
            length[open_sets] -= 1
            open_sets = open_sets[length[open_sets] >= 2]
        stack[length[added], added] = position
        length[added] += 1
    return stack.T, length


def from_lowest(flat, lengths):
    """Every ring turned so that it begins with its lowest number.

    `[5, 2, 4, 7, 3]`, `[3, 2]`  ->  `[2, 4, 5, 3, 7]`
    """
    starts = np.cumsum(lengths) - lengths
    ring = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(len(flat)) - starts[ring]
    lowest = np.minimum.reduceat(flat, starts)
    shift = place[flat == lowest[ring]]  # (N,)
    return flat[starts[ring] + (place + shift[ring]) % lengths[ring]]
