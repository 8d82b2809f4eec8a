"""Triangulations: whether one is right, and how many of its triangles are.

A triangulation is a flat sequence of indices, three corners for each triangle. Neither the order of the triangles nor
that of their corners means anything.

Letters in shapes: n points, m indices; L indices and the end, 0, with all after it.
"""

from keras_attention.checks.messages import shortened
from keras_attention.checks.points import positions_before_end
from keras_attention.evaluation.sequences import compared, mean, share


def same_triangulation(indices, reference):
    """Whether two sequences hold the same triangles, each as often.

    Args:
        indices: Integers `(L,)`, an answer as `model.generate` returns it; it ends before the first 0.
        reference: Integers `(m,)`, the right triangles.

    Returns:
        Boolean. An answer that repeats a triangle, or whose last triangle is unfinished, is not the same. Two empty
        sequences are.

    Raises:
        TypeError: If indices are not integers of one axis.
        ValueError: If an index is negative, or the reference has an unfinished triangle.

    Example:
        >>> same_triangulation([4, 3, 2, 1, 2, 3, 0], [1, 2, 3, 2, 3, 4])
        True
        >>> same_triangulation([4, 3, 2, 0, 0, 0, 0], [1, 2, 3, 2, 3, 4])
        False

    References:
        Vinyals, Fortunato and Jaitly, 2015, arXiv:1506.03134, section 4.3.
    """
    answer, reference = positions_before_end("indices", indices), checked_triangles(reference)
    return len(answer) % 3 == 0 and sorted(triangles(answer)) == sorted(reference)


def triangle_coverage(indices, reference):
    """Share of the right triangles that an answer holds, each counted once.

    `coverage = number of reference triangles in the answer / number of reference triangles`

    Other triangles in the answer, repetitions and an unfinished one included, do not change it.

    Args:
        indices: Integers `(L,)`, an answer as `model.generate` returns it; it ends before the first 0.
        reference: Integers `(m,)`, the right triangles.

    Returns:
        Python float in [0, 1]; 1 where the reference has no triangle.

    Raises:
        TypeError: If indices are not integers of one axis.
        ValueError: If an index is negative, or the reference has an unfinished triangle.

    Example:
        >>> triangle_coverage([4, 3, 2, 1, 2, 4, 0], [1, 2, 3, 2, 3, 4])
        0.5

    References:
        Vinyals, Fortunato and Jaitly, 2015, arXiv:1506.03134, section 4.3.
    """
    reference = set(checked_triangles(reference))
    found = reference.intersection(triangles(positions_before_end("indices", indices)))
    return len(found) / len(reference) if reference else 1.0


def evaluate_triangulations(examples, answers):
    """The measures of the paper's table of Delaunay triangulations.

    Args:
        examples: Iterable of dictionaries, `"points"` `(n, ...)` and `"indices"` `(m,)`, the triangulation, as files
            and data sets have them.
        answers: As many sequences of indices: an integer array `(B, L)` as `model.generate` returns it, or a list of
            arrays `(L,)` of any lengths. An answer ends before its first 0.

    Returns:
        Dictionary of Python floats in [0, 1]: `"accuracy"`, the share of answers for which `same_triangulation` holds,
        and `"triangle_coverage"`, the mean of `triangle_coverage` over the examples.

    Raises:
        TypeError: If indices are not integers.
        ValueError: If there is no example, the number of answers differs, or an index is not a position of a point.

    Example:
        >>> square = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
        >>> examples = [{"points": square, "indices": [1, 2, 3, 1, 3, 4]}] * 2
        >>> evaluate_triangulations(examples, [[3, 4, 1, 1, 2, 3, 0], [1, 2, 3, 2, 3, 4, 0]])
        {'accuracy': 0.5, 'triangle_coverage': 0.75}

    References:
        Vinyals, Fortunato and Jaitly, 2015, arXiv:1506.03134, section 4.3.
    """
    triples = compared(examples, answers)
    return {
        "accuracy": share([same_triangulation(answer, reference) for _, answer, reference in triples]),
        "triangle_coverage": mean([triangle_coverage(answer, reference) for _, answer, reference in triples]),
    }


def triangles(corners):
    """`[3, 1, 2, 4, 2, 3, 1]`  ->  `[(1, 2, 3), (2, 3, 4)]`; an unfinished triangle is dropped"""
    return [tuple(sorted(corners[start : start + 3])) for start in range(0, len(corners) - 2, 3)]


def checked_triangles(reference):
    """The triangles of a sequence that has no unfinished one."""
    corners = positions_before_end("reference", reference)
    if len(corners) % 3:
        raise ValueError(
            f"`reference` must have three indices for each triangle. Received {len(corners)} indices: {shortened(corners)}. "
            "Pass a flat sequence of triangles."
        )
    return triangles(corners)
