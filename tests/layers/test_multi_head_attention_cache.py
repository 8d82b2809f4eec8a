"""The cache of `MultiHeadAttention`: decoding step by step equals decoding at once."""

import keras
import numpy as np
import pytest
from keras import ops
from reference.arrays import normal, to_numpy
from tolerances import EXACT, FLOAT32

from keras_attention.layers import MultiHeadAttention

B, T, S, D, D_MEMORY, N, H, E, SLOTS = 2, 7, 5, 11, 13, 3, 4, 6, 17


def built(memory_width=D, **arguments):
    layer = MultiHeadAttention(N, H, value_dim=E, **arguments)
    layer.build((B, None, D), (B, None, memory_width))
    layer.set_weights([normal(*weight.shape, seed=index) / 2 for index, weight in enumerate(layer.weights)])
    return layer


@pytest.fixture
def inputs():
    return normal(B, T, D)


def decode(layer, inputs, chunks, slots=SLOTS, as_tensor=False, **masks):
    """Outputs and weights of self-attention over `inputs`, fed in chunks of the given lengths."""
    cache, start, steps = layer.empty_cache(B, slots), 0, []
    for length in chunks:
        now = inputs[:, start : start + length]
        index = ops.convert_to_tensor(start, "int32") if as_tensor else start
        output, weights, cache = layer(
            now, now, cache=cache, cache_index=index, use_causal_mask=True, return_attention_scores=True, **masks
        )
        steps.append((to_numpy(output), to_numpy(weights)))
        start += length
    return tuple(np.concatenate(parts, axis=axis) for parts, axis in zip(zip(*steps, strict=True), (1, 2), strict=True))


# === Empty, written, read ===


def test_an_empty_cache_is_zeros_in_the_compute_type():
    layer = MultiHeadAttention(N, H, value_dim=E, dtype="mixed_float16")
    cache = layer.empty_cache(B, SLOTS)
    assert {name: slots.shape for name, slots in cache.items()} == {"key": (B, N, SLOTS, H), "value": (B, N, SLOTS, E)}
    assert all(keras.backend.standardize_dtype(slots.dtype) == "float16" for slots in cache.values())
    assert not any(to_numpy(slots).any() for slots in cache.values())


def test_keys_and_values_are_written_from_the_index_on(inputs):
    layer = built()
    _, cache = layer(inputs[:, :3], inputs[:, :3], cache=layer.empty_cache(B, SLOTS), cache_index=5)
    memory = to_numpy(layer.project(inputs[:, :3]))
    for name, slots in to_numpy(cache).items():
        np.testing.assert_allclose(slots[:, :, 5:8], memory[name], atol=FLOAT32)
        assert not np.delete(slots, [5, 6, 7], axis=2).any()


def test_a_call_leaves_the_given_cache_alone(inputs):
    layer = built()
    cache = layer.empty_cache(B, SLOTS)
    layer(inputs, inputs, cache=cache, cache_index=0)
    assert not any(to_numpy(slots).any() for slots in cache.values())


# === Step by step equals at once ===


@pytest.mark.parametrize("chunks", [[1] * T, [3, 1, 3], [T]], ids=str)
@pytest.mark.parametrize("arguments", [{}, {"sliding_window": 3}, {"use_gate": True}, {"score": "additive"}], ids=str)
def test_decoding_in_chunks_equals_the_causal_call(chunks, arguments, inputs):
    layer = built(**arguments)
    expected = to_numpy(layer(inputs, inputs, use_causal_mask=True, return_attention_scores=True))
    output, weights = decode(layer, inputs, chunks)
    np.testing.assert_allclose(output, expected[0], rtol=FLOAT32, atol=FLOAT32)
    np.testing.assert_allclose(weights[..., :T], expected[1], atol=FLOAT32)
    assert not weights[..., T:].any()


def test_the_index_may_be_a_tensor(inputs):
    layer = built()
    expected = decode(layer, inputs, [1] * T)
    np.testing.assert_allclose(decode(layer, inputs, [1] * T, as_tensor=True)[0], expected[0], atol=EXACT)


def test_a_cache_of_exactly_the_length_is_enough(inputs):
    layer = built()
    expected = to_numpy(layer(inputs, inputs, use_causal_mask=True))
    output, weights = decode(layer, inputs, [3, 3, 1], slots=T)
    assert weights.shape == (B, N, T, T)
    np.testing.assert_allclose(output, expected, rtol=FLOAT32, atol=FLOAT32)


@pytest.mark.parametrize("arguments", [{}, {"sliding_window": 2}], ids=str)
def test_a_mask_speaks_of_the_slots(arguments, inputs):
    layer = built(**arguments)
    mask = np.ones((B, SLOTS), bool)
    mask[0, :3] = mask[1, [2, 4]] = False
    expected = layer(inputs, inputs, value_mask=mask[:, :T], use_causal_mask=True)
    output, _ = decode(layer, inputs, [1, 3, 3], value_mask=mask)
    np.testing.assert_allclose(output, expected, rtol=FLOAT32, atol=FLOAT32)


