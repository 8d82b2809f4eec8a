"""Batches of text pairs: read, tokenise, filter, keep in memory, shuffle, bucket by length, pad, prefetch."""

import math
import random

import numpy as np
import tensorflow as tf

from keras_attention.checks.arguments import check_positive_integer
from keras_attention.checks.messages import shortened
from keras_attention.data.tokenizers.texts import TEXTS_AT_ONCE, as_texts
from keras_attention.data.tokenizers.tokenizer import check_tokenizer
from keras_attention.tokens import END, START

BATCHES_IN_POOL = 32


def training_batches(
    pairs,
    source_tokenizer,
    target_tokenizer,
    batch_size=128,
    max_source_length=None,
    max_target_length=None,
    seed=None,
    epoch=None,
):
    """Shuffled batches of pairs of similar length, for `model.fit`.

    Two pairs, `("abc", "xy")` and `("a", "z")`  ->  one batch,
    `({"source": [[4, 5, 6], [4, 0, 0]], "target": [[1, 4, 5], [1, 6, 0]]}, [[4, 5, 2], [6, 2, 0]])`
    (0 pad, 1 start, 2 end)

    The pairs are read once, by this call, and their ids stay in memory. Every epoch draws another order, cuts it into
    pools of 32 batches and sorts each pool by length, so that a batch needs little padding; then the batches are
    shuffled.

    Args:
        pairs: Finite `tf.data.Dataset` of two strings, `(source text, target text)`, or a list of such pairs in memory:
            of two lists pass `zip(sources, targets)`.
        source_tokenizer: `Tokenizer` of the source texts.
        target_tokenizer: `Tokenizer` of the target texts; it may be the same.
        batch_size: Integer B, number of pairs in a batch; one batch of an epoch may have fewer.
        max_source_length: Integer or None; pairs with more source tokens are left out.
        max_target_length: Integer or None; pairs with more target tokens, not counting start and end, are left out.
        seed: Integer or None; with an integer the order of every epoch can be repeated.
        epoch: Integer `tf.Variable` or None. With a variable the order is a function of `seed` and of its value when
            an epoch begins: `keras_attention.training.SeedEachEpoch` sets it, so that a training that was interrupted
            goes on with the batches of the epoch at which it resumes. Without one every pass draws the next order.

    Returns:
        `tf.data.Dataset` of `({"source": (B, S), "target": (B, T)}, labels (B, T))`, all int32, whose `len` is the
        number of batches. The target is the start symbol and the tokens, the labels are the tokens and the end symbol.
        Pairs with an empty side are left out.

    Raises:
        TypeError: `pairs` is neither a data set nor an iterable of two strings, or a tokeniser lacks a method.
        ValueError: A size or a length is not a positive integer, the pairs never end, or no pair is left.
    """
    check_epoch(epoch)
    source, target = read_tokens(
        pairs, source_tokenizer, target_tokenizer, batch_size, max_source_length, max_target_length
    )
    lengths = tf.maximum(source.row_lengths(), target.row_lengths())  # (N,)
    return padded_batches(rows_of_epochs(lengths, batch_size, seed, epoch), source, target)


def rows_of_epochs(lengths, batch_size, seed, epoch):
    """Batches of row numbers whose lengths are similar, in another order at every pass or at every value of `epoch`."""
    seed = random.randrange(2**31) if seed is None else seed
    if epoch is None:
        epochs = tf.data.Dataset.random(seed, rerandomize_each_iteration=True).take(1)
    else:
        epochs = tf.data.Dataset.range(1).map(lambda _: tf.cast(epoch, tf.int64))
    batches = epochs.flat_map(lambda number: rows_of_epoch(number, lengths, batch_size, seed))
    number_of_batches = math.ceil(lengths.shape[0] / batch_size)
    return batches.apply(tf.data.experimental.assert_cardinality(number_of_batches))


def rows_of_epoch(number, lengths, batch_size, seed):
    """Batches of row numbers, a function of `seed` and of the epoch's number: `[5, 1, 3, 1]`, 2  ->  `[1, 3]`, `[2, 0]`"""
    count = lengths.shape[0]
    rows = tf.random.experimental.stateless_shuffle(tf.range(count, dtype=tf.int64), seed=(seed, number))
    pools = tf.range(count, dtype=tf.int64) // (BATCHES_IN_POOL * batch_size)
    longest = tf.reduce_max(lengths) + 1
    rows = tf.gather(rows, tf.argsort(pools * longest + tf.gather(lengths, rows), stable=True))  # sorts each pool
    starts = tf.random.experimental.stateless_shuffle(tf.range(0, count, batch_size), seed=(number, seed))
    return tf.data.Dataset.from_tensor_slices(starts).map(lambda start: rows[start : start + batch_size])


