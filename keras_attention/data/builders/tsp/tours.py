"""Shortest closed tours of `N` sets of `n` points, written from the first point on, counter-clockwise."""

import numpy as np

from keras_attention.checks.messages import shortened
from keras_attention.data.builders.point_sets.arrays import near_origin, point_sets, sets_of_any_size
from keras_attention.data.builders.tsp.held_karp import held_karp_tours

LONGEST_EXACT = 12
FLAT = 1e-12  # an area below this share of its terms is one of rounding errors


@sets_of_any_size
def shortest_tours(points, solver=None):
    """A shortest closed tour of every set, from index 1 on and counter-clockwise.

    `[[[0, 0], [1, 1], [1, 0], [0, 1]]]`  ->  `array([[1, 3, 2, 4]])`

    Up to 12 points it is exact. The way home to the first point belongs to the tour and is not written. Counter-clockwise
    means that the polygon has a positive signed area; where the area is zero up to rounding, as on a line, the second index
    is lower than the last. So one point gives `[1]`, two give `[1, 2]`, and three give `[1, 2, 3]` or `[1, 3, 2]`. Where
    several tours are shortest, as with equal points, one of them is given.

    Args:
        points: Array of shape `(N, n, 2)`, n at least 1, or a list of N arrays `(n, 2)` that may differ in n.
        solver: Function from one set, float64 of shape `(n, 2)`, to a permutation of the positions 0 to n - 1, such as
            `PyVRP()`. Used for more than 12 points only.

    Returns:
        int32 array of shape `(N, n)`, positions counted from 1; a list of arrays `(n,)` for a list of different n.

    Raises:
        ValueError: There are more than 12 points and no solver, the solver returned no tour, `points` has another shape,
            or a coordinate is not finite.
    """
    points = point_sets(points)
    n = points.shape[1]
    check_solver(n, solver)
    places = near_origin(points)
    tours = held_karp_tours(places) if n <= LONGEST_EXACT else solved_tours(points, solver)
    return canonical_tours(places, tours).astype("int32") + 1


def solved_tours(points, solver):
    N, n = points.shape[:2]
    tours = np.empty((N, n), dtype="int64")
    for number, one_set in enumerate(points):
        tour = np.asarray(solver(one_set))
        if not np.array_equal(np.sort(tour), np.arange(n)):
            raise ValueError(
                f"A solver must return every position from 0 to {n - 1} once. Received {shortened(tour.tolist())} from "
                f"{solver!r}. Return the positions in the order of the tour, without the way home."
            )
        tours[number] = tour
    return tours


def canonical_tours(points, tours):
    """The same closed tours from position 0 on and counter-clockwise.

    `[[[0, 0], [1, 1], [1, 0], [0, 1]]]`, `[[1, 2, 0, 3]]`  ->  `[[0, 2, 1, 3]]`
    """
    n = tours.shape[1]
    tours = np.take_along_axis(tours, (tours.argmin(axis=1)[:, None] + np.arange(n)) % n, axis=1)
    x, y = (np.take_along_axis(points, tours[..., None], axis=1) - points[:, :1]).T  # (n, N)
    forth, back = x * np.roll(y, -1, axis=0), y * np.roll(x, -1, axis=0)
    twice_the_area = (forth - back).sum(axis=0)
    is_flat = np.abs(twice_the_area) <= FLAT * (np.abs(forth) + np.abs(back)).sum(axis=0)
    second, last = tours[:, min(1, n - 1)], tours[:, -1]
    turned = np.where(is_flat, second > last, twice_the_area < 0)
    return np.where(turned[:, None], np.roll(tours[:, ::-1], 1, axis=1), tours)


def check_solver(n, solver):
    """Raises where there are too many points to be solved exactly, and no solver."""
    if n > LONGEST_EXACT and solver is None:
        raise ValueError(
            f"Tours of more than {LONGEST_EXACT} points need a solver. Received {n} points and solver=None. Pass "
            "`solver=PyVRP()`, whose tours are short but not proven to be shortest, or take fewer points."
        )
