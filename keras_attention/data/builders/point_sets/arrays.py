"""Arrays of `N` sets of `n` points each: their check, their lexicographic order, and which points are equal."""

import numpy as np


def point_sets(points, coordinates=2):
    """The points in float64, in which every label is computed; float32 points keep their values.

    Args:
        points: Array of shape `(N, n, coordinates)`: N sets of n points.
        coordinates: Integer, the number of coordinates of a point.

    Returns:
        Array of the same shape.

    Raises:
        ValueError: The shape is another one, a set has no point, or a coordinate is not finite.
    """
    points = np.asarray(points, dtype="float64")
    if points.ndim != 3 or points.shape[1] == 0 or points.shape[2] != coordinates:
        raise ValueError(
            f"`points` must have the shape (N, n, {coordinates}): N sets of n points each, n at least 1. Received shape "
            f"{points.shape}. Pass one set as `points[None]`, and sets of several sizes in one call for each size."
        )
    if not np.isfinite(points).all():
        number = np.argwhere(~np.isfinite(points))[0]
        raise ValueError(
            f"Every coordinate must be finite. Received {points[tuple(number)]} in point {number[1]} of set {number[0]} "
            "(both from 0). Leave the padding out of `points`."
        )
    return points


def near_origin(points):
    """Every set moved to the origin and scaled into the unit square, where solvers lose no digits.

    `[[[1000, 7], [1002, 7], [1000, 8]]]`  ->  `[[[0, 0], [0.5, 0], [0, 0.25]]]`

    The lowest coordinates are subtracted, and the rest is divided by a power of two: for coordinates that are multiples of
    one number, such as those of the data sets, both are exact, as the mean would not be.
    """
    moved = points - points.min(axis=1, keepdims=True)
    _, exponents = np.frexp(moved.max(axis=(1, 2), keepdims=True))
    return np.ldexp(moved, -exponents)


def lexicographic_order(points):
    """Positions that sort every set by x and then by y; equal points keep their order.

    `[[[0.5, 0.9], [0.1, 0.3], [0.5, 0.2]]]`  ->  `[[1, 2, 0]]`, shape `(N, n)`
    """
    return np.lexsort((points[..., 1], points[..., 0]), axis=-1)


def is_first_of_equals(sorted_points):
    """True where a point of a sorted set differs from the one before it.

    `[[[0.1, 0.3], [0.5, 0.2], [0.5, 0.2]]]`  ->  `[[True, True, False]]`, shape `(N, n)`
    """
    fresh = np.ones(sorted_points.shape[:2], dtype=bool)
    fresh[:, 1:] = (sorted_points[:, 1:] != sorted_points[:, :-1]).any(axis=-1)
    return fresh


def lowest_equals(points):
    """For every point the lowest position of a point equal to it.

    `[[[0.5, 0.2], [0.1, 0.3], [0.5, 0.2]]]`  ->  `[[0, 1, 0]]`, shape `(N, n)`
    """
    order = lexicographic_order(points)
    fresh = is_first_of_equals(np.take_along_axis(points, order[..., None], axis=1))
    first = np.maximum.accumulate(np.where(fresh, np.arange(points.shape[1]), 0), axis=1)
    lowest = np.empty_like(order)
    np.put_along_axis(lowest, order, np.take_along_axis(order, first, axis=1), axis=1)
    return lowest


def split_rows(flat, lengths):
    """`[3, 1, 4, 1, 5]`, `[2, 0, 3]`  ->  `[[3, 1], [], [4, 1, 5]]`, a list of arrays"""
    return np.split(flat, np.cumsum(lengths))[:-1]
