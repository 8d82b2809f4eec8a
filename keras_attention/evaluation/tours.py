"""Tours: how long one is, whether it visits every point, and how far a set of them is from the best.

Letters in shapes: n points, F coordinates of a point, m indices; L indices and the end, 0, with all after it.
"""

import numpy as np

from keras_attention.checks.points import are_integers, check_positions, positions_before_end
from keras_attention.evaluation.sequences import compared, mean


def tour_length(points, indices):
    """Length of a way through points and back to its start.

    `length = sum over t of |points[indices[t + 1]] - points[indices[t]]|`, and after the last index comes the first

    Args:
        points: Numbers `(..., n, F)`, padded to any n.
        indices: Integers `(..., L)` that count from 1, as `model.generate` returns them, or references padded with 0. A
            tour ends before its first 0, and does not repeat its first index.

    Returns:
        NumPy float64 `(...)`. A tour of one point has length 0, as has an empty one; a tour of two points goes there
        and back. Whether the tour visits all points, or one twice, makes no difference.

    Raises:
        TypeError: If the indices are not integers.
        ValueError: If the shapes don't fit, or an index is not a position of a point.

    Example:
        >>> triangle = [[0.0, 0.0], [3.0, 0.0], [3.0, 4.0]]
        >>> tour_length([triangle, triangle], [[1, 2, 3, 0], [2, 3, 0, 0]])
        [12.0, 8.0]
    """
    points, indices = checked_tours(points, indices)
    is_visited = np.cumsum(indices == 0, axis=-1) == 0
    # After the end a tour stays where it began: the way back is its last step, and the steps after it have no length.
    stops = np.where(is_visited, indices, indices[..., :1])  # (..., L)
    visited = np.take_along_axis(points, np.maximum(stops - 1, 0)[..., None], axis=-2)  # (..., L, F)
    steps = np.roll(visited, -1, axis=-2) - visited
    return np.sqrt(np.sum(steps**2, axis=-1)).sum(axis=-1)


def is_tour(points, indices):
    """Whether a sequence visits every point exactly once.

    Args:
        points: Numbers `(n, F)`, without padding.
        indices: Integers `(L,)`, an answer as `model.generate` returns it; it ends before the first 0.

    Returns:
        Boolean.

    Raises:
        TypeError: If indices are not integers of one axis.
        ValueError: If an index is not a position of a point.

    Example:
        >>> is_tour([[0.0, 0.0], [3.0, 0.0], [3.0, 4.0]], [3, 1, 2, 0])
        True
        >>> is_tour([[0.0, 0.0], [3.0, 0.0], [3.0, 4.0]], [3, 1, 3, 0])
        False
    """
    return sorted(positions_before_end("indices", indices, len(points))) == list(range(1, len(points) + 1))


def evaluate_tours(examples, answers):
    """The measures of a table of tours.

    Args:
        examples: Iterable of dictionaries, `"points"` `(n, F)` and `"indices"` `(n,)`, the reference tour, as files and
            data sets have them.
        answers: As many sequences of indices: an integer array `(B, L)` as `model.generate` returns it, or a list of
            arrays `(L,)` of any lengths. An answer ends before its first 0.

    Returns:
        Dictionary of Python floats:

        - `"tour_length"`: mean length of the answers that are tours, nan if none is.
        - `"reference_length"`: mean length of the references of the same examples.
        - `"gap"`: `100 · (tour_length / reference_length - 1)`, how many percent the answers are longer. Where the
          references are optimal it is the gap to the optimum.
        - `"valid"`: share of answers that are tours, as `is_tour` says. Below 1 the lengths leave out the others, and
          tables that count all examples can't be compared.

    Raises:
        TypeError: If indices are not integers.
        ValueError: If there is no example, the number of answers differs, or an index is not a position of a point.

    Example:
        >>> line = [[0.0], [1.0], [2.0], [3.0], [4.0]]
        >>> examples = [{"points": line, "indices": [1, 2, 3, 4, 5]}] * 4
        >>> evaluate_tours(examples, [[5, 4, 3, 2, 1, 0], [1, 3, 2, 4, 5, 0], [1, 2, 3, 4, 4, 0], [1, 5, 0, 0, 0, 0]])
        {'tour_length': 9.0, 'reference_length': 8.0, 'gap': 12.5, 'valid': 0.5}
    """
    triples = compared(examples, answers)
    tours = [(points, answer, reference) for points, answer, reference in triples if is_tour(points, answer)]
    length = mean([tour_length(points, answer) for points, answer, _ in tours])
    reference_length = mean([tour_length(points, reference) for points, _, reference in tours])
    return {
        "tour_length": length,
        "reference_length": reference_length,
        "gap": 100.0 * (length / reference_length - 1.0) if reference_length else 0.0,
        "valid": len(tours) / len(triples),
    }


def checked_tours(points, indices):
    """Points as float64 `(..., n, F)` and indices `(..., L)` of the same leading axes."""
    points, indices = np.asarray(points, "float64"), np.asarray(indices)
    if not are_integers(indices):
        raise TypeError(f"`indices` must be integers. Received {indices.dtype} of shape {indices.shape}. Cast them.")
    if points.ndim < 2 or points.shape[:-2] != indices.shape[:-1]:
        raise ValueError(
            "`points` (..., n, F) and `indices` (..., L) must have the same leading axes. Received points of shape "
            f"{points.shape} and indices of shape {indices.shape}. Pass one tour for each set of points."
        )
    check_positions("indices", indices[indices != 0], points.shape[-2])
    return points, indices.astype("int64")
