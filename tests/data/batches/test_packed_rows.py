"""A language model computes the same of packed rows as of padded ones."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops
from tolerances import FLOAT32

from keras_attention.data import pack
from keras_attention.layers import SinusoidalPositionEncoding, TokenEmbedding, TransformerEncoderBlock
from keras_attention.masks import Causal, Segments
from keras_attention.positions import PositionScheme

LENGTHS, LENGTH, V, D, N = (5, 3, 7, 2, 4, 1), 11, 41, 12, 3


class FromPosition(PositionScheme):
    """Looks at the position itself, not at a distance."""

    def bias(self, query_positions, key_positions):
        return ops.cast(query_positions[..., :, None] % 3 - key_positions[..., None, :] % 2, "float32")


class LanguageModel:
    """Two causal blocks on embeddings, with positions that are added, or that act inside attention."""

    def __init__(self, position):
        is_added = position == "sinusoid"
        keras.utils.set_random_seed(3)
        self.embedding = TokenEmbedding(V, D)
        self.encoding = SinusoidalPositionEncoding() if is_added else None
        schemes = [None if is_added else position() if callable(position) else position for _ in range(2)]
        self.blocks = [TransformerEncoderBlock(N, 13, normalize_first=True, position=scheme) for scheme in schemes]

    def __call__(self, ids, attention_mask, positions=None):
        hidden = self.embedding(ids)
        if self.encoding is not None:
            hidden = self.encoding(hidden, positions=positions)
        for block in self.blocks:
            hidden = block(hidden, attention_mask=attention_mask, positions=positions)
        return self.embedding(hidden, reverse=True)

    @property
    def weights(self):
        return [self.embedding.trainable_weights, *(block.trainable_weights for block in self.blocks)]


def logits_and_gradients(model, labels, *inputs):
    """Logits of the real tokens by label, all of which differ, and the gradients of their mean loss."""
    with tf.GradientTape() as tape:
        logits = model(*inputs)
        is_real = labels > 0
        losses = ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)
        loss = ops.sum(ops.where(is_real, losses, 0.0)) / ops.sum(ops.cast(is_real, "float32"))
    variables = [weight.value for weight in tf.nest.flatten(model.weights)]
    gradients = tape.gradient(loss, variables)
    logits = dict(zip(labels[is_real].tolist(), ops.convert_to_numpy(logits)[is_real], strict=True))
    return logits, [ops.convert_to_numpy(gradient) for gradient in gradients]


@pytest.fixture(scope="module")
def examples():
    """Sequences of inputs and labels, and the same padded."""
    labels = np.split(np.arange(1, 1 + sum(LENGTHS)), np.cumsum(LENGTHS)[:-1])
    inputs = [ids * 7 % V for ids in labels]
    return tuple(tf.ragged.constant([each.tolist() for each in rows], tf.int32) for rows in (inputs, labels))


@pytest.mark.parametrize("position", ["sinusoid", "rotary", FromPosition])
def test_logits_and_gradients_of_packed_rows_are_those_of_padded_ones(examples, position):
    inputs, labels = (each.to_tensor().numpy() for each in examples)
    model = LanguageModel(position)
    padded = logits_and_gradients(model, labels, inputs, Causal().mask(max(LENGTHS)))

    dataset = tf.data.Dataset.from_tensor_slices(examples).map(lambda inputs, labels: (inputs, labels))
    rows, labels = next(pack(dataset, LENGTH).batch(7).as_numpy_iterator())
    assert len(labels) == 2  # 22 tokens
    mask = (Causal() & Segments(rows["segment_ids"])).mask(LENGTH)
    packed = logits_and_gradients(model, labels, rows["token_ids"], mask, rows["positions"])

    assert packed[0].keys() == padded[0].keys() == {*range(1, 1 + sum(LENGTHS))}
    for label, logits in packed[0].items():
        np.testing.assert_allclose(logits, padded[0][label], rtol=FLOAT32, atol=FLOAT32)
    for one, other in zip(packed[1], padded[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=FLOAT32, atol=FLOAT32)


def test_positions_that_do_not_restart_would_change_the_logits(examples):
    rows = next(pack(tf.data.Dataset.from_tensor_slices(examples[0]), LENGTH).batch(7).as_numpy_iterator())
    mask = (Causal() & Segments(rows["segment_ids"])).mask(LENGTH)
    model = LanguageModel(FromPosition)
    right, wrong = (model(rows["token_ids"], mask, each) for each in (rows["positions"], np.arange(LENGTH)[None]))
    differs = np.abs(right - wrong).max(axis=-1) > 1e-3
    assert differs[rows["segment_ids"] > 1].any() and not differs[rows["segment_ids"] == 1].any()
