"""Checks that several folders share, and how their messages quote what they were given. NumPy alone."""

import numpy as np

LONGEST = 80  # characters of a value in a message
LOST = 1e-3  # share of the extent of some points that may be lost by rounding


def shortened(value, longest=LONGEST):
    """A value as a message can hold it, whatever its size: `"[1, 2, 3 ... (50000000 characters) ... 6, 7]"`"""
    text = value if isinstance(value, str) else repr(value)
    if len(text) <= longest:
        return text
    return f"{text[: longest // 2]} ... ({len(text)} characters) ... {text[-(longest // 4) :]}"


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
