"""Convex hulls: whether a polygon is the right one, whether it is simple, and how much of the hull it covers.

Letters in shapes: n points, m indices; L indices and the end, 0, with all after it.
"""

import numpy as np

from keras_attention.checks.points import corners_of, plane_points, positions_before_end
from keras_attention.evaluation.sequences import compared, mean, share
from keras_attention.extras import how_to_install


def same_polygon(indices, reference):
    """Whether two sequences go around the same polygon in the same direction, wherever they start.

    This is what the paper counts as a right hull.

    Args:
        indices: Integers `(L,)`, an answer as `model.generate` returns it; it ends before the first 0.
        reference: Integers `(m,)`, another polygon.

    Returns:
        Boolean. Two empty sequences are the same.

    Raises:
        TypeError: If indices are not integers of one axis.
        ValueError: If an index is negative.

    Example:
        >>> same_polygon([3, 1, 2, 0, 0], [1, 2, 3])
        True
        >>> same_polygon([3, 2, 1, 0, 0], [1, 2, 3])
        False

    References:
        Vinyals, Fortunato and Jaitly, 2015, arXiv:1506.03134, section 4.2.
    """
    answer = positions_before_end("indices", indices)
    reference = positions_before_end("reference", reference)
    return any(answer[start:] + answer[:start] == reference for start in range(max(len(answer), 1)))


def is_simple_polygon(points, indices):
    """Whether the sides of a polygon touch each other only at the corners that they share.

    Fewer than three corners, two corners at one place and corners on one line are not a simple polygon. Corners
    on a side that is straight are allowed. It is decided by Shapely.

    Args:
        points: Numbers `(n, 2)`.
        indices: Integers `(L,)`, an answer as `model.generate` returns it; it ends before the first 0.

    Returns:
        Boolean.

    Raises:
        ImportError: If Shapely is not installed.
        TypeError: If indices are not integers of one axis.
        ValueError: If the points have another shape or are not finite, or an index is not a position of a point.

    Example:
        >>> square = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
        >>> is_simple_polygon(square, [1, 2, 3, 4])
        True
        >>> is_simple_polygon(square, [1, 3, 2, 4])
        False
    """
    corners = corners_of(plane_points(points), "indices", indices)
    shapely = import_shapely()
    if len(np.unique(corners, axis=0)) < max(len(corners), 3):
        return False
    return bool(shapely.LinearRing(corners).is_simple)


def area_coverage(points, indices, reference):
    """Share of the hull's area that a polygon covers.

    `coverage = area of the polygon / area of the hull`

    A polygon through some of the points lies within their hull, so that only its size matters.

    Args:
        points: Numbers `(n, 2)`.
        indices: Integers `(L,)`, an answer as `model.generate` returns it; it ends before the first 0.
        reference: Integers `(m,)`, the hull.

    Returns:
        Python float in [0, 1]; nan where the answer is not a simple polygon, or where the hull has no area because its
        points lie on one line.

    Raises:
        ImportError: If Shapely is not installed.
        TypeError: If indices are not integers of one axis.
        ValueError: If the points have another shape or are not finite, or an index is not a position of a point.

    Example:
        >>> square = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
        >>> area_coverage(square, [1, 2, 3], reference=[1, 2, 3, 4])
        0.5

    References:
        Vinyals, Fortunato and Jaitly, 2015, arXiv:1506.03134, section 4.2.
    """
    is_simple = is_simple_polygon(points, indices)
    hull = polygon_area(points, reference)
    return polygon_area(points, indices) / hull if is_simple and hull > 0.0 else float("nan")


def polygon_area(points, indices):
    """The area within a polygon; 0 for fewer than three corners."""
    corners = corners_of(plane_points(points), "indices", indices)
    return import_shapely().Polygon(corners).area if len(corners) > 2 else 0.0


def evaluate_hulls(examples, answers):
    """The measures of the paper's table of convex hulls.

    Args:
        examples: Iterable of dictionaries, `"points"` `(n, 2)` and `"indices"` `(m,)`, the hull, as files and data sets
            have them.
        answers: As many sequences of indices: an integer array `(B, L)` as `model.generate` returns it, or a list of
            arrays `(L,)` of any lengths. An answer ends before its first 0.

    Returns:
        Dictionary of Python floats:

        - `"accuracy"`: share of answers that are the hull, as `same_polygon` says.
        - `"area_coverage"`: mean of `area_coverage` over the simple polygons, nan if there is none. The paper prints
          FAIL in its place when more than 1 % of the answers are not simple.
        - `"simple"`: share of answers that are simple polygons. One or two points make no polygon, even where the
          answer is right.

    Raises:
        ImportError: If Shapely is not installed.
        TypeError: If indices are not integers.
        ValueError: If there is no example, the number of answers differs, or an index is not a position of a point.

    Example:
        >>> square = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
        >>> examples = [{"points": square, "indices": [1, 2, 3, 4]}] * 4
        >>> evaluate_hulls(examples, [[2, 3, 4, 1, 0], [1, 2, 3, 0, 0], [1, 3, 2, 4, 0], [1, 2, 0, 0, 0]])
        {'accuracy': 0.25, 'area_coverage': 0.75, 'simple': 0.5}

    References:
        Vinyals, Fortunato and Jaitly, 2015, arXiv:1506.03134, section 4.2.
    """
    triples = compared(examples, answers)
    coverages = [area_coverage(*triple) for triple in triples]
    return {
        "accuracy": share([same_polygon(answer, reference) for _, answer, reference in triples]),
        "area_coverage": mean(coverages),
        "simple": share(~np.isnan(coverages)),  # a hull that a simple polygon can lie in has an area
    }


def import_shapely():
    """The library that measures polygons, imported only here."""
    try:
        import shapely
    except ImportError as error:
        raise ImportError(
            "Polygons are measured by Shapely, which is not installed. " + how_to_install("geometry")
        ) from error
    return shapely
