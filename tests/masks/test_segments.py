import keras
import numpy as np
import pytest
from reference import masks as reference
from reference.arrays import to_numpy

from keras_attention.masks import Causal, Segments

QUERIES, KEYS = np.array([[1, 2, 0], [2, 2, 4]]), np.array([[1, 1, 2, 2, 0], [1, 2, 2, 3, 3]])


@pytest.mark.parametrize(("queries", "keys"), [(QUERIES, KEYS), (KEYS, QUERIES)])
def test_queries_and_keys_may_have_segments_of_their_own(queries, keys):
    T, S = queries.shape[1], keys.shape[1]
    first = max(S - T, 0)
    expected = reference.by_loops(lambda b, t, s: queries[b, t - first] == keys[b, s] != 0, T, S)
    mask = Segments(queries, keys)
    np.testing.assert_array_equal(to_numpy(mask.mask(T, S)), expected)
    np.testing.assert_array_equal(to_numpy(mask.empty_blocks(T, S, block_size=1)), ~expected)
    assert repr(mask) == f"Segments(shape=(2, {T}), key_shape=(2, {S}))"


def test_padding_attends_to_nothing_and_is_not_attended():
    mask = to_numpy((Causal() & Segments([[0, 7, 7, 0]])).mask(4))[0]
    assert not mask[[0, 3]].any() and not mask[:, [0, 3]].any()
    assert mask[1:3, 1:3].tolist() == [[True, False], [True, True]]


@pytest.mark.parametrize(
    ("mask", "lengths", "message"),
    [
        (Segments(KEYS), (5, 3), r"`key_length` must be .*, 5\. Received key_length=3 for Segments\(shape=\(2, 5\)\)"),
        (Segments(KEYS), (7, 5), r"`query_length` must be .*, 5\. Received query_length=7"),
        (Segments(QUERIES, KEYS), (2, 5), r"`query_length` must be .*, 3\. Received query_length=2"),
        (~(Causal() & Segments(KEYS)), (7,), r"`key_length` must be .*, 5\. Received key_length=7"),
    ],
)
def test_segments_must_match_the_lengths(mask, lengths, message):
    for method in (mask.mask, mask.empty_blocks):
        with pytest.raises(ValueError, match=message):
            method(*lengths)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([1, 2],), ValueError, r"`segment_ids` must have 2 axes, `\(B, T\)`\. Received shape \(2,\)"),
        (
            ([[1, 2]], [[[1]]]),
            ValueError,
            r"`key_segment_ids` must have 2 axes, `\(B, S\)`\. Received shape \(1, 1, 1\)",
        ),
        (([[1.0]],), TypeError, r"`segment_ids` must be integers\. Received dtype float32"),
        (([[1]], [[True]]), TypeError, r"`key_segment_ids` must be integers\. Received dtype bool"),
        ((KEYS, KEYS[[0, 1, 0]]), ValueError, r"must have as many rows\. Received shapes \(2, 5\) and \(3, 5\)"),
    ],
)
def test_segments_are_integers_of_one_batch(arguments, error, message):
    with pytest.raises(error, match=message):
        Segments(*arguments)


def test_a_placeholder_of_floats_by_which_keras_infers_shapes_is_no_mistake():
    class Packed(keras.layers.Layer):
        def call(self, segment_ids):
            return Segments(segment_ids).mask(5)

    assert Packed()(keras.Input((5,))).shape == (None, 5, 5)
