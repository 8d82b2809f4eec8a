"""Answers of a pointer network as lists of positions, and the share of them that is right as it stands.

Letters in shapes: n points, m indices; L indices and the end, 0, with all after it.
"""

import numpy as np

from keras_attention.checks.arguments import check_same_number
from keras_attention.checks.points import positions_before_end


def evaluate_sequences(examples, answers):
    """Share of answers that are the reference index for index, as for sorting.

    `accuracy = number of answers that equal their reference / number of examples`

    Where several sequences mean the same, take `evaluate_hulls`, `evaluate_tours` or `evaluate_triangulations`.

    Args:
        examples: Iterable of dictionaries, `"points"` `(n, ...)` and `"indices"` `(m,)`, as files and data sets have
            them.
        answers: As many sequences of indices: an integer array `(B, L)` as `model.generate` returns it, or a list of
            arrays `(L,)` of any lengths. An answer ends before its first 0.

    Returns:
        Dictionary with the Python float `"accuracy"` in [0, 1].

    Raises:
        TypeError: If indices are not integers.
        ValueError: If there is no example, the number of answers differs, or an index is not a position of a point.

    Example:
        >>> examples = [{"points": [[0.7], [0.2]], "indices": [2, 1]}, {"points": [[0.5]], "indices": [1]}]
        >>> evaluate_sequences(examples, [[2, 1, 0], [1, 0, 0]])
        {'accuracy': 1.0}
    """
    return {"accuracy": share([answer == reference for _, answer, reference in compared(examples, answers)])}


def compared(examples, answers):
    """A list of `(points, answer, reference)`, an array and two lists of positions, for each example."""
    examples, answers = list(examples), list(answers)
    advice = "Join the answers of all batches, such as by `[*batch_1, *batch_2]`."
    check_same_number(advice, examples=examples, answers=answers)
    triples = []
    for example, answer in zip(examples, answers, strict=True):
        points = np.asarray(example["points"], "float64")
        reference = positions_before_end("indices", example["indices"], len(points))
        triples.append((points, positions_before_end("answer", answer, len(points)), reference))
    return triples


def share(results):
    """`[True, False, True, True]`  ->  0.75"""
    return float(np.mean(results))


def mean(numbers):
    """The mean without nan: `[0.25, nan, 0.75]`  ->  0.5; nan where no number is left."""
    numbers = np.asarray(numbers, "float64")
    numbers = numbers[~np.isnan(numbers)]
    return float(numbers.mean()) if numbers.size else float("nan")
