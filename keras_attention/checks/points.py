"""Checks of points and of the indices that stand for them."""

import numpy as np

from keras_attention.checks.messages import shortened

LOST = 1e-3  # share of the extent of some points that may be lost by rounding


def finite_points(name, points, dtype="float64"):
    """`points` `(..., F)` as an array of `dtype`, after checking that every coordinate is finite in it.

    `[[0.5, 0], [1, 1]]` passes; `[[0.5, nan]]` does not, and neither does `[[0.5, 1e39]]` as float32.
    """
    points = np.asarray(points)
    with np.errstate(over="ignore"):
        found = points.astype(dtype)
    wrong = np.argwhere(~np.isfinite(found).all(axis=-1))
    if len(wrong):
        place = tuple(wrong[0].tolist())
        raise ValueError(
            f"`{name}` must be finite in {dtype}. Received {name}[{', '.join(map(str, place))}] = "
            f"{shortened(points[place].tolist())}. Mend the point, or leave it out or mask it if it is padding."
        )
    return found


def plane_points(points):
    """Points of the plane as float64 `(n, 2)`, after checking that they are finite."""
    points = np.asarray(points)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(
            f"`points` must have shape (n, 2), x and y of each. Received points of shape {points.shape}. Pass one "
            "example without padding."
        )
    return finite_points("points", points)


def are_integers(indices):
    """True for an array of integers, and for an empty one: of an empty list NumPy makes floats."""
    return indices.size == 0 or indices.dtype.kind in "iu"


def positions_before_end(name, indices, number_of_points=None):
    """The positions before the end of an answer, after checking them: `[3, 1, 2, 0, 0]`, 3  ->  `[3, 1, 2]`"""
    indices = np.asarray(indices)
    if indices.ndim != 1 or not are_integers(indices):
        raise TypeError(
            f"`{name}` must be integers of shape (L,). Received {indices.dtype} of shape {indices.shape}. Pass one "
            "answer, such as `model.generate(inputs)[0]`."
        )
    found = indices[np.cumsum(indices == 0) == 0]
    check_positions(name, found, number_of_points)
    return found.tolist()


def corners_of(points, name, indices):
    """The points `(m, 2)` for which the positions before the end of an answer stand."""
    return points[np.array(positions_before_end(name, indices, len(points)), "int64") - 1]


def check_positions(name, indices, number_of_points=None):
    """Raises where an index is not the position of a point: `[3, 0]` and `[4]` of three points."""
    indices = np.asarray(indices)
    wrong = indices[(indices < 1) | (indices > (np.inf if number_of_points is None else number_of_points))]
    if wrong.size:
        last = "on" if number_of_points is None else f"to {number_of_points}, the number of points"
        raise ValueError(
            f"`{name}` must be positions, from 1 {last}. Received {wrong[0]} among {shortened(indices.tolist())}. Pass points "
            "and indices of the same example, and add 1 to indices that count from 0."
        )


def check_digits(points, place):
    """Raises where float32, in which models read points `(n, F)`, cannot tell them apart.

    `[[5e6 + 0.1, 3.0], [5e6 + 10.2, 4.0]]` does not pass: near five million float32 knows whole halves only. Points of one
    place pass, and points that are float32 already.

    Args:
        points: Finite numbers `(n, F)`.
        place: String that says in the message which points they are, such as "in row 3".
    """
    points = np.asarray(points)
    if points.size == 0 or points.dtype == "float32":
        return
    points = points.astype("float64")
    extent = np.ptp(points, axis=0).max()
    lost = np.abs(points - points.astype("float32")).max()
    if extent > 0 and lost > LOST * extent:
        raise ValueError(lost_digits(f"{place} they extend over {extent:.3g}, and up to {lost:.3g} would be lost"))


def lost_digits(received):
    return (
        f"Points are read as float32, which keeps 7 digits of a coordinate: {received}. Subtract their mean in float64, and "
        "divide by their extent, before they are passed on."
    )
