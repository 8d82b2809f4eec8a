"""Delaunay triangulations of `N` sets of `n` points, written in one fixed order."""

import numpy as np

from keras_attention.data.builders.point_sets.arrays import (
    lowest_equals,
    near_origin,
    point_sets,
    sets_of_any_size,
    split_rows,
)
from keras_attention.extras import how_to_install


@sets_of_any_size
def delaunay_triangulations(points):
    """The triangles of every set whose circumcircle has no point inside, as one flat list for each set.

    `[[[0, 0], [1, 0.1], [0.1, 1], [1, 1]]]`  ->  `[array([1, 2, 3, 2, 3, 4])]`, the triangles 1 2 3 and 2 3 4

    The order is that of Vinyals et al.: the three corners of a triangle by index, and the triangles by the place of
    their incenter, from left to right and from bottom to top where x is the same.

    Where the points lie and how large they are makes no difference: far from the origin, as with UTM coordinates, the
    places are those that float64 still tells apart.

    Four points on one circle have more than one triangulation; which one is given depends on Qhull. Of equal points the
    lowest index stands for all. Where there is no triangle, the list is empty: for fewer than three points, and for
    points on one line as far as Qhull can tell (to about 1e-15 of their extent).

    Args:
        points: Array of shape `(N, n, 2)`, n at least 1, or a list of N arrays `(n, 2)` that may differ in n.

    Returns:
        List of N int32 arrays, each of a multiple of three positions counted from 1.

    Raises:
        ImportError: The package scipy is not installed.
        ValueError: `points` has another shape, or a coordinate that is not finite.

    References:
        Vinyals, Fortunato and Jaitly, 2015, sections 4.3 and 3.2, arXiv:1506.03134. Qhull: Barber, Dobkin and
        Huhdanpaa, 1996.
    """
    points = point_sets(points)
    places = near_origin(points)
    triangles = [qhull_triangles(one_set) for one_set in places]
    counts = np.array([len(some) for some in triangles], dtype="int64")
    number = np.repeat(np.arange(len(points)), counts)  # the set of each triangle
    corners = np.concatenate([np.zeros((0, 3), "int64"), *triangles])  # (all triangles, 3)
    corners = np.sort(lowest_equals(points)[number[:, None], corners], axis=1)
    x, y = incenters(places[number[:, None], corners]).T
    order = np.lexsort((y, x, number))
    return split_rows(corners[order].astype("int32").ravel() + 1, 3 * counts)


def qhull_triangles(one_set):
    """`[[0, 0], [1, 0.1], [0.1, 1], [1, 1]]`  ->  `[[2, 1, 3], [1, 2, 0]]`, positions from 0 in any order"""
    scipy_spatial = import_scipy_spatial()
    if len(one_set) < 3:
        return np.zeros((0, 3), "int64")
    try:
        return scipy_spatial.Delaunay(one_set).simplices
    except scipy_spatial.QhullError:  # no triangle: the points are on one line
        return np.zeros((0, 3), "int64")


def incenters(triangles):
    """Centres of the inscribed circles: corners of shape `(..., 3, 2)`  ->  shape `(..., 2)`

    `[[0, 0], [4, 0], [0, 3]]`  ->  `[1, 1]`
    """
    sides = np.roll(triangles, -1, axis=-2) - np.roll(triangles, 1, axis=-2)  # opposite to each corner
    lengths = np.sqrt((sides**2).sum(axis=-1))
    return np.einsum("...k,...kd->...d", lengths, triangles) / lengths.sum(axis=-1)[..., None]


def import_scipy_spatial():
    try:
        import scipy.spatial
    except ImportError as error:
        raise ImportError(
            "Delaunay triangulations are computed by scipy, which is not installed. " + how_to_install("geometry")
        ) from error
    return scipy.spatial
