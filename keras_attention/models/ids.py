"""Rows of ids as arrays: how they are checked and shifted behind the start symbol."""

import numpy as np
from keras import ops

from keras_attention.ops.masks import padding_mask
from keras_attention.ops.positions import order_real_first, places_real_first, reordered
from keras_attention.tokens import PAD, START


def shift_right(target, start=START):
    """What the decoder has read before each token: `[[7, 8, 2, 0]]` -> `[[1, 7, 8, 2]]` (1 = start, 2 = end)."""
    return ops.concatenate([ops.full_like(target[:, :1], start), target[:, :-1]], axis=1)


def shift_real_right(target, start=START):
    """As `shift_right`, from one real token to the next, and 0 at padding: `[[0, 7, 0, 8, 2]]` -> `[[0, 1, 0, 7, 8]]`."""
    mask = padding_mask(target)
    together = reordered(target[..., None], order_real_first(mask))[..., 0]
    shifted = shift_right(together, start)
    in_place = reordered(shifted[..., None], places_real_first(mask))[..., 0]
    return ops.where(mask, in_place, PAD)


def take_input(inputs, name):
    """`inputs[name]`, or a clear error."""
    if not isinstance(inputs, dict) or name not in inputs:
        received = sorted(inputs) if isinstance(inputs, dict) else type(inputs).__name__
        raise ValueError(f'The inputs must be a dictionary with "{name}". Received: {received}.')
    return inputs[name]


def vocabulary_ids(name, ids, vocabulary_size):
    """`ids` as an int32 array `(B, length)`, after checking rank, type and range."""
    ids = integer_rows(name, ids, "ids", "length", "sequence")
    if ids.size and (ids.min() < 0 or ids.max() >= vocabulary_size):
        wrong = ids.max() if ids.max() >= vocabulary_size else ids.min()
        raise ValueError(outside_vocabulary(f"`{name}` has the id {wrong},", vocabulary_size))
    return ids.astype("int32")


def outside_vocabulary(what, vocabulary_size):
    """The message about an id outside the vocabulary, in Python and in a served answer."""
    return (
        f"{what} outside the vocabulary [0, {vocabulary_size}). "
        "Tokenise with the tokeniser that the model was trained with."
    )


def vocabulary_check(name, vocabulary_size):
    """The check of `vocabulary_ids` for the rows of the argument `name` of a served signature."""

    def is_outside(**inputs):
        ids = inputs[name]
        return ops.any((ids < 0) | (ids >= vocabulary_size), axis=tuple(range(1, len(ids.shape))))  # (B,)

    return outside_vocabulary(f"`{name}` has an id", vocabulary_size), is_outside


def integer_rows(name, rows, kind, axis, item):
    """`rows` as an integer array `(B, length)`, after checking rank and type.

    For the messages: `kind` says what the integers are, `axis` names the second axis, `item` a row.
    """
    lengths = lengths_of_rows(rows)
    if len(set(lengths)) > 1:
        raise ValueError(
            f"The rows of `{name}` must be of one length. Received rows of {lengths} {kind}. "
            f"Pad them with 0, for example with `keras.utils.pad_sequences({kind}, padding='post')`."
        )
    rows = ops.convert_to_numpy(rows)
    if rows.ndim != 2 or (rows.size and not np.issubdtype(rows.dtype, np.integer)):
        raise ValueError(
            f"`{name}` must be integer {kind} of shape (B, {axis}), padded with 0. Received shape {rows.shape} and dtype "
            f"{rows.dtype}. Wrap a single {item} in a list: `[{kind}]`."
        )
    return rows


def lengths_of_rows(rows):
    """The lengths of the sequences in a list or tuple; `[]` for a list of numbers and for anything else."""
    return [len(row) for row in rows if hasattr(row, "__len__")] if isinstance(rows, list | tuple) else []
