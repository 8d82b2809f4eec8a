"""Batches of documents with their labels: tokenise, keep in memory, shuffle, bucket by size, pad, prefetch."""

import numpy as np
import tensorflow as tf

from keras_attention.checks.arguments import check_positive_integer
from keras_attention.data.batches.pairs import check_epoch, rows_of_epochs
from keras_attention.data.tokenizers.documents import DocumentTokenizer
from keras_attention.data.tokenizers.texts import TEXTS_AT_ONCE, strings
from keras_attention.data.tokenizers.tokenizer import check_tokenizer
from keras_attention.tokens import PAD


def training_document_batches(texts, labels, tokenizer, batch_size=32, seed=None, epoch=None):
    """Shuffled batches of documents of similar size, for `model.fit`.

    Two documents, `["Good. I like it.", "Bad."]` of the labels `[1, 0]`  ->  one batch,
    `([[[4, 8, 0, 0], [3, 6, 5, 8]], [[7, 8, 0, 0], [0, 0, 0, 0]]], [1, 0])`  (0 pad, 3 unknown)

    The texts are read and tokenised once, by this call, and their ids stay in memory. Every epoch draws another order,
    cuts it into pools of 32 batches and sorts each pool by the number of sentences, so that a batch needs little
    padding; then the batches are shuffled.

    Args:
        texts: Iterable of N strings, a `tf.data.Dataset` included. A document may be empty.
        labels: Numbers `(N, ...)`.
        tokenizer: `DocumentTokenizer`, or any `Tokenizer` for models that read a document as one row of words.
        batch_size: Integer B, number of documents in a batch; one batch of an epoch may have fewer.
        seed: Integer or None; with an integer the order of every epoch can be repeated.
        epoch: Integer `tf.Variable` or None, as in `training_batches`.

    Returns:
        `tf.data.Dataset` of `(ids (B, L, W), labels (B, ...))`, the ids int32, the labels int32 or float32, whose `len`
        is the number of batches. Between the batch axis and the words there are as many axes as the tokeniser has levels
        of sentences and paragraphs.

    Raises:
        TypeError: The texts are not strings, the labels are not numbers, or the tokeniser lacks a method.
        ValueError: There is no text, the number of labels differs, or a size is not a positive integer.
    """
    check_epoch(epoch)
    ids, labels = read_documents(texts, labels, tokenizer, batch_size)
    return pad_documents(rows_of_epochs(ids.row_lengths(), batch_size, seed, epoch), ids, labels)


def evaluation_document_batches(texts, labels, tokenizer, batch_size=32):
    """Batches of documents in the order in which they come, for `model.evaluate` and `validation_data`.

    Everything but the order is as in `training_document_batches`.
    """
    ids, labels = read_documents(texts, labels, tokenizer, batch_size)
    return pad_documents(tf.data.Dataset.range(ids.nrows()).batch(batch_size), ids, labels)


def read_documents(texts, labels, tokenizer, batch_size):
    """The ids of all documents, a ragged tensor, and the labels, an array."""
    if not isinstance(tokenizer, DocumentTokenizer):
        check_tokenizer("tokenizer", tokenizer)
    check_positive_integer("batch_size", batch_size)
    texts, labels = list(strings(texts)), np.asarray(labels)
    if labels.dtype.kind not in "biuf":
        raise TypeError(
            f"`labels` must be numbers. Received {labels.dtype.name}. Pass the position of each label's name in a list."
        )
    if labels.dtype.kind in "iu" and labels.size and not -(2**31) <= labels.min() <= labels.max() < 2**31:
        raise ValueError(
            f"Integer labels become int32. Received labels from {labels.min()} to {labels.max()}. Pass positions in a list of "
            "names, or floats."
        )
    if not texts or labels.shape[:1] != (len(texts),):
        raise ValueError(
            f"There must be a text, and one label for each. Received {len(texts)} texts and labels of shape "
            f"{labels.shape}. Cut them to the same number."
        )
    chunks = [texts[start : start + TEXTS_AT_ONCE] for start in range(0, len(texts), TEXTS_AT_ONCE)]
    ids = tf.concat([tokenizer.tokenize(chunk) for chunk in chunks], axis=0)
    return ids, labels.astype("float32" if labels.dtype.kind == "f" else "int32")


def pad_documents(batches, ids, labels):
    """`[0, 1]` of `[[[4, 8], [5]], []]`, `[1, 0]`  ->  `([[[4, 8], [5, 0]], [[0, 0], [0, 0]]], [1, 0])`"""

    def pad(rows):
        return tf.gather(ids, rows).to_tensor(PAD), tf.gather(labels, rows)

    return batches.map(pad, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
