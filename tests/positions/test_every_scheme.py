"""Every scheme against its formula, wherever query and key stand, and in every way to run it."""

import functools

import keras
import numpy as np
import pytest
from contract.calls import gradients
from reference.arrays import normal, to_numpy
from reference.schemes import SCHEMES, SLOTS, B, D, H, N, T
from tolerances import EXACT, FLOAT32, HALF

from keras_attention.layers import MultiHeadAttention, SoftAttention

BACKEND = keras.backend.backend()

each_scheme = pytest.mark.parametrize("scheme", SCHEMES)


@functools.cache
def built(scheme, **options):
    """An attention with this scheme and weights of its own; made once for all tests, which must not change it."""
    layer = MultiHeadAttention(N, H, position=SCHEMES[scheme].make(), **options)
    layer.build((B, None, D), (B, None, D))
    layer.set_weights([normal(*weight.shape, seed=seed) / 3 for seed, weight in enumerate(layer.weights)])
    return layer


def read(layer, query, value, query_positions, key_positions, **options):
    """Output and weights at positions by hand, or counted ones where they are `None`."""
    memory = layer.prepare(value, positions=key_positions)
    return layer.read(query, memory, query_positions=query_positions, return_attention_scores=True, **options)


def results(layer, *arrays, function=read, **options):
    """Eager: on JAX too, as all tests have the same operations on the same shapes, of which each is compiled once."""
    tensors = [array if array is None else keras.ops.convert_to_tensor(array) for array in arrays]
    return to_numpy(function(layer, *tensors, **options))


# === The formula ===


def heads(dense, inputs):
    return np.einsum("btd,dnh->bnth", inputs, to_numpy(dense.kernel)) + to_numpy(dense.bias)[:, None]


def softmax(scores):
    """Zeros where all scores are -inf."""
    exponentials = np.exp(scores - np.maximum(scores.max(axis=-1, keepdims=True), -100.0))
    return exponentials / np.maximum(exponentials.sum(axis=-1, keepdims=True), 1e-30)


def attend_by_the_formula(scheme, query, value, query_positions, key_positions):
    """Output `(B, T, D)` and weights `(B, N, T, S)`, pair by pair."""
    layer, entry = built(scheme), SCHEMES[scheme]
    query, key, value = (
        heads(dense, inputs)
        for dense, inputs in ((layer.query_dense, query), (layer.key_dense, value), (layer.value_dense, value))
    )
    own = [to_numpy(weight) for weight in layer.position.weights]
    scores = np.empty((*query.shape[:3], key.shape[2]))
    read = np.empty((*scores.shape, value.shape[-1]))  # (B, N, T, S, E)
    for b, n, t, s in np.ndindex(scores.shape):
        p, r = (int(each[b % len(each), place]) for each, place in ((query_positions, t), (key_positions, s)))
        scores[b, n, t, s] = entry.score(query[b, n, t], key[b, n, s], p, r, n, own) / np.sqrt(H)
        read[b, n, t, s] = value[b, n, s] + entry.value(p, r, own)
    weights = softmax(scores)
    context = np.einsum("bnts,bntse->bnte", weights, read)
    dense = layer.output_dense
    return np.einsum("bnte,ned->btd", context, to_numpy(dense.kernel)) + to_numpy(dense.bias), weights


BY_HAND = np.array([[3, 1, 9, 0, 2, 5, 4], [8, 6, 7, 30, 31, 5, 9]], "int32")
COUNTED = np.arange(T)[None]
PLACES = {
    "the same": (slice(None), None, None, COUNTED, COUNTED),
    "the last queries": (slice(4, None), None, None, COUNTED[:, 4:], COUNTED),
    "by hand": (slice(None), BY_HAND[:, ::-1], BY_HAND, BY_HAND[:, ::-1], BY_HAND),
    "one row by hand": (slice(None), BY_HAND[:1], BY_HAND[1:], BY_HAND[:1], BY_HAND[1:]),
}


@each_scheme
@pytest.mark.parametrize("place", PLACES)
def test_output_and_weights_equal_the_formula(scheme, place):
    queries, *given, query_positions, key_positions = PLACES[place]
    inputs, value = normal(B, T, D)[:, queries], normal(B, T, D, seed=1)
    expected = attend_by_the_formula(scheme, inputs, value, query_positions, key_positions)
    for result, reference in zip(results(built(scheme), inputs, value, *given), expected, strict=True):
        np.testing.assert_allclose(result, reference, atol=FLOAT32)


