"""Checks of points and of the indices that stand for them."""

import numpy as np

LOST = 1e-3  # share of the extent of some points that may be lost by rounding


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
