"""Products with the sinusoid of a distance, by the angle-addition formulas, against the loop over pairs."""

import keras
import numpy as np
import pytest
from reference.arrays import normal, to_numpy
from reference.position_schemes import sines_and_cosines
from tolerances import FLOAT32

from keras_attention.layers import MultiHeadAttention
from keras_attention.positions import TransformerXLRelative
from keras_attention.positions.transformer_xl_relative import products_with_sinusoids

B, N, T, S, W = 2, 3, 5, 7, 14


@pytest.mark.parametrize("rows", [1, B])
def test_products_equal_the_loop_over_pairs(rows):
    rng = np.random.default_rng(5)
    vectors = normal(B, N, T, W)
    query_positions, key_positions = (rng.integers(0, 50, (rows, length), dtype="int32") for length in (T, S))
    products = products_with_sinusoids(
        *map(keras.ops.convert_to_tensor, (vectors, query_positions, key_positions)), 500.0
    )
    for b, n, t, s in np.ndindex(B, N, T, S):
        distance = int(query_positions[b % rows, t] - key_positions[b % rows, s])
        expected = vectors[b, n, t] @ sines_and_cosines(distance, W, 500.0)
        np.testing.assert_allclose(to_numpy(products)[b, n, t, s], expected, atol=1e-4)  # angles of dozens in float32


@pytest.mark.parametrize(("heads", "options", "width"), [(2, {}, 6), (3, {}, 10), (3, {"sinusoid_dim": 4}, 4)])
def test_the_sinusoid_has_the_width_of_the_heads_together_or_the_given_one(heads, options, width):
    layer = MultiHeadAttention(heads, 3, position=TransformerXLRelative(**options))
    layer.build((B, T, 7), (B, T, 7))
    assert {weight.name: weight.shape for weight in layer.position.weights} == {
        "position_kernel": (width, heads, 3),
        "content_bias": (heads, 3),
        "position_bias": (heads, 3),
    }


def test_without_kernel_and_biases_it_is_the_score_alone():
    zeros = TransformerXLRelative(kernel_initializer="zeros")
    layer, plain = (MultiHeadAttention(2, 3, position=position) for position in (zeros, None))
    inputs = normal(B, T, 7)
    expected = to_numpy(plain(inputs, inputs))
    layer.build((B, T, 7), (B, T, 7))
    layer.set_weights([*layer.position.get_weights(), *plain.get_weights()])
    np.testing.assert_allclose(to_numpy(layer(inputs, inputs)), expected, atol=FLOAT32)


@pytest.mark.parametrize("sinusoid_dim", [0, 5])
def test_an_odd_or_empty_sinusoid_is_an_error(sinusoid_dim):
    with pytest.raises(ValueError, match=rf"`sinusoid_dim` must be a positive even .*Received: {sinusoid_dim}"):
        TransformerXLRelative(sinusoid_dim=sinusoid_dim)