@each_scheme
def test_a_shift_of_all_positions_changes_nothing(scheme):
    inputs = normal(B, T, D)
    expected = results(built(scheme), inputs, inputs, BY_HAND, BY_HAND)
    shifted = results(built(scheme), inputs, inputs, BY_HAND + 4096, BY_HAND + 4096)
    for output, reference in zip(shifted, expected, strict=True):
        np.testing.assert_allclose(output, reference, atol=2e-3)  # angles of thousands in float32


@each_scheme
def test_equal_tokens_have_scores_that_depend_on_the_distance_alone(scheme):
    inputs = np.repeat(normal(B, 1, D), T, axis=1)
    _, weights = results(built(scheme, alignment="sigmoid"), inputs, inputs, None, None)
    np.testing.assert_allclose(weights[..., 1:, 1:], weights[..., :-1, :-1], atol=FLOAT32)


@each_scheme
def test_one_head_is_a_head_of_several(scheme):
    single, several = (kind(position=SCHEMES[scheme].make()) for kind in (SoftAttention, one_head_without_projections))
    inputs, value = normal(B, T, H), normal(B, T, H, seed=1)
    for layer in (single, several):
        layer.build((B, None, H), (B, None, H))
        layer.position.set_weights([normal(*weight.shape) / 3 for weight in layer.position.weights])
    for dense in (several.query_dense, several.key_dense, several.value_dense, several.output_dense):
        dense.kernel.assign(np.eye(H).reshape(dense.kernel.shape))
    context, weights = results(single, inputs, value, BY_HAND, BY_HAND)
    expected, weights_of_heads = results(several, inputs, value, BY_HAND, BY_HAND)
    np.testing.assert_allclose(context, expected, atol=FLOAT32)
    np.testing.assert_allclose(weights, weights_of_heads[:, 0], atol=FLOAT32)


def one_head_without_projections(position):
    return MultiHeadAttention(1, H, use_bias=False, position=position)


# === Padding, cache, precision ===


def masked(layer, inputs, mask, **options):
    return layer(inputs, inputs, query_mask=mask, value_mask=mask, return_attention_scores=True, **options)


@each_scheme
def test_padding_anywhere_moves_no_position(scheme):
    inputs, mask = normal(B, T, D), np.array([[False, False, True, True, False, True, True], [True] * 5 + [False] * 2])
    real = np.nonzero(mask[0])[0]
    alone = results(built(scheme), inputs[:1, real], inputs[:1, real], None, None)
    padded = np.where(mask[..., None], inputs, np.nan).astype("float32")
    output, weights = results(built(scheme), padded, mask, function=masked)
    np.testing.assert_allclose(output[0, real], alone[0][0], atol=FLOAT32)
    np.testing.assert_allclose(weights[0][:, real[:, None], real], alone[1][0], atol=FLOAT32)


@each_scheme
@pytest.mark.parametrize("sizes", [(0, T, T), (B, 0, T), (B, T, 0)], ids=["rows", "queries", "keys"])
def test_nothing_gives_nothing(scheme, sizes):
    rows, queries, keys = sizes
    inputs, value = (np.ones((rows, length, D), "float32") for length in (queries, keys))
    output, weights = results(built(scheme), inputs, value, None, None)
    assert output.shape == (rows, queries, D)
    assert weights.shape == (rows, N, queries, keys)
    assert np.isfinite(output).all()


def decode(layer, inputs):
    """The outputs of self-attention over `inputs`, all but the last fed at once."""
    cache, outputs = layer.empty_cache(B, SLOTS), []
    for start, end in ((0, T - 1), (T - 1, T)):
        now = inputs[:, start:end]
        output, cache = layer(now, now, cache=cache, cache_index=start, use_causal_mask=True)
        outputs.append(output)
    return keras.ops.concatenate(outputs, axis=1)


def causal(layer, inputs):
    return layer(inputs, inputs, use_causal_mask=True)


@each_scheme
@pytest.mark.parametrize(
    "alignment", ["softmax", "sparsemax", "entmax", "sigmoid", "linear_chain", "monotonic", "sampled"]
)
@pytest.mark.parametrize("window", [None, 3])
def test_decoding_with_a_cache_equals_the_causal_call(scheme, alignment, window):
    layer, inputs = built(scheme, alignment=alignment, sliding_window=window), normal(B, T, D)
    expected = results(layer, inputs, function=causal)
    np.testing.assert_allclose(results(layer, inputs, function=decode), expected, atol=FLOAT32)


