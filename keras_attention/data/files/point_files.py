"""Files of geometric problems: a line for each example, plain or gzip.

`x1 y1 x2 y2 ... output i j ... i `: the coordinates of all points, the word "output", and the answer as positions of
points that count from 1. A hull or a tour ends with the position it starts with.

Letters in shapes: n points, F coordinates of a point, m indices.
"""

import pathlib

import numpy as np

from keras_attention.checks.arguments import check_positive_integer
from keras_attention.checks.messages import naming, shortened
from keras_attention.checks.points import are_integers, check_digits, check_positions, finite_points
from keras_attention.data.files.lines import compressed, read_lines
from keras_attention.files import whole_file


def read_points(path, closed=True, width=2):
    """Examples from a file in the format in which the data sets of Pointer Networks were published.

    The line `"0 0 0.5 0.25 1 0 0.5 1 output 1 3 4 1 "`  ->
    `{"points": [[0, 0], [0.5, 0.25], [1, 0], [0.5, 1]], "indices": [1, 3, 4]}`

    Args:
        path: Path of the file; one whose name ends with `.gz` is decompressed. Several spaces count as one, spaces at
            the end of a line, Windows line ends and empty lines do no harm.
        closed: Boolean. True for hulls and tours, whose last index repeats the first one: the repetition is dropped.
            False for triangulations and sorting, whose indices are taken as they are.
        width: Integer F, number of coordinates of a point. The file does not say it.

    Returns:
        List of dictionaries, `"points"` float32 `(n, F)` and `"indices"` int32 `(m,)`. `point_batches` makes batches of
        them, `point_dataset` a data set that can be shuffled.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A line is malformed, has points that float32 cannot tell apart (as of 5e6 ± 10) or is not UTF-8, or the
            gzip file is damaged; the message has the file and the line.

    References:
        Vinyals, Fortunato and Jaitly, 2015, arXiv:1506.03134, section 3.
    """
    check_positive_integer("width", width)
    path, examples = pathlib.Path(path), []
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip():
            with naming(f"{path}, line {number}"):
                examples.append(parse(line.split(), closed, width))
    return examples


def write_points(path, examples, closed=True):
    """Write examples into a file that `read_points` reads, whole or not at all.

    `{"points": [[0, 0], [1, 0], [0.5, 1]], "indices": [1, 2, 3]}`  ->  the line `"0 0 1 0 0.5 1 output 1 2 3 1 \\n"`

    Args:
        path: Path of the file; one whose name ends with `.gz` is compressed. A file that is there is replaced when the
            new one is whole. Missing folders are made.
        examples: Iterable of dictionaries as `read_points` returns them, a `tf.data.Dataset` included. Coordinates are
            written as float32, with so many digits that exactly the same numbers are read again.
        closed: Boolean. True for hulls and tours, after whose last index the first one is written once more.

    Raises:
        ValueError: A coordinate is not finite, or an index is not a position of a point; the message has the number of
            the example, counted from 0.
    """
    with whole_file(path) as partial, partial.open("wb") as plain, compressed(plain, partial.suffix == ".gz") as file:
        for number, example in enumerate(examples):
            with naming(f"Example {number}"):
                file.write(line_of(example, closed).encode())


def parse(fields, closed, width):
    """`["0.5", "0", "1", "1", "output", "1", "2", "1"]`  ->  `{"points": [[0.5, 0], [1, 1]], "indices": [1, 2]}`"""
    if "output" not in fields:
        raise ValueError(
            'the word "output" must stand between the coordinates and the indices. Received '
            f'{len(fields)} fields without it, the last one "{shortened(fields[-1])}". Write `x1 y1 x2 y2 ... output i j ...`.'
        )
    middle = fields.index("output")
    points = parse_points(fields[:middle], width)
    return {"points": points, "indices": parse_indices(fields[middle + 1 :], len(points), closed)}


def parse_points(fields, width):
    """`["0.5", "0", "1", "1"]`, 2  ->  `[[0.5, 0], [1, 1]]`"""
    if not fields or len(fields) % width:
        raise ValueError(
            f"there must be one point or more of {width} coordinates each. Received {len(fields)} coordinates. Complete "
            "the line, or read points of another `width`."
        )
    try:
        coordinates = np.array(list(map(float, fields)))
    except ValueError as error:
        raise ValueError(f"a coordinate must be a number; {shortened(str(error))}. Write for example 0.25.") from error
    return float32_points(coordinates.reshape(-1, width))


def parse_indices(fields, number_of_points, closed):
    """`["3", "1", "2", "3"]`, 3, True  ->  `[3, 1, 2]`"""
    try:
        indices = list(map(int, fields))
    except ValueError as error:
        raise ValueError(f"an index must be a whole number; {shortened(str(error))}. Write for example 3.") from error
    if closed:
        if len(indices) < 2 or indices[0] != indices[-1]:
            raise ValueError(
                "a hull or a tour must end with the index it starts with. Received the indices "
                f"{shortened(indices)}. Repeat the first one, or read triangulations and sorting with `closed=False`."
            )
        indices.pop()
    check_positions("indices", indices, number_of_points)
    return np.array(indices, "int32")


def line_of(example, closed):
    """`{"points": [[0.5, 0], [1, 1]], "indices": [1, 2]}`  ->  `"0.5 0 1 1 output 1 2 1 \\n"`"""
    points, indices = np.asarray(example["points"]), np.asarray(example["indices"])
    if points.ndim != 2 or points.size == 0 or indices.ndim != 1 or not are_integers(indices):
        raise ValueError(
            "`points` must have shape (n, F) with one point or more, and `indices` must be integers of shape (m,). "
            f"Received points of shape {points.shape} and {indices.dtype} indices of shape {indices.shape}. Write one "
            "example as one dictionary."
        )
    coordinates, indices = float32_points(points).ravel().tolist(), indices.tolist()
    check_positions("indices", indices, len(points))
    if closed and not indices:
        raise ValueError(
            "a hull or a tour must have an index. Received none. Write triangulations with `closed=False`."
        )
    indices += indices[:1] if closed else []
    # Nine digits name each float32. The shortest name of one, read as a float64 first, can end up as its neighbour.
    return "%.9g " * len(coordinates) % tuple(coordinates) + "output " + "%d " * len(indices) % tuple(indices) + "\n"


def float32_points(points):
    """Points as float32, after checking that it holds them and can tell them apart."""
    rounded = finite_points("points", points, "float32")
    check_digits(points, "in this example")
    return rounded