def test_a_window_goes_by_the_real_slots_that_are_filled(inputs):
    layer = built(sliding_window=2)
    mask = np.ones((B, SLOTS), bool)
    mask[:, [0, 2, 3]] = False
    real = [1, 4, 5, 6]
    expected = layer(inputs[:, real], inputs[:, real], use_causal_mask=True)
    output, _ = decode(layer, inputs, [1] * T, value_mask=mask)
    np.testing.assert_allclose(output[:, real], expected, rtol=FLOAT32, atol=FLOAT32)


def test_without_a_causal_mask_a_chunk_sees_all_slots_that_are_filled(inputs):
    layer = built()
    _, cache = layer(inputs[:, :3], inputs[:, :3], cache=layer.empty_cache(B, SLOTS), cache_index=0)
    output, weights, _ = layer(inputs[:, 3:], inputs[:, 3:], cache=cache, cache_index=3, return_attention_scores=True)
    expected = layer(inputs[:, 3:], inputs)
    np.testing.assert_allclose(output, expected, rtol=FLOAT32, atol=FLOAT32)
    assert not to_numpy(weights)[..., T:].any()


def test_later_slots_stay_out_of_sight_whatever_they_hold(inputs):
    layer = built()
    cache = {name: slots + 1e6 for name, slots in layer.empty_cache(B, SLOTS).items()}
    output, _ = layer(inputs, inputs, cache=cache, cache_index=0, use_causal_mask=True)
    np.testing.assert_allclose(output, layer(inputs, inputs, use_causal_mask=True), rtol=FLOAT32, atol=FLOAT32)


@pytest.mark.parametrize("garbage", [np.nan, np.inf])
def test_masked_slots_have_no_influence_whatever_they_hold(garbage, inputs):
    layer = built()
    mask = np.ones((B, SLOTS), bool)
    mask[:, 0] = False
    expected = decode(layer, inputs, [T], value_mask=mask)[0]
    inputs[:, 0] = garbage
    output = decode(layer, inputs, [T], value_mask=mask)[0]
    np.testing.assert_allclose(output[:, 1:], expected[:, 1:], atol=FLOAT32)


# === A memory that does not change ===


@pytest.mark.parametrize("arguments", [{}, {"score": "bilinear"}], ids=str)
def test_reading_a_projected_memory_equals_cross_attention(arguments, inputs):
    memory, mask = normal(B, S, D_MEMORY), np.array([[True, True, False, True, False], [True] * S])
    layer = built(D_MEMORY, **arguments)
    expected = to_numpy(layer(inputs, memory, value_mask=mask, return_attention_scores=True))
    cache = layer.project(memory, value_mask=mask)
    for t in range(T):
        now = inputs[:, t : t + 1]
        output, weights, same_cache = layer(now, now, cache=cache, value_mask=mask, return_attention_scores=True)
        np.testing.assert_allclose(output, expected[0][:, t : t + 1], rtol=FLOAT32, atol=FLOAT32)
        np.testing.assert_allclose(weights, expected[1][:, :, t : t + 1], atol=FLOAT32)
        for name in cache:
            np.testing.assert_array_equal(to_numpy(same_cache[name]), to_numpy(cache[name]))


def test_a_memory_may_have_keys_of_its_own(inputs):
    value, key = normal(B, S, D_MEMORY), normal(B, S, 8, seed=1)
    layer = MultiHeadAttention(N, H)
    expected = layer(inputs, value, key)
    output, _ = layer(inputs, inputs, cache=layer.project(value, key))
    np.testing.assert_allclose(output, expected, rtol=FLOAT32, atol=FLOAT32)


def test_masked_positions_of_a_memory_have_no_influence_whatever_they_hold(inputs):
    memory, mask = normal(B, S, D_MEMORY), np.array([[True, True, True, True, False]] * B)
    layer = built(D_MEMORY)
    expected = layer(inputs, memory[:, :4])
    memory[:, 4] = np.nan
    output, _ = layer(inputs, inputs, cache=layer.project(memory, value_mask=mask), value_mask=mask)
    np.testing.assert_allclose(output, expected, rtol=FLOAT32, atol=FLOAT32)


# === Symbolic ===


@pytest.mark.parametrize("length", [3, None])
def test_symbolic_shapes_with_a_cache(length):
    layer = MultiHeadAttention(N, H, value_dim=E)
    query = keras.Input((length, D))
    cache = {"key": keras.Input((N, SLOTS, H)), "value": keras.Input((N, SLOTS, E))}
    index = keras.Input((), dtype="int32")
    output, weights, updated = layer(query, query, cache=cache, cache_index=index, return_attention_scores=True)
    assert output.shape == (None, length, D)
    assert weights.shape == (None, N, length, SLOTS)
    assert {name: slots.shape for name, slots in updated.items()} == {
        "key": (None, N, SLOTS, H),
        "value": (None, N, SLOTS, E),
    }