# The user's `Turned` has its angles in the type of the query.
@pytest.mark.parametrize("scheme", [scheme for scheme in SCHEMES if scheme != "turned"])
@pytest.mark.parametrize("dtype", HALF)
def test_half_precision_far_from_the_start_is_close_to_float32(scheme, dtype):
    layer, inputs = built(scheme, dtype=dtype), normal(B, T, D)
    output, weights = results(layer, inputs, inputs, BY_HAND + 5003, BY_HAND + 5003)
    assert output.dtype.name == weights.dtype.name == layer.compute_dtype
    assert {weight.dtype for weight in layer.weights} == {"float32"}
    expected = results(built(scheme), inputs, inputs, BY_HAND + 5003, BY_HAND + 5003)
    for half, reference in zip((output, weights), expected, strict=True):
        np.testing.assert_allclose(half.astype("float32"), reference, atol=HALF[dtype], rtol=HALF[dtype])


@each_scheme
@pytest.mark.parametrize("score", ["additive", "bilinear", "concat", "dot"])
def test_every_score_goes_with_every_scheme_and_looks_at_no_padding(scheme, score):
    layer, mask = built(scheme, score=score), np.array([[True] * 5 + [False] * 2, [False] * 3 + [True] * 4])
    inputs = np.where(mask[..., None], normal(B, T, D), np.nan).astype("float32")
    output, weights = results(layer, inputs, mask, function=masked)
    assert np.isfinite(output).all()
    np.testing.assert_allclose(weights.sum(axis=-1), np.broadcast_to(mask[:, None], (B, N, T)), atol=FLOAT32)
    assert not np.where(mask[:, None, None], 0.0, weights).any()


@each_scheme
def test_gradients_are_finite_and_reach_every_weight(scheme):
    layer, inputs = built(scheme), normal(B, T, D)
    arrays = {"query": inputs, "value": normal(B, T, D, seed=1)}
    of_inputs, of_weights = gradients(layer, arrays, normal(B, T, D, seed=2))
    names = [weight.path for weight in layer.trainable_weights]
    for name, gradient in [*of_inputs.items(), *zip(names, of_weights, strict=True)]:
        assert np.isfinite(gradient).all() and gradient.any(), name


# === In a model: all schemes side by side, so that it is compiled and written once ===


@pytest.fixture(scope="module")
def model():
    """Self-attention under each scheme, of rows of any number and length."""
    inputs = keras.Input((None, D))
    attentions = {scheme: MultiHeadAttention(N, H, position=SCHEMES[scheme].make(), name=scheme) for scheme in SCHEMES}
    model = keras.Model(inputs, {scheme: attention(inputs, inputs) for scheme, attention in attentions.items()})
    model.set_weights([normal(*weight.shape, seed=seed) / 3 for seed, weight in enumerate(model.weights)])
    return model


def assert_outputs(outputs, expected, tolerance):
    for scheme, output in outputs.items():
        np.testing.assert_allclose(output, expected[scheme], atol=tolerance, err_msg=scheme)


def test_schemes_come_back_from_a_file_with_their_weights(model, tmp_path):
    model.save(tmp_path / "model.keras")
    loaded, inputs = keras.saving.load_model(tmp_path / "model.keras"), normal(B, T, D)
    assert_outputs(to_numpy(loaded(inputs)), to_numpy(model(inputs)), EXACT)


@pytest.mark.skipif(BACKEND == "torch", reason="it takes minutes there")
def test_schemes_are_compiled_for_lengths_that_are_unknown(model):
    model.compile(jit_compile=True)
    for inputs in (normal(B, T, D), normal(3, 5, D)):
        assert_outputs(model.predict_on_batch(inputs), to_numpy(model(inputs)), FLOAT32)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="a SavedModel is written by TensorFlow")
def test_an_exported_model_serves_schemes_at_any_length(model, tmp_path):
    import tensorflow as tf

    part = keras.Model(model.input, {scheme: model.output[scheme] for scheme in ("rotary", "shaw", "t5")})
    part.export(tmp_path, verbose=False)
    served = tf.saved_model.load(tmp_path)
    for inputs in (normal(B, T, D), normal(3, 5, D), normal(0, 5, D), normal(3, 0, D)):
        assert_outputs(to_numpy(served.serve(inputs)), to_numpy(part(inputs)), FLOAT32)
