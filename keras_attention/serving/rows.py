"""Signatures that answer every row they can, and say in `error` why they don't answer the others."""

import functools
import math

import tensorflow as tf

LONGEST_SOURCE = 256  # ids or points that an export reads of a row by default
LONGEST_LEVELS = (128, 128, 16)  # words of a sentence, sentences, paragraphs
CHARACTERS_OF_AN_ID = 32  # no token is that long; text behind these is not even tokenised
LONGEST_DOCUMENT = 2**17  # characters of a document, where the tokeniser leaves a level without a limit

DIVERGED = "The model's answer is not a number (NaN): its training has diverged. Serve an earlier version."


def answer_rows(function, checks=(), limits=None):
    """`function`, so that good rows are answered as if they were alone, and bad rows by empty values and the reason.

    A bad row is one for which a check holds or which goes beyond a limit. It is replaced by a row of zeros (padding, no
    points, the empty string) before the call. In the answer its floats are NaN, its integers 0 and its strings empty. So are
    those of a row to which the function itself answers NaN.

    Args:
        function: Function of the dict `{argument: tensor}`, which returns a dict `{output: tensor}`, batch first.
        checks: List of `(reason, function(argument=tensor) -> boolean (B,), True = bad)`; the first that holds is the reason.
        limits: Dict `{argument: (longest, ...)}`, one number for each axis after the batch, or fewer.

    Returns:
        Function of the dict `{argument: tensor}`, which returns the outputs and `error` (B,), strings that are empty where
        all is well. Arguments with unequal numbers of rows are an error of the whole request.
    """
    limits = limits or {}
    every_check = [*checks, *limit_checks(limits)]

    def signature(inputs):
        inputs = checked_inputs(inputs)
        error = tf.fill(tf.shape(next(iter(inputs.values())))[:1], "")
        for reason, is_bad in every_check:
            error = tf.where((error == "") & is_bad(**inputs), reason, error)
        inputs = {name: blank(cut(tensor, limits.get(name, ())), error != "") for name, tensor in inputs.items()}
        outputs = dict(function(inputs))
        error = tf.where(error == "", outputs.pop("error", ""), error)
        error = tf.where((error == "") & any_nan(outputs, error), DIVERGED, error)
        blanked = {name: blank(tensor, error != "", math.nan) for name, tensor in outputs.items()}
        return {**blanked, "error": error}

    return signature


def row_limits(model, signatures, max_source_length, max_length):
    """The limits of each argument of the signatures that has one: `{"source": (256,), "target": (64,)}`"""
    longest = max_source_length or getattr(model, "max_source_length", None) or LONGEST_SOURCE
    longest_answer = getattr(model, "longest_answer", lambda length: length)
    answer = max_length or longest_answer(longest)
    by_name = {"source": (longest,), "points": (longest,), "target": (answer,), "indices": (answer,)}
    inputs = {name: tensor for _, tensors, *_ in signatures.values() for name, tensor in tensors.items()}
    documents = {"ids": level_limits(len(inputs["ids"].shape) - 1)} if "ids" in inputs else {}
    return {name: limit for name, limit in {**by_name, **documents}.items() if name in inputs}


def level_limits(number, tokenizer=None):
    """The limits of the axes of a document, the outermost first: 2  ->  `(128, 128)`, or those that the tokeniser has."""
    names = getattr(tokenizer, "levels", ())
    limits = [getattr(tokenizer, f"max_{name}s", None) for name in names] or [None] * number
    return tuple(limit or LONGEST_LEVELS[min(level, 2)] for level, limit in enumerate(limits))[::-1]


# === Before the call ===


def checked_inputs(inputs):
    """The inputs, after checking at run time that each has its number of axes, and as many rows as the first."""
    first, *others = inputs
    number = tf.shape(inputs[first])[0]
    checks = [
        tf.debugging.assert_equal(
            tf.shape(inputs[other])[0], number, f"`{first}` and `{other}` must have as many rows as each other."
        )
        for other in others
    ]
    with tf.control_dependencies([check for check in checks if check is not None]):
        return {name: tf.ensure_shape(tensor, tensor.shape) for name, tensor in inputs.items()}


def limit_checks(limits):
    """A check, as `answer_rows` takes it, for each axis that has a limit."""
    return [
        (
            f"`{name}` must have a length of at most {limit}{f' in axis {axis}' if len(longest) > 1 else ''}, up to its last "
            "entry. Send a shorter one.",
            functools.partial(is_longer, name, axis, limit),
        )
        for name, longest in limits.items()
        for axis, limit in enumerate(longest, 1)
    ]


def is_longer(name, axis, limit, /, **inputs):
    return lengths(inputs, name, axis) > limit


def lengths(inputs, name, axis):
    """Lengths of the rows of an argument along an axis, up to the last entry that is not padding: `[[7, 0, 5, 0]]` -> `[3]`

    Points are as many as `lengths` says.
    """
    tensor = inputs[name]
    size = tf.shape(tensor)[axis]
    if not tensor.dtype.is_integer:
        return inputs["lengths"] if "lengths" in inputs else tf.fill(tf.shape(tensor)[:1], size)
    is_used = tf.reduce_any(tensor != 0, axis=[each for each in range(1, tensor.shape.rank) if each != axis])  # (B, n)
    return tf.reduce_max(tf.where(is_used, tf.range(1, size + 1), 0), axis=1)


def cut(tensor, longest):
    return tensor[(slice(None), *(slice(limit) for limit in longest))]


# === After the call ===


def any_nan(outputs, like):
    """Which rows have NaN in one of the outputs, in the form of `like (B,)`."""
    found = tf.zeros_like(like, tf.bool)
    for tensor in outputs.values():
        if tensor.dtype.is_floating and tensor.shape.rank:
            found |= tf.reduce_any(tf.math.is_nan(tensor), axis=list(range(1, tensor.shape.rank)))
    return found


def blank(tensor, is_bad, number=0):
    """Empty values in the rows that are bad: `number` as a float, 0 as an integer, the empty string."""
    if tensor.shape.rank == 0:
        return tensor
    nothing = tf.cast(number, tensor.dtype) if tensor.dtype.is_floating else tf.zeros_like(tensor)
    return tf.where(tf.reshape(is_bad, [-1] + [1] * (tensor.shape.rank - 1)), nothing, tensor)
