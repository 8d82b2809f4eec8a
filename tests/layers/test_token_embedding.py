import math

import keras
import numpy as np
import pytest
from keras import ops
from reference.arrays import normal, to_numpy
from tolerances import EXACT, FLOAT32

from keras_attention.layers import TokenEmbedding

B, T, D, V = 2, 3, 7, 11

IDS = np.array([[4, 2, 0], [10, 0, 0]], "int32")


@pytest.fixture
def embedding():
    layer = TokenEmbedding(V, D)
    layer.build((B, T))
    layer.set_weights([normal(V, D)])
    return layer


def test_vectors_are_those_of_the_ids_times_the_root_of_the_width(embedding):
    np.testing.assert_allclose(embedding(IDS), normal(V, D)[IDS] * math.sqrt(7), atol=FLOAT32)


def test_logits_are_the_dot_products_with_every_vector(embedding):
    inputs = normal(B, T, D, seed=1)
    expected = np.zeros((B, T, V))
    for b, t, v in np.ndindex(B, T, V):
        expected[b, t, v] = sum(inputs[b, t, d] * normal(V, D)[v, d] for d in range(D))
    np.testing.assert_allclose(embedding(inputs, reverse=True), expected, atol=FLOAT32)


def test_vectors_start_with_variance_one():
    vectors = to_numpy(TokenEmbedding(500, 200)(np.arange(500)))
    assert abs(vectors.std() - 1) < 5 / math.sqrt(2 * vectors.size)


def test_padding_is_masked_and_the_mask_travels_in_both_directions(embedding):
    vectors = embedding(IDS)
    np.testing.assert_array_equal(to_numpy(vectors._keras_mask), IDS != 0)
    logits = embedding(vectors, reverse=True)
    np.testing.assert_array_equal(to_numpy(logits._keras_mask), IDS != 0)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_logits_are_float32_and_vectors_of_the_compute_type(policy):
    layer = TokenEmbedding(V, D, dtype=policy)
    vectors = layer(IDS)
    assert keras.backend.standardize_dtype(vectors.dtype) == keras.DTypePolicy(policy).compute_dtype
    assert keras.backend.standardize_dtype(layer(vectors, reverse=True).dtype) == "float32"


def test_symbolic_shapes(embedding):
    vectors = embedding(keras.Input((None,), dtype="int32"))
    assert (vectors.shape, vectors.dtype) == ((None, None, D), "float32")
    logits = embedding(vectors, reverse=True)
    assert (logits.shape, logits.dtype) == ((None, None, V), "float32")


def test_one_table_serves_both_directions(embedding):
    assert [weight.shape for weight in embedding.weights] == [(V, D)]


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int8"])
def test_ids_of_any_integer_type_are_read(dtype, embedding):
    np.testing.assert_allclose(embedding(ops.cast(IDS, dtype)), embedding(IDS), atol=EXACT)


@pytest.mark.parametrize("shape", [(), (B,), (B, T), (B, 5, T), (0, T), (B, 0)])
def test_ids_may_have_any_rank(shape, embedding):
    assert embedding(np.zeros(shape, "int32")).shape == (*shape, D)


def test_float_ids_are_rejected(embedding):
    message = r'Token ids must be integers. Received dtype .*float32.* and shape \(2, 3\)\. .* dtype="int32"'
    with pytest.raises(TypeError, match=message):
        embedding(IDS.astype("float32"))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0, D), ValueError, r"`vocabulary_size` must be a positive integer. Received: 0\."),
        ((V, 2.5), TypeError, r"`embedding_dim` must be a positive integer. Received: 2.5 of type float\."),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        TokenEmbedding(*arguments)
