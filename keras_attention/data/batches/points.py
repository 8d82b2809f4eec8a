"""Batches of geometric problems: points, and positions among them as the answer, padded for a pointer network.

Letters in shapes: n points, F coordinates of a point, m indices.
"""

import numpy as np
import tensorflow as tf

from keras_attention.checks.arguments import check_positive_integer
from keras_attention.checks.messages import naming
from keras_attention.checks.points import LOST, are_integers, check_digits, check_positions, finite_points, lost_digits

NAMES = ("points", "indices")


def point_batches(examples, batch_size=128, max_points=None, max_length=None, drop_remainder=False):
    """Padded batches of points and answers, for `fit` and `generate` of a pointer network.

    Two examples, `{"points": [[.1, .2], [.3, .4], [.5, .6]], "indices": [3, 1, 2]}` and
    `{"points": [[.7, .8]], "indices": [1]}`  ->  one batch,
    `({"source": [[[.1, .2], [.3, .4], [.5, .6]], [[.7, .8], [0, 0], [0, 0]]],
    "source_mask": [[True, True, True], [True, False, False]],
    "target": [[0, 3, 1, 2], [0, 1, 0, 0]]}, [[3, 1, 2, 0], [1, 0, 0, 0]])`  (0 start, end, padding)

    The examples stay in the order in which they come. For training keep them in memory and shuffle them first:
    `point_batches(dataset.cache().shuffle(100_000))`.

    Args:
        examples: `tf.data.Dataset` of `{"points": float (n, F), "indices": signed integers (m,)}`, each with an n and an
            m of its own, or a list of such dictionaries, as `read_points` returns it. Coordinates are finite in float32
            and indices count from 1.
        batch_size: Integer B, number of examples in a batch; the last one may have fewer.
        max_points: Integer or None. With an integer every batch is padded to S = `max_points`, else to its largest n.
        max_length: Integer or None. With an integer every batch is padded to T = `max_length`, which counts the end, as
            in `generate`; else to its largest m + 1.
        drop_remainder: Boolean. True leaves out a last batch with fewer examples. Together with both lengths all
            batches have one shape, so that XLA compiles once.

    Returns:
        `tf.data.Dataset` of `({"source": (B, S, F), "source_mask": (B, S), "target": (B, T)}, labels (B, T))`: float32,
        boolean with True for a point, and int32. The labels are the indices and the end 0, the target is the start 0
        and the indices. `len` is the number of batches where that of the data set is known.

    Raises:
        TypeError: The examples have other types or ranks.
        ValueError: A size is not a positive integer; the list is empty; an index in it is not a position of a point, a
            coordinate is not finite, or float32 cannot tell the points of an example apart, as of 5e6 ± 10.
        tf.errors.InvalidArgumentError: While the batches are read, if an example is longer than `max_points` or
            `max_length`, or has such an index or such points.
    """
    dataset = examples if isinstance(examples, tf.data.Dataset) else point_dataset(examples)
    check_element(dataset.element_spec)
    check_positive_integer("batch_size", batch_size)
    for name, size in (("max_points", max_points), ("max_length", max_length)):
        if size is not None:
            check_positive_integer(name, size)

    # What fills the shorter examples until the mask is made, the least number of each type: no point and no index.
    spec = dataset.element_spec
    fillers = {name: tf.constant(spec[name].dtype.min, spec[name].dtype) if name in NAMES else None for name in spec}

    def inputs_and_labels(batch):
        points, indices = batch["points"], batch["indices"]
        mask = tf.reduce_any(points != fillers["points"], axis=-1)  # (B, n) of the largest n
        source = tf.where(mask[..., None], tf.cast(points, tf.float32), 0.0)  # (B, n, F)
        is_index = indices != fillers["indices"]
        checked = assert_points(source, points, mask)
        with tf.control_dependencies([*checked, assert_positions(indices, is_index, mask)]):
            labels = tf.cast(tf.where(is_index, indices, 0), tf.int32)
            labels = tf.pad(labels, [[0, 0], [0, 1]])  # (B, m + 1) of the largest m
        if max_points is not None:
            source, mask = (pad_to("max_points", max_points, each) for each in (source, mask))
        if max_length is not None:
            labels = pad_to("max_length", max_length, labels)
        target = tf.pad(labels[:, :-1], [[0, 0], [1, 0]])  # (B, T)
        return {"source": source, "source_mask": mask, "target": target}, labels

    # `padded_batch` takes a tenth of the time of `ragged_batch`, which would know the lengths without fillers.
    batches = dataset.padded_batch(batch_size, padding_values=fillers, drop_remainder=drop_remainder)
    return batches.map(inputs_and_labels, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def point_dataset(examples):
    """Examples in memory as a data set, to be shuffled, split or joined before `point_batches`.

    `[{"points": [[.1, .2], [.3, .4]], "indices": [2, 1]}, {"points": [[.5, .6]], "indices": [1]}]`  ->  a data set of
    the same, float32 `(n, F)` and int32 `(m,)`

    Args:
        examples: Iterable of dictionaries, such as the list of `read_points`; the points of all have the same F.

    Returns:
        `tf.data.Dataset` of known length.

    Raises:
        TypeError: An example has other types or ranks.
        ValueError: There is no example, points differ in F or are not finite in float32, or an index is not a position of
            a point.
    """
    examples = [{name: np.asarray(example[name]) for name in NAMES} for example in examples]
    if not examples:
        raise ValueError("There must be an example. Received none. Pass what `read_points` returns of a file.")
    for number, example in enumerate(examples):
        check_example(number, example, width=examples[0]["points"].shape[-1])
    columns = {"points": "float32", "indices": "int32"}
    rows = {name: ragged([example[name] for example in examples], dtype) for name, dtype in columns.items()}
    return tf.data.Dataset.from_tensor_slices(rows).map(lambda example: example)  # rows of ragged tensors to tensors


def ragged(arrays, dtype):
    """`[[1, 2], [3]]`  ->  `<tf.RaggedTensor [[1, 2], [3]]>`"""
    return tf.RaggedTensor.from_row_lengths(np.concatenate(arrays).astype(dtype), np.array([*map(len, arrays)]))


def pad_to(argument, size, batch):
    """`"max_length", 3, [[7, 0]]`  ->  `[[7, 0, 0]]`"""
    received = tf.shape(batch)[1]
    fits = tf.debugging.Assert(
        received <= size,
        [f"Examples must fit into `{argument}`={size}. Raise it or filter the examples. Received one of:", received],
    )
    with tf.control_dependencies([fits]):
        padded = tf.pad(batch, [[0, 0], [0, size - received], *[[0, 0]] * (batch.shape.rank - 2)])
    return tf.ensure_shape(padded, (batch.shape[0], size, *batch.shape[2:]))


def check_element(spec):
    has_both = isinstance(spec, dict) and all(isinstance(spec.get(name), tf.TensorSpec) for name in NAMES)
    if (
        not has_both
        or (spec["points"].shape.rank, spec["indices"].shape.rank) != (2, 1)
        or not (spec["points"].dtype.is_floating and spec["indices"].dtype in (tf.int16, tf.int32, tf.int64))
    ):
        raise TypeError(
            '`examples` must have "points", floats of shape (n, F), and "indices", signed integers of shape (m,). Received '
            f"elements {spec}. Map the data set first, and leave its examples single."
        )


def check_example(number, example, width):
    points, indices = example["points"], example["indices"]
    if points.ndim != 2 or points.dtype.kind not in "fiu" or indices.ndim != 1 or not are_integers(indices):
        raise TypeError(
            'An example must have "points", numbers of shape (n, F), and "indices", integers of shape (m,). Received '
            f"{points.dtype} points of shape {points.shape} and {indices.dtype} indices of shape {indices.shape} in "
            f"example {number}. Pass single examples."
        )
    if points.shape[1] != width:
        raise ValueError(
            f"All points must have as many coordinates as those of example 0: {width}. Received points of shape "
            f"{points.shape} in example {number}. Make a data set for each width."
        )
    with naming(f"Example {number}"):
        finite_points("points", points, "float32")
        check_digits(points, "in this example")
        check_positions("indices", indices, len(points))


def assert_points(source, points, mask):
    """Fails at a point that is not finite as a float32 of the source, and where such points cannot be told apart."""
    wrong = tf.boolean_mask(points, ~tf.reduce_all(tf.math.is_finite(source), axis=-1))
    message = "Coordinates must be finite in float32. Mend the points or filter the examples. Received points:"
    is_finite = tf.debugging.Assert(tf.shape(wrong)[0] == 0, [message, wrong])
    if points.dtype != tf.float64:
        return [is_finite]
    with tf.control_dependencies([is_finite]):
        is_real, lowest = mask[..., None], tf.where(mask[..., None], points, points.dtype.max)
        highest = tf.where(is_real, points, points.dtype.min)
        extents = tf.reduce_max(tf.reduce_max(highest, axis=1) - tf.reduce_min(lowest, axis=1), axis=1)  # (B,)
        rounding = tf.where(is_real, tf.abs(points - tf.cast(source, points.dtype)), 0.0)
        lost = tf.reduce_max(rounding, axis=[1, 2])  # (B,)
        wrong = tf.boolean_mask(tf.stack([extents, lost], axis=1), (extents > 0) & (lost > LOST * extents))
    message = lost_digits("the extent of an example and what would be lost of it follow")
    return [is_finite, tf.debugging.Assert(tf.shape(wrong)[0] == 0, [message, wrong])]


def assert_positions(indices, is_index, mask):
    """Fails at an index that is not the position of a point: `[[2, 0]]` and `[[4, 1]]` of 3 points"""
    count = tf.reduce_sum(tf.cast(mask, indices.dtype), axis=1, keepdims=True)  # (B, 1)
    is_right = ~is_index | ((indices >= 1) & (indices <= count))
    wrong = tf.boolean_mask(indices, ~tf.reduce_all(is_right, axis=1))
    message = "Indices must be positions of points, from 1 to their number. Add 1 to those that count from 0. Received:"
    return tf.debugging.Assert(tf.shape(wrong)[0] == 0, [message, wrong])