def evaluation_batches(
    pairs, source_tokenizer, target_tokenizer, batch_size=128, max_source_length=None, max_target_length=None
):
    """Batches of pairs in the order in which they come, for `model.evaluate` and `validation_data`.

    Everything but the order is as in `training_batches`, the filter included.
    """
    source, target = read_tokens(
        pairs, source_tokenizer, target_tokenizer, batch_size, max_source_length, max_target_length
    )
    return padded_batches(tf.data.Dataset.range(source.nrows()).batch(batch_size), source, target)


def read_tokens(pairs, source_tokenizer, target_tokenizer, batch_size, max_source_length, max_target_length):
    """`("abc", "xy"), ("", "z"), ("a", "z")`  ->  `[[4, 5, 6], [4]]`, `[[4, 5], [6]]`, two ragged tensors"""
    pairs = pairs if isinstance(pairs, tf.data.Dataset) else pairs_in_memory(pairs)
    check_pairs(pairs)
    check_tokenizer("source_tokenizer", source_tokenizer)
    check_tokenizer("target_tokenizer", target_tokenizer)
    check_positive_integer("batch_size", batch_size)
    for name, length in (("max_source_length", max_source_length), ("max_target_length", max_target_length)):
        if length is not None:
            check_positive_integer(name, length)

    def tokenise_and_filter(source_texts, target_texts):
        source = source_tokenizer.tokenize(source_texts)  # (1024, None)
        target = target_tokenizer.tokenize(target_texts)  # (1024, None)
        kept = has_length(source, max_source_length) & has_length(target, max_target_length)
        return tf.ragged.boolean_mask(source, kept), tf.ragged.boolean_mask(target, kept)

    tokens = pairs.batch(TEXTS_AT_ONCE).map(tokenise_and_filter, num_parallel_calls=tf.data.AUTOTUNE)
    chunks = list(tokens)
    if not any(source.nrows() for source, _ in chunks):
        raise ValueError(
            "No pair is left. `pairs` is empty, or every pair has an empty side or more tokens than "
            f"max_source_length={max_source_length} or max_target_length={max_target_length}. Raise these or leave them "
            "out."
        )
    source, target = (tf.concat(side, axis=0) for side in zip(*chunks, strict=True))
    return source, target


def has_length(ids, max_length):
    """`[[7, 8, 9], [], [7]]`, 2  ->  `[False, False, True]`"""
    lengths = ids.row_lengths()
    return lengths > 0 if max_length is None else (lengths > 0) & (lengths <= max_length)


def padded_batches(batches, source, target):
    """Batches of row numbers  ->  batches of padded rows

    `[0, 1]` of `[[7, 8], [7]]`, `[[5], [5, 6]]`  ->
    `({"source": [[7, 8], [7, 0]], "target": [[1, 5, 0], [1, 5, 6]]}, [[5, 2, 0], [5, 6, 2]])`
    (0 pad, 1 start, 2 end)
    """
    column = tf.ones((target.nrows(), 1), tf.int32)
    inputs = tf.concat([START * column, target], axis=1)  # (N, None)
    labels = tf.concat([target, END * column], axis=1)  # (N, None)

    def pad(rows):
        source_ids, target_ids, label_ids = (tf.gather(ids, rows).to_tensor() for ids in (source, inputs, labels))
        return {"source": source_ids, "target": target_ids}, label_ids

    return batches.map(pad, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def pairs_in_memory(pairs):
    """`[("abc", "xy"), ("a", "z")]`  ->  a data set of the same"""
    sides = [], []
    for number, pair in enumerate(pairs):
        is_pair = isinstance(pair, tuple | list | np.ndarray) and len(pair) == 2
        if not is_pair or not all(isinstance(text, str | bytes) for text in pair):
            raise TypeError(
                "`pairs` must be a `tf.data.Dataset` or a list of two strings each, (source text, target text). Received "
                f"{shortened(pair)} at position {number}. Of two lists pass `zip(sources, targets)`."
            )
        for side, text in zip(sides, pair, strict=True):
            side.append(text)
    return tf.data.Dataset.from_tensor_slices(tuple(as_texts(side) for side in sides))


def check_pairs(pairs):
    spec = pairs.element_spec
    is_pair = isinstance(spec, tuple) and len(spec) == 2
    if not is_pair or any(tf.TensorSpec(each.shape, each.dtype) != tf.TensorSpec((), tf.string) for each in spec):
        raise TypeError(
            "`pairs` must be a `tf.data.Dataset` of two scalar strings, (source text, target text). Received "
            f"{type(pairs).__name__} with elements {spec}. Map it first, such as "
            '`dataset.map(lambda example: (example["text"], example["date"]))`.'
        )
    if pairs.cardinality() == tf.data.INFINITE_CARDINALITY:
        raise ValueError("`pairs` must end. Received a data set that repeats without end. Take off its `repeat()`.")


def check_epoch(epoch):
    if epoch is not None and not (isinstance(epoch, tf.Variable) and epoch.dtype.is_integer):
        raise TypeError(
            f"`epoch` must be an integer `tf.Variable` or None. Received: {epoch!r}. Pass `tf.Variable(0)`, here and to "
            "`SeedEachEpoch`."
        )