# === Errors ===


def test_a_cache_needs_inputs_of_rank_three():
    layer = MultiHeadAttention(N, H, attention_axes=2)
    inputs = normal(B, S, T, D)
    with pytest.raises(ValueError, match=r"A cache needs inputs of shape \(B, T, D\).* \(2, 5, 7, 11\) .* axes \(2,\)"):
        layer(inputs, inputs, cache=layer.empty_cache(B, SLOTS), cache_index=0)


def test_a_mask_of_the_new_positions_is_one_of_their_slots(inputs):
    layer = built()
    mask = np.ones((B, T), bool)
    mask[0, 2:] = False
    slots = np.ones((B, SLOTS), bool)
    slots[:, 3 : 3 + T] = mask
    cache = {
        name: ops.convert_to_tensor(normal(*tensor.shape, seed=1))
        for name, tensor in layer.empty_cache(B, SLOTS).items()
    }
    outputs = [layer(inputs, inputs, cache=cache, cache_index=3, value_mask=each)[0] for each in (mask, slots)]
    np.testing.assert_array_equal(to_numpy(outputs[0]), to_numpy(outputs[1]))


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="only TensorFlow's graphs have unknown lengths")
@pytest.mark.parametrize("jit_compile", [False, True], ids=["graph", "xla"])
def test_whose_mask_it_is_may_be_known_only_while_a_graph_runs(jit_compile, inputs):
    import tensorflow as tf

    layer = built()

    @tf.function(
        jit_compile=jit_compile,
        input_signature=[
            tf.TensorSpec((None, None, D)),
            {"key": tf.TensorSpec((None, None, None, H)), "value": tf.TensorSpec((None, None, None, E))},
            tf.TensorSpec((None, None), tf.bool),
        ],
    )
    def call(inputs, cache, mask):
        return layer(inputs, inputs, cache=cache, cache_index=3, value_mask=mask)[0]

    cache = {name: normal(*tensor.shape, seed=1) for name, tensor in layer.empty_cache(B, SLOTS).items()}
    for length in (T, SLOTS):
        mask = normal(B, length) > -0.5
        expected = layer(inputs, inputs, cache=cache, cache_index=3, value_mask=mask)[0]
        np.testing.assert_allclose(call(inputs, cache, mask), expected, rtol=FLOAT32, atol=FLOAT32)


def test_a_mask_of_neither_the_slots_nor_the_new_positions_is_an_error(inputs):
    layer = built()
    message = r"`value_mask` must have one entry for each of the 17 slots .* the 7 new positions .*\(2, 5\)"
    with pytest.raises(ValueError, match=message):
        layer(inputs, inputs, cache=layer.empty_cache(B, SLOTS), cache_index=0, value_mask=np.ones((B, 5), bool))


@pytest.mark.parametrize("cache_index", [SLOTS - T + 1, SLOTS, -1])
def test_writing_past_the_end_of_the_cache_is_an_error(cache_index, inputs):
    layer = built()
    with pytest.raises(
        ValueError, match=rf"slots of the cache, 0 to 16. Received 7 of them for cache_index={cache_index}"
    ):
        layer(inputs, inputs, cache=layer.empty_cache(B, SLOTS), cache_index=cache_index)


def test_an_alignment_that_goes_on_needs_its_state_in_the_cache(inputs):
    attention = MultiHeadAttention(2, 3, alignment="monotonic")
    attention.build(inputs.shape, inputs.shape)
    cache = {name: slots for name, slots in attention.empty_cache(len(inputs), 7).items() if name != "alignment"}
    with pytest.raises(ValueError, match=r"Monotonic goes on from query to query.*Make it with `empty_cache`"):
        attention(inputs[:, :1], inputs[:, :1], cache=cache, cache_index=0)


def test_an_index_without_a_cache_is_an_error(inputs):
    with pytest.raises(ValueError, match=r"`cache_index` .*`cache`"):
        built()(inputs, inputs, cache_index=0)


@pytest.mark.parametrize("cache_shape", [(3, SLOTS), (1, SLOTS)])
def test_a_cache_of_another_batch_is_an_error(cache_shape, inputs):
    layer = built()
    with pytest.raises(ValueError, match=r"`cache` .*Received"):
        layer(inputs, inputs, cache=layer.empty_cache(*cache_shape), cache_index=0)


def test_projecting_needs_a_layer_that_is_built(inputs):
    with pytest.raises(ValueError, match=r"built"):
        MultiHeadAttention(N, H).project(inputs)
