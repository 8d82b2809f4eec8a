"""The ids that a search knows: where sequences start, which ids end them, and which id fills the result after the end."""

import dataclasses
import functools

import keras
import numpy as np
from keras import ops

from keras_attention.checks.arguments import check_integer
from keras_attention.ops.known_values import known_values, may_hold_integers
from keras_attention.ops.softmax import mask_scores


@dataclasses.dataclass(frozen=True)
class Symbols:
    """The symbols of one search, as `check_symbols` gives them.

    Attributes:
        end: Tuple of integers, the ids that end a sequence.
        pad: Integer that fills the result after the end: an id, or a negative number, which is not an id.
        known_start: The start symbols as a NumPy array, or `None` while a graph is built.
    """

    end: tuple
    pad: int
    known_start: np.ndarray | None = None

    @property
    def after_end(self):
        """The id that `step` is given for sequences that have ended."""
        return self.end[0] if self.pad < 0 else self.pad

    def ended(self, tokens):
        """Which of `tokens` are end symbols."""
        return functools.reduce(ops.logical_or, [ops.equal(tokens, each) for each in self.end])

    def without_padding(self, log_probabilities):
        """LOWEST for padding, unless it ends a sequence: `(B, V)` -> `(B, V)`."""
        if self.pad < 0 or self.pad in self.end:
            return log_probabilities
        return mask_scores(log_probabilities, ops.arange(ops.shape(log_probabilities)[-1]) != self.pad)

    def check_vocabulary(self, size):
        """Raises for a symbol outside a vocabulary of `size` ids; an unknown size (`None`) passes."""
        if size is None:
            return
        start = () if self.known_start is None else self.known_start
        for name, ids in (("start", start), ("end", self.end), ("pad", (self.pad,))):
            wrong = [int(each) for each in ids if each >= size]
            if wrong:
                raise ValueError(
                    f"`{name}` must be in the vocabulary of the logits, [0, {size}). Received: {wrong[0]}. Pass the ids with "
                    "which the model was trained."
                )


def check_symbols(start, end, pad):
    """`start` as an int32 tensor `(B,)`, and the `Symbols`, after checking types, ranks and signs."""
    end, pad = check_end(end), check_integer("pad", pad, "an integer", lambda value: True)
    known_start = known_values(start)
    start = ops.convert_to_tensor(start)
    dtype = keras.backend.standardize_dtype(start.dtype)
    if len(start.shape) != 1:
        raise ValueError(
            f"`start` must have shape `(B,)`, one start id for each sequence. Received shape {tuple(start.shape)}. "
            "For a single sequence pass a batch of one."
        )
    if not may_hold_integers(start):
        raise TypeError(f"`start` must hold integer ids. Received dtype {dtype}. Cast it to int32.")
    if known_start is not None and (known_start < 0).any():
        raise ValueError(f"`start` must hold ids of 0 or more. Received: {known_start.min()}.")
    return ops.cast(start, "int32"), Symbols(end, pad, known_start)


def check_end(end):
    """The ids that end a sequence, as a tuple: `2` -> `(2,)`, `[2, 3]` -> `(2, 3)`."""
    words = "an id of 0 or more, or a list of such ids"
    ids = end if isinstance(end, list | tuple) else [end]
    if not ids:
        raise ValueError(f"`end` must be {words}. Received: {end!r}.")
    return tuple(check_integer("end", each, words, lambda value: value >= 0) for each in ids)
