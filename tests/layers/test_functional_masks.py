"""Masks passed to the layers in a functional model: by position, by name, as lists."""

import keras
import numpy as np
import pytest
from keras import ops
from reference.arrays import normal, to_numpy
from tolerances import FLOAT32

from keras_attention.layers import (
    MultiHeadAttention,
    SoftAttention,
    TransformerDecoderBlock,
    TransformerEncoderBlock,
)
from keras_attention.scores import AdditiveScore

B, T, S, D = 2, 3, 5, 8
QUERY, VALUE = normal(B, T, D), normal(B, S, D, seed=1)
QUERY_MASK = np.array([[True, True, False], [True, True, True]])
VALUE_MASK = np.array([[True, True, True, False, False], [True, True, True, True, False]])


@pytest.mark.parametrize(
    ("make", "arrays"),
    [
        (SoftAttention, (QUERY, VALUE, VALUE, QUERY_MASK, VALUE_MASK)),
        (lambda: MultiHeadAttention(2, 4), (QUERY, VALUE, VALUE, QUERY_MASK, VALUE_MASK)),
        (lambda: TransformerEncoderBlock(2, 7), (QUERY, QUERY_MASK)),
        (lambda: TransformerDecoderBlock(2, 7), (QUERY, VALUE, QUERY_MASK, VALUE_MASK)),
    ],
    ids=["SoftAttention", "MultiHeadAttention", "TransformerEncoderBlock", "TransformerDecoderBlock"],
)
def test_masks_may_be_passed_by_position(make, arrays):
    layer = make()
    inputs = [keras.Input(array.shape[1:], dtype=array.dtype.name) for array in arrays]
    model = keras.Model(inputs, layer(*inputs))
    eager = layer(*map(ops.convert_to_tensor, arrays))
    np.testing.assert_allclose(to_numpy(model(list(arrays))), to_numpy(eager), atol=FLOAT32)


@pytest.mark.parametrize("make", [SoftAttention, lambda: MultiHeadAttention(2, 4)], ids=["soft", "multi_head"])
def test_masks_may_be_lists(make):
    layer = make()
    expected = to_numpy(layer(QUERY, VALUE, value_mask=VALUE_MASK))
    np.testing.assert_array_equal(to_numpy(layer(QUERY, VALUE, value_mask=VALUE_MASK.tolist())), expected)


def test_a_score_belongs_to_one_layer():
    score = AdditiveScore(3)
    SoftAttention(score)(QUERY, VALUE)
    for layer in (SoftAttention(score), MultiHeadAttention(2, 4, score=score)):
        with pytest.raises(ValueError, match="A score, alignment or position scheme belongs to one attention layer"):
            layer(QUERY, VALUE)


@pytest.mark.parametrize(
    ("cache", "message"),
    [
        (lambda layer: layer.empty_cache(B, 5)["key"], 'must be a dictionary of "key" and "value"'),
        (lambda layer: {"key": ops.zeros((B, 2, 5, 4))}, r"Received: \['key'\]"),
        (lambda layer: MultiHeadAttention(2, 3).empty_cache(B, 5), r"\(B, 2, slots, 4\).* shape \(2, 2, 5, 3\)"),
    ],
)
def test_what_is_no_cache_of_this_layer_is_refused(cache, message):
    layer = MultiHeadAttention(2, 4)
    with pytest.raises(ValueError, match=message):
        layer(QUERY, QUERY, cache=cache(layer), cache_index=0)
