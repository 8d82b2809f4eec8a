"""Texts and ids as tokenisers take them: strings of any kind, a batch of strings, a batch of ids."""

import numpy as np
import tensorflow as tf

from keras_attention.checks.messages import shortened
from keras_attention.tokens import END, PAD, START

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
TEXTS_AT_ONCE = 1024  # tokenised together: ten times as fast as one by one


def strings(texts):
    """`["ab", b"c", np.array([b"d", b"e"])]`  ->  `"ab"`, `"c"`, `"d"`, `"e"`"""
    if isinstance(texts, (str, bytes)):
        raise TypeError(
            f"`texts` must be an iterable of strings, not one string. Received: {texts[:50]!r}. Pass one text as "
            "`[text]`, and of a file its lines, not its name."
        )
    for batch in texts:
        for text in np.asarray(batch, dtype=object).ravel():
            if not isinstance(text, (str, bytes)):
                raise TypeError(
                    "`texts` must hold strings, bytes, or tensors and arrays of them. Received a "
                    f"{type(text).__name__}: {shortened(text)}. Map a data set to its texts first."
                )
            yield valid(text) if isinstance(text, str) else text.decode("utf-8", "replace")


def valid(text):
    """A string that UTF-8 can write: `"a\\ud800b"` becomes `"a\N{REPLACEMENT CHARACTER}b"`, as bytes do that are not UTF-8.

    Half a surrogate pair comes from JSON that was cut in the middle of an emoji, or from file names.
    """
    is_whole = not isinstance(text, str) or text.isascii()
    return text if is_whole else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def as_texts(texts):
    """A batch of strings `(B,)` as a tensor."""
    if not tf.is_tensor(texts):
        texts = np.frompyfunc(valid, 1, 1)(np.asarray(texts, dtype=object))
    texts = tf.convert_to_tensor(texts, tf.string)
    if texts.shape.rank not in (None, 1):
        raise ValueError(
            f"`texts` must be a batch of strings (B,). Received shape {texts.shape}. Pass one text as `[text]`, "
            "and reshape other batches."
        )
    return texts


def padded_ids(ids):
    """Integer ids `(B, L)`, padded or ragged, as a padded int32 tensor."""
    ids = ids.to_tensor(PAD) if isinstance(ids, tf.RaggedTensor) else tf.convert_to_tensor(ids)
    if ids.shape.rank not in (None, 2) or not ids.dtype.is_integer:
        raise ValueError(
            f"`ids` must be integers of shape (B, L). Received {ids.dtype.name} of shape {ids.shape}. Pass one row "
            "as `ids[None]`; of logits take the `argmax` first."
        )
    return tf.cast(ids, tf.int32)


def is_silent(ids):
    """Which ids write nothing (0 pad, 1 start, 2 end): `[[1, 7, 2, 7, 0]]`  ->  `[[True, False, True, True, True]]`"""
    ended = tf.cumsum(tf.cast(ids == END, tf.int32), axis=1) > 0
    return ended | (ids == PAD) | (ids == START)
