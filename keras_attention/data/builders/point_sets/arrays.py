"""Arrays of `N` sets of `n` points each: their check, their lexicographic order, and which points are equal."""

import functools

import numpy as np

from keras_attention.checks.messages import naming
from keras_attention.checks.points import finite_points

LARGEST_INTEGER = 2**53  # up to which float64 knows every one


def sets_of_any_size(solve):
    """A solver of `N` sets of `n` points each that also takes a list of sets that differ in n, and returns a list then."""

    @functools.wraps(solve)
    def solve_by_size(points, *arguments, **options):
        lengths = [np.shape(one_set)[:1] for one_set in points] if isinstance(points, list | tuple) else []
        if len(set(lengths)) < 2:
            return solve(points, *arguments, **options)
        answers = [None] * len(lengths)
        for length in set(lengths):
            rows = [row for row in range(len(lengths)) if lengths[row] == length]
            for row in rows:
                with naming(f"Set {row} (from 0)"):
                    finite_points("points", points[row])
            group = [points[row] for row in rows]
            for row, answer in zip(rows, solve(group, *arguments, **options), strict=True):
                answers[row] = answer
        return answers

    return solve_by_size


def point_sets(points, coordinates=2):
    """The points in float64, in which every label is computed; float32 points keep their values.

    Args:
        points: Array of shape `(N, n, coordinates)`: N sets of n points.
        coordinates: Integer, the number of coordinates of a point.

    Returns:
        Array of the same shape.

    Raises:
        ValueError: The shape is another one, a set has no point, or a coordinate is not finite, is complex, or is an integer
            that float64 does not know.
    """
    given = np.asarray(points)
    points = given.real.astype("float64")
    if given.dtype.kind == "c" or (given.dtype.kind in "iu" and (np.abs(points) > LARGEST_INTEGER).any()):
        raise ValueError(
            f"Coordinates must be real, and integers from -2**53 to 2**53. Received {given.dtype} up to "
            f"{np.abs(given).max()}. Subtract the lowest of each set first."
        )
    if points.ndim != 3 or points.shape[1] == 0 or points.shape[2] != coordinates:
        raise ValueError(
            f"`points` must have the shape (N, n, {coordinates}): N sets of n points each, n at least 1. Received shape "
            f"{points.shape}. Pass one set as `points[None]`, and sets of several sizes as a list of arrays."
        )
    return finite_points("points", points)


def near_origin(points):
    """Every set moved to the origin and scaled into the unit square, where solvers lose no digits.

    `[[[1000, 7], [1002, 7], [1000, 8]]]`  ->  `[[[0, 0], [0.5, 0], [0, 0.25]]]`

    The lowest coordinates are subtracted, and the rest is divided by a power of two: for coordinates that are multiples of
    one number, such as those of the data sets, both are exact; subtracting the mean would not be.
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
