import math
import re

import keras
import numpy as np
import pytest
from contract import calls
from keras import ops
from reference.arrays import normal, to_numpy
from tolerances import EXACT, FLOAT32

from keras_attention.layers import TokenEmbedding

B, T, D, V = 2, 3, 7, 11

IDS = np.array([[4, 2, 0], [10, 0, 0]], "int32")

IN_GRAPHS = pytest.mark.skipif(keras.backend.backend() == "torch", reason="on torch values are known in every call")


@pytest.fixture
def embedding():
    layer = TokenEmbedding(V, D)
    layer.build((B, T))
    layer.set_weights([normal(V, D)])
    return layer


def test_vectors_are_those_of_the_ids_times_the_root_of_the_width(embedding):
    np.testing.assert_allclose(to_numpy(embedding(IDS)), normal(V, D)[IDS] * math.sqrt(7), atol=FLOAT32)


def test_logits_are_the_dot_products_with_every_vector(embedding):
    inputs = normal(B, T, D, seed=1)
    expected = np.zeros((B, T, V))
    for b, t, v in np.ndindex(B, T, V):
        expected[b, t, v] = sum(inputs[b, t, d] * normal(V, D)[v, d] for d in range(D))
    np.testing.assert_allclose(to_numpy(embedding(inputs, reverse=True)), expected, atol=FLOAT32)


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
    np.testing.assert_allclose(to_numpy(embedding(ops.cast(IDS, dtype))), to_numpy(embedding(IDS)), atol=EXACT)


@pytest.mark.parametrize("shape", [(), (B,), (B, T), (B, 5, T), (0, T), (B, 0)])
def test_ids_may_have_any_rank(shape, embedding):
    assert embedding(np.zeros(shape, "int32")).shape == (*shape, D)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_floats_that_hold_whole_ids_are_read(dtype, embedding):
    floats = ops.cast(IDS, dtype)
    np.testing.assert_allclose(to_numpy(embedding(floats)), to_numpy(embedding(IDS)), atol=EXACT)
    np.testing.assert_array_equal(to_numpy(embedding(floats)._keras_mask), IDS != 0)


@pytest.mark.parametrize(
    ("ids", "received"),
    [
        ([[4, -1]], "-1 among int32 ids of shape (1, 2)"),
        ([[11, 2]], "11 among int32 ids of shape (1, 2)"),
        ([[4.0, 2.5]], "2.5 among float32 ids of shape (1, 2)"),
        ([[float("nan"), 2.0]], "nan among float32 ids of shape (1, 2)"),
    ],
)
def test_known_ids_outside_the_vocabulary_are_an_error(ids, received, embedding):
    with pytest.raises(ValueError, match=re.escape("`inputs` must be whole numbers in [0, 11)")) as error:
        embedding(ops.convert_to_tensor(ids))
    assert received in str(error.value)


@IN_GRAPHS
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_ids_outside_the_vocabulary_get_nan_inside_a_graph(dtype, embedding):
    model = keras.Model(inputs := keras.Input((None,), dtype=dtype), embedding(inputs))
    ids = np.array([[4, -1, 2], [11, 10, 0]], dtype)
    vectors = model.predict(ids, verbose=0)
    is_bad = np.array([[False, True, False], [True, False, False]])
    np.testing.assert_array_equal(np.isnan(vectors), np.broadcast_to(is_bad[..., None], vectors.shape))
    np.testing.assert_allclose(vectors[~is_bad], normal(V, D)[ids[~is_bad].astype(int)] * math.sqrt(7), atol=FLOAT32)


@IN_GRAPHS
def test_a_fraction_gets_nan_inside_a_graph(embedding):
    model = keras.Model(inputs := keras.Input((None,)), embedding(inputs))
    vectors = model.predict(np.array([[2.5, 2.0]]), verbose=0)
    np.testing.assert_array_equal(np.isnan(vectors[0]).all(axis=-1), [True, False])


def test_the_gradient_reaches_the_vectors_of_the_ids_only(embedding):
    of_table = calls.gradients(embedding, {"inputs": IDS}, 1.0)[1][0]
    expected = np.zeros((V, D))
    for index in IDS.flatten():
        expected[index] += math.sqrt(7)
    np.testing.assert_allclose(of_table, expected, atol=FLOAT32)


def test_a_sequential_reads_ids_as_it_does_with_keras_embedding(embedding):
    sequential = keras.Sequential([embedding])
    np.testing.assert_allclose(to_numpy(sequential(IDS)), normal(V, D)[IDS] * math.sqrt(7), atol=FLOAT32)
    np.testing.assert_allclose(sequential.predict(IDS, verbose=0), normal(V, D)[IDS] * math.sqrt(7), atol=FLOAT32)


def test_an_input_of_floats_that_cannot_tell_the_ids_apart_is_refused():
    message = r"`inputs` must be able to hold 300 ids\. Received dtype bfloat16, which tells apart the first 256"
    with pytest.raises(TypeError, match=message):
        TokenEmbedding(300, D)(keras.Input((None,), dtype="bfloat16"))


def test_a_sequential_in_half_precision_does_not_read_the_vectors_of_other_ids():
    with pytest.raises(TypeError, match="tells apart the first 256"):
        keras.Sequential([TokenEmbedding(300, D, dtype="mixed_bfloat16")])(np.array([[257]]))


def test_the_scale_can_be_left_out():
    layer = TokenEmbedding(V, D, use_scale=False)
    layer.build((B, T))
    layer.set_weights([normal(V, D)])
    np.testing.assert_allclose(to_numpy(layer(IDS)), normal(V, D)[IDS], atol=EXACT)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0, D), ValueError, r"`vocabulary_size` must be a positive integer. Received: 0\."),
        ((V, 2.5), ValueError, r"`embedding_dim` must be a positive integer. Received: 2.5 of type float\."),
        ((V, D, None, 1), ValueError, r"`use_scale` must be `True` or `False`\. Received: 1 of type int\."),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        TokenEmbedding(*arguments)
