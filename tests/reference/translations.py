"""A model that writes the translations it is told, and a tokeniser that needs no TensorFlow."""

import keras
import numpy as np
from keras import ops

from keras_attention.tokens import END, PAD

SOURCES = ["the cat sat", "a", "", "the dog is on the mat", "a cat is on the dog"]
TARGETS = ["die Katze sass", "ein", "leer", "der Hund ist auf der Matte", "eine Katze ist auf dem Hund"]


class Rows(list):
    """A ragged batch of ids."""

    def to_tensor(self):
        length = max(map(len, self), default=0)
        return np.array([row + [PAD] * (length - len(row)) for row in self], "int32").reshape(len(self), length)


class Characters:
    """A tokeniser without TensorFlow: id = code point."""

    def tokenize(self, texts):
        return Rows([ord(character) for character in text] for text in texts)

    def detokenize(self, ids):
        texts = ("".join(map(chr, row)).split(chr(END))[0].strip(chr(PAD)) for row in ids)
        return np.array([text.encode() for text in texts], dtype=object)


class Writer(keras.Model):
    """A model that writes, for each text it knows, what it is told to, and remembers the batches."""

    def __init__(self, translations):
        super().__init__()
        self.translations = translations
        self.calls = []
        self.bias = self.add_weight(shape=(1,), name="bias")

    def call(self, inputs):
        return ops.add(inputs, self.bias)

    def generate(self, inputs, max_length, sampler):
        self.calls.append((inputs.shape, max_length, sampler))
        sources = [text.decode() for text in Characters().detokenize(inputs)]
        ids = np.full((len(sources), max_length), PAD, "int32")
        for row, source in zip(ids, sources, strict=True):
            written = [*map(ord, self.translations[source]), END][:max_length]
            row[: len(written)] = written
        return ids


def writer(translations=TARGETS):
    model = Writer(dict(zip(SOURCES, translations, strict=True)))
    model.compile(optimizer="sgd", loss="mse", run_eagerly=True)
    return model
