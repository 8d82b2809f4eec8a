"""A model and a tokeniser small enough that every answer can be worked out by hand."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_attention.tokens import END, PAD, UNKNOWN

LETTERS = "abcdefg"
VOCABULARY_SIZE = UNKNOWN + 1 + len(LETTERS)  # 11


class NextLetter(keras.Model):
    """Answers each letter with the next one, `"abc"` -> `"bcd"`, and stops with END where the text stops.

    The logit of the answer is `log(10)`, the ten others are 0: every step has probability 10 / (10 + 10) = 1/2.
    """

    def __init__(self):
        source = keras.Input((None,), dtype="int32", name="source")
        embedding = keras.layers.Embedding(VOCABULARY_SIZE, VOCABULARY_SIZE)
        super().__init__(source, embedding(source))
        self.embedding = embedding
        answers = np.arange(VOCABULARY_SIZE) + 1
        answers[[PAD, END, UNKNOWN, -1]] = END, END, UNKNOWN, UNKNOWN + 1
        embedding.set_weights([np.log(10.0) * np.eye(VOCABULARY_SIZE)[answers]])

    def encode(self, source):
        return {"encoded": self.embedding(source)}

    def translate(self, source, max_length):
        batch_size, length = ops.shape(source)
        source = ops.concatenate([source, ops.full((batch_size, 1), PAD, dtype="int32")], axis=1)
        log_probabilities = ops.log_softmax(self.embedding(source))  # (B, S + 1, V)

        def step(i, tokens, scores, finished):
            now = ops.take(log_probabilities, ops.minimum(i, length), axis=1)
            token = ops.where(finished, PAD, ops.cast(ops.argmax(now, axis=-1), "int32"))
            scores = ops.where(finished, scores, scores + ops.max(now, axis=-1))
            tokens = ops.where(ops.arange(max_length) == i, token[:, None], tokens)
            return i + 1, tokens, scores, ops.logical_or(finished, token == END)

        tokens = ops.full((batch_size, max_length), PAD, dtype="int32")
        start = (0, tokens, ops.zeros((batch_size,)), ops.zeros((batch_size,), dtype="bool"))
        _, tokens, scores, _ = ops.while_loop(
            lambda i, tokens, scores, finished: ops.logical_not(ops.all(finished)),
            step,
            start,
            maximum_iterations=max_length,
        )
        return {"tokens": tokens, "scores": scores}

    def serving_signatures(self, max_length=64, sampler=None):
        inputs = {"source": keras.KerasTensor((None, None), "int32", name="source")}
        return {
            "translate_ids": (lambda source: self.translate(source, max_length), inputs),
            "encode": (self.encode, inputs),
        }


class LetterTokenizer(tf.Module):
    """`"ab?"` -> `[4, 5, 3]`."""

    def __init__(self):
        super().__init__()
        ids = tf.range(UNKNOWN + 1, VOCABULARY_SIZE)
        self.to_ids = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(list(LETTERS), ids), UNKNOWN)
        self.to_letters = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(ids, list(LETTERS)), "?")

    def tokenize(self, strings):
        letters = tf.strings.unicode_split(strings, "UTF-8")
        return tf.ragged.map_flat_values(self.to_ids.lookup, letters)

    def detokenize(self, ids):
        shown = tf.logical_and(ids != PAD, tf.cumsum(tf.cast(ids == END, "int32"), axis=1) == 0)
        return tf.strings.reduce_join(tf.where(shown, self.to_letters.lookup(ids), ""), axis=-1)


@pytest.fixture(scope="session")
def model():
    return NextLetter()


@pytest.fixture(scope="session")
def tokenizer():
    return LetterTokenizer()


@pytest.fixture(scope="session")
def exported(model, tokenizer, tmp_path_factory):
    """The folder of version 1 of the model with text around it."""
    from keras_attention.serving import export

    return export(model, tmp_path_factory.mktemp("exported"), tokenizer, tokenizer, max_length=5)
