"""Relative keys and values: the sums by distance, the switch of the values, the width of the values."""

import keras
import numpy as np
import pytest
from reference.arrays import normal, to_numpy
from tolerances import EXACT, FLOAT32

from keras_attention.layers import MultiHeadAttention, SoftAttention
from keras_attention.positions import ShawRelative
from keras_attention.positions.shaw_relative import sums_by_row

B, N, T, S, H, E = 2, 3, 5, 7, 11, 13


@pytest.mark.parametrize("rows", [1, B])
def test_weights_of_keys_in_one_row_are_summed(rows):
    weights, row = normal(B, N, T, S), np.random.default_rng(5).integers(0, 4, (rows, T, S), dtype="int32")
    expected = np.zeros((B, N, T, 4))
    for b, n, t, s in np.ndindex(weights.shape):
        expected[b, n, t, row[b % rows, t, s]] += weights[b, n, t, s]
    sums = sums_by_row(*map(keras.ops.convert_to_tensor, (weights, row)), 4)
    np.testing.assert_allclose(to_numpy(sums), expected, atol=FLOAT32)


def test_without_vectors_for_values_the_context_reads_the_values_alone():
    layer = SoftAttention(position=ShawRelative(max_distance=2, use_values=False))
    value = normal(B, S, E)
    context, weights = layer(normal(B, T, H), value, normal(B, S, H), return_attention_scores=True)
    assert [weight.name for weight in layer.position.weights] == ["key_embeddings"]
    np.testing.assert_allclose(to_numpy(context), to_numpy(weights) @ value, atol=FLOAT32)


def test_values_may_have_a_width_of_their_own():
    layer = MultiHeadAttention(N, H, value_dim=E, position=ShawRelative(max_distance=2, value_dim=E))
    assert layer(normal(B, T, 17), normal(B, S, 17)).shape == (B, T, 17)
    assert layer.position.value_embeddings.shape == (5, E)


def test_another_width_of_the_values_is_an_error():
    layer = MultiHeadAttention(N, H, value_dim=E, position=ShawRelative())
    message = (
        r"of ShawRelative must have the width of the values, here 13\. Received shape \(2, 3, 5, 11\)\..*value_dim"
    )
    with pytest.raises(ValueError, match=message):
        layer(normal(B, T, 17), normal(B, S, 17))


def test_keys_beyond_the_largest_distance_share_a_vector():
    scheme = ShawRelative(max_distance=2)
    scheme.build((None, N, None, H))
    query, positions = normal(1, N, 1, H), np.array([[0, 8, 9, 10, 11, 12, 30]], "int32")
    scores = to_numpy(scheme.relative_scores(query, np.array([[10]], "int32"), positions))[0, :, 0]
    np.testing.assert_allclose(scores[:, 0], scores[:, 1], atol=EXACT)
    np.testing.assert_allclose(scores[:, 5], scores[:, 6], atol=EXACT)
    assert (np.abs(np.diff(scores[:, 1:6], axis=-1)) > FLOAT32).all()
