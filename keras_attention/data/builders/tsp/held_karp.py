"""Shortest closed tours of `N` sets of `n` points at once, exactly: the dynamic programme of Held and Karp."""

import functools

import numpy as np

TABLE_BYTES = 2**24  # of the costs that are kept at once; larger arrays are slow to allocate


def held_karp_tours(points):
    """The shortest closed tour of every set, from the first point on.

    With S a set of the `m = n - 1` other points and j one of them, the shortest way from the first point through all of
    S to its end j costs

        cost[{j}, j] = distance[first, j]
        cost[S, j] = minimum over i in S without j of (cost[S without j, i] + distance[i, j])

    `[[[0, 0], [1, 1], [1, 0], [0, 1]]]`  ->  `[[0, 2, 1, 3]]`, or the same tour in the other direction

    The costs are float64: in float32 a tour that is longer by less than 1e-7 could win. Time grows with `n² 2^n` and
    memory with `n 2^n`, which is bounded by going through the sets in parts.

    Args:
        points: float64 array of shape `(N, n, 2)`, n at least 1.

    Returns:
        Integer array of shape `(N, n)`, positions counted from 0.

    References:
        Held and Karp, 1962, A dynamic programming approach to sequencing problems.
    """
    N, n = points.shape[:2]
    tours = np.zeros((N, n), dtype="int64")
    if n > 1:
        sets_at_once = max(1, TABLE_BYTES // (8 * 2 ** (n - 1) * (n - 1)))
        for first in range(0, N, sets_at_once):
            part = slice(first, first + sets_at_once)
            tours[part, 1:] = best_ways_home(distances(points[part])) + 1
    return tours


def distances(points):
    """Distances between the points of every set: shape `(N, n, 2)`  ->  shape `(n, n, N)`"""
    x, y = points.T  # (n, N)
    return np.sqrt((x[:, None] - x) ** 2 + (y[:, None] - y) ** 2)


def best_ways_home(distance):
    """The order of the other points in the shortest tour: distances of shape `(n, n, N)`  ->  integers `(N, m)` from 0"""
    m, N = distance.shape[0] - 1, distance.shape[2]
    leg = np.ascontiguousarray(distance[1:, 1:]).reshape(m * m, N)  # from i to j at i * m + j
    home = distance[0, 1:]  # (m, N)
    cost = np.full((2**m * m, N), np.inf)  # of (S, j) at S * m + j
    cost[2 ** np.arange(m) * m + np.arange(m)] = home
    for state, previous_states, legs in levels(m):
        best = cost[previous_states[0]] + leg[legs[0]]
        for previous_state, last_leg in zip(previous_states[1:], legs[1:], strict=True):
            np.minimum(best, cost[previous_state] + leg[last_leg], out=best)
        cost[state] = best
    return read_back(cost, leg, home)


@functools.cache
def levels(m):
    """The steps of the programme, one for each size of S, as rows of `cost` and `leg`.

    Bit i of the number S says whether point i is in it. For m = 2 there is one step, to S = {0, 1} = 3, whose ends are 0
    and 1: the states `[6, 7]` follow from the previous states `[[5, 2]]`, ({1}, 1) and ({0}, 0), by the legs `[[2, 1]]`.

    Returns:
        List of `(state, previous_states, legs)` of shapes `(R,)`, `(size - 1, R)` and `(size - 1, R)`.
    """
    inside = (np.arange(2**m)[:, None] >> np.arange(m)) & 1  # (2^m, m)
    subset, end = np.nonzero(inside)
    size = inside.sum(axis=1)[subset]
    steps = []
    for points_inside in range(2, m + 1):
        S, j = subset[size == points_inside], end[size == points_inside]
        rest = S ^ (1 << j)
        i = np.nonzero(inside[rest])[1].reshape(len(S), points_inside - 1).T  # every point of the rest
        steps.append((S * m + j, rest * m + i, i * m + j))
    return steps


def read_back(cost, leg, home):
    """The tours behind the lowest costs, from their ends to their beginnings, as integers of shape `(N, m)`."""
    m, N = home.shape
    row, i = np.arange(N), np.arange(m)[:, None]
    ways = np.empty((N, m), dtype="int64")
    S = np.full(N, 2**m - 1)
    j = (cost[-m:] + home).argmin(axis=0)
    for place in range(m - 1, 0, -1):
        ways[:, place] = j
        S = S ^ (1 << j)
        j = (cost[S * m + i, row] + leg[i * m + j, row]).argmin(axis=0)  # infinite for points outside of S
    ways[:, 0] = j
    return ways
