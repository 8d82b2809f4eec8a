"""`MultiHeadAttention` with fewer heads of key and value than of the query, and with normalized queries and keys.

Keras' layer and NumPy loops say what is right; the memory holds the few heads alone, everything else sees all of them.
"""

import keras
import numpy as np
import pytest
from keras import ops
from reference import attention
from reference.arrays import normal, to_numpy
from reference.gradients import gradient
from tolerances import FLOAT32, HALF

from keras_attention import alignments, positions
from keras_attention.layers import MultiHeadAttention, flow

B, T, S, D, D_VALUE, H, E, N, SLOTS = 3, 5, 11, 17, 13, 4, 6, 14, 19
GROUPED, MULTI_QUERY = 7, 1

WEIGHTED_SCORES = {"bilinear": attention.bilinear, "additive": attention.additive, "concat": attention.concat}


@pytest.fixture
def query():
    return normal(B, T, D, seed=1)


@pytest.fixture
def value():
    return normal(B, S, D_VALUE, seed=2)


def randomize(layer):
    layer.set_weights([normal(*weight.shape, seed=index) / 2 for index, weight in enumerate(layer.weights)])
    return layer


def built(*inputs, **arguments):
    layer = MultiHeadAttention(**{"num_heads": N, "key_dim": H, "num_key_value_heads": GROUPED, **arguments})
    layer.build(*(array.shape for array in inputs))
    return randomize(layer)


def some_mask(*shape):
    """A mask that leaves every query a position."""
    mask = np.random.default_rng(3).random(shape) > 0.4
    mask[..., 0] = True
    return mask


# === Keras' layer ===


def same_as_keras(inputs, options, K, **arguments):
    ours = MultiHeadAttention(N, H, num_key_value_heads=K, **arguments)
    theirs = keras.layers.GroupQueryAttention(H, N, K, **arguments)
    for layer in (ours, theirs):
        layer.build(*(array.shape for array in inputs))
    ours.set_weights(randomize(theirs).get_weights())
    outputs, expected = (to_numpy(layer(*inputs, **options, return_attention_scores=True)) for layer in (ours, theirs))
    for ours, theirs in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=FLOAT32)


@pytest.mark.parametrize("K", [MULTI_QUERY, GROUPED, N])
@pytest.mark.parametrize("arguments", [{}, {"use_gate": True}, {"use_bias": False}], ids=str)
def test_the_numbers_are_those_of_keras(arguments, K, query):
    value, key = normal(B, S, D, seed=2), normal(B, S, D_VALUE, seed=3)
    same_as_keras((query, value, key), {}, K, **arguments)


MASKS = {
    "attention_mask": {"attention_mask": some_mask(B, T, T)},
    "padding": {"value_mask": some_mask(B, T), "key_mask": some_mask(B, T)},
    "causal": {"use_causal_mask": True},
    "all": {"use_causal_mask": True, "attention_mask": some_mask(B, T, T), "value_mask": some_mask(B, T)},
}


@pytest.mark.parametrize("options", MASKS.values(), ids=MASKS)
def test_every_mask_gives_the_numbers_of_keras(options, query):
    same_as_keras((query, query), options, GROUPED)


@pytest.mark.parametrize("use_causal_mask", [False, True])
def test_a_window_gives_the_numbers_of_keras(use_causal_mask, query):
    same_as_keras((query, query), {"use_causal_mask": use_causal_mask}, GROUPED, sliding_window=3)


def test_the_weights_of_keras_have_the_same_names_in_the_same_order(query):
    theirs = keras.layers.GroupQueryAttention(H, N, GROUPED, use_gate=True)
    theirs.build(query.shape, query.shape)
    ours = built(query, query, use_gate=True)
    for mine, other in zip(ours.weights, theirs.weights, strict=True):
        assert mine.path.split("/")[1:] == other.path.split("/")[1:]
        assert mine.shape == other.shape


def test_as_many_heads_as_the_query_has_is_multi_head_attention(query, value):
    grouped, plain = (built(query, value, num_key_value_heads=K) for K in (N, None))
    np.testing.assert_allclose(grouped(query, value), plain(query, value), atol=FLOAT32)


# === The formula ===


def kernels_of_all_heads(layer):
    """The weights of the projections, those of key and value once for each head of the query."""
    denses = (layer.query_dense, layer.key_dense, layer.value_dense, layer.output_dense)
    weights = [weight for dense in denses for weight in dense.get_weights()]
    return [
        np.repeat(weight, layer.group, axis=-2) if 2 <= index < 6 else weight for index, weight in enumerate(weights)
    ]


@pytest.mark.parametrize("K", [MULTI_QUERY, GROUPED])
@pytest.mark.parametrize("score", WEIGHTED_SCORES)
def test_any_score_equals_the_loop_over_all_heads(score, K, query, value):
    layer = built(query, value, score=score, num_key_value_heads=K, value_dim=E)
    mask = some_mask(B, N, T, S)
    mask[0, 1, 2] = False  # a query of one head with nothing to attend
    outputs = layer(query, value, attention_mask=mask, return_attention_scores=True)
    expected = attention.multi_head_attention(
        query, value, value, mask, kernels_of_all_heads(layer), WEIGHTED_SCORES[score], *layer.score.get_weights()
    )
    for output, reference in zip(to_numpy(outputs), expected, strict=True):
        np.testing.assert_allclose(output, reference, atol=FLOAT32)


def test_attention_over_chosen_axes_takes_groups():
    inputs = normal(2, 3, T, D)
    layer = built(inputs, inputs, attention_axes=2)
    output, weights = layer(inputs, inputs, return_attention_scores=True)
    rows = np.reshape(inputs, (6, T, D))
    plain = built(rows, rows)
    expected, expected_weights = to_numpy(plain(rows, rows, return_attention_scores=True))
    np.testing.assert_allclose(output, np.reshape(expected, inputs.shape), atol=FLOAT32)
    np.testing.assert_allclose(weights, np.reshape(expected_weights, (2, 3, N, T, T)), atol=FLOAT32)


@keras.saving.register_keras_serializable(package="tests")
class LouderHeads(positions.PositionScheme):
    """Adds to the scores by head, and doubles what it rotates."""

    def rotate(self, tensor, positions):
        return 2.0 * tensor

    def bias(self, query_positions, key_positions):
        distances = ops.cast(query_positions[..., :, None] - key_positions[..., None, :], "float32")
        return ops.reshape(ops.arange(N, dtype="float32"), (N, 1, 1)) * distances[:, None] / 7.0


def test_a_bias_of_positions_sees_all_heads(query):
    layer = built(query, query, position=LouderHeads())
    _, weights = layer(query, query, return_attention_scores=True)
    kernels = kernels_of_all_heads(layer)
    bias = np.arange(N)[:, None, None] * np.subtract.outer(np.arange(T), np.arange(T)) / 7.0
    for n in range(N):
        queries, keys = (2 * (query @ kernels[i][:, n] + kernels[i + 1][n]) for i in (0, 2))
        scores = attention.scores(queries, keys, attention.scaled_dot) + bias[n]
        np.testing.assert_allclose(weights[:, n], attention.softmax(scores), atol=FLOAT32)


@pytest.mark.parametrize("position", ["rotary", "t5", "alibi", "shaw", "transformer_xl"])
def test_every_position_scheme_acts_as_on_all_heads(position, query):
    layer, plain = (built(query, query, num_key_value_heads=K, position=position) for K in (GROUPED, N))
    is_repeated = [any(name in weight.path for name in ("/key/", "/value/")) for weight in layer.weights]
    weights = zip(layer.get_weights(), is_repeated, strict=True)
    plain.set_weights([np.repeat(weight, layer.group, -2) if repeat else weight for weight, repeat in weights])
    outputs = (to_numpy(each(query, query, return_attention_scores=True)) for each in (layer, plain))
    for output, expected in zip(*outputs, strict=True):
        np.testing.assert_allclose(output, expected, atol=FLOAT32)


def test_an_alignment_sees_all_heads(query, value):
    layer = built(query, value, alignment=alignments.AdaptiveEntmax(num_heads=N))
    assert layer.alignment.logit.shape == (N, 1, 1)
    _, weights = layer(query, value, return_attention_scores=True)
    assert weights.shape == (B, N, T, S)


def test_masked_positions_have_no_influence_whatever_they_hold(query, value):
    layer = built(query, value, use_query_key_norm=True)
    mask = np.arange(S) < 7
    expected = layer(query, value[:, :7])
    for garbage in (np.nan, np.inf, 1e30):
        output = layer(query, np.where(mask[:, None], value, np.float32(garbage)), value_mask=np.tile(mask, (B, 1)))
        np.testing.assert_allclose(output, expected, atol=FLOAT32)


# === The memory ===


def test_a_memory_and_a_cache_hold_the_heads_of_key_and_value_alone(query, value):
    layer = built(query, value, value_dim=E)
    for cache in (layer.empty_cache(B, S), layer.prepare(value), layer.project(value)):
        assert {name: tuple(cache[name].shape) for name in ("key", "value")} == {
            "key": (B, GROUPED, S, H),
            "value": (B, GROUPED, S, E),
        }


STEPWISE = {
    "plain": {},
    "multi-query": {"num_key_value_heads": MULTI_QUERY},
    "additive": {"score": "additive"},
    "window-gate": {"sliding_window": 3, "use_gate": True},
    "normalized": {"use_query_key_norm": True, "position": LouderHeads()},
    "monotonic": {"alignment": "monotonic"},
}


@pytest.mark.parametrize("arguments", STEPWISE.values(), ids=STEPWISE)
def test_decoding_step_by_step_equals_the_causal_call(arguments, query):
    layer = MultiHeadAttention(N, H, **{"num_key_value_heads": GROUPED, **arguments})
    layer.build(query.shape, query.shape)
    randomize(layer)
    expected, expected_weights = layer(query, query, use_causal_mask=True, return_attention_scores=True)
    cache = layer.empty_cache(B, SLOTS)
    for start, length in ((0, 1), (1, 3), (4, 1)):
        now = query[:, start : start + length]
        output, weights, cache = layer(
            now, now, cache=cache, cache_index=start, use_causal_mask=True, return_attention_scores=True
        )
        np.testing.assert_allclose(output, expected[:, start : start + length], atol=FLOAT32)
        np.testing.assert_allclose(weights[..., :T], expected_weights[:, :, start : start + length], atol=FLOAT32)


def test_a_cache_of_all_heads_is_an_error(query):
    layer = built(query, query)
    cache = built(query, query, num_key_value_heads=None).empty_cache(B, SLOTS)
    with pytest.raises(ValueError, match=rf"must have shape \(B, {GROUPED}, slots, {H}\).*\({B}, {N}, {SLOTS}, {H}\)"):
        layer(query, query, cache=cache, cache_index=0)


# === Flash attention ===


@pytest.mark.parametrize("K", [MULTI_QUERY, GROUPED])
def test_flash_attention_takes_groups(K, query, value, monkeypatch):
    layer = built(query, value, num_key_value_heads=K)
    expected = layer(query, value, attention_mask=some_mask(B, T, S))

    def without_flash(*tensors, flash_attention, **options):  # which no CPU has
        assert flash_attention
        return kernel(*tensors, **options)

    kernel = ops.dot_product_attention
    monkeypatch.setattr(flow.ops, "dot_product_attention", without_flash)
    layer = built(query, value, num_key_value_heads=K, flash_attention=True)
    np.testing.assert_allclose(layer(query, value, attention_mask=some_mask(B, T, S)), expected, atol=FLOAT32)


# === Normalized queries and keys ===


def normalized(heads, gain):
    return heads / np.sqrt(np.square(heads).mean(axis=-1, keepdims=True) + 1e-6) * gain


@pytest.mark.parametrize("K", [GROUPED, N])
def test_query_and_key_are_normalized_before_positions_act_on_them(K, query):
    layer = built(query, query, num_key_value_heads=K, use_query_key_norm=True, position=LouderHeads())
    gains = layer.query_norm.scale, layer.key_norm.scale
    kernels = kernels_of_all_heads(layer)
    _, weights = layer(query, query, return_attention_scores=True)
    bias = np.arange(N)[:, None, None] * np.subtract.outer(np.arange(T), np.arange(T)) / 7.0
    for n in range(N):
        queries, keys = (
            2 * normalized(query @ kernels[i][:, n] + kernels[i + 1][n], to_numpy(gain))
            for i, gain in zip((0, 2), gains, strict=True)
        )
        scores = attention.scores(queries, keys, attention.scaled_dot) + bias[n]
        np.testing.assert_allclose(weights[:, n], attention.softmax(scores), atol=FLOAT32)


def test_there_is_one_gain_for_the_queries_and_one_for_the_keys(query, value):
    layer = built(query, value, use_query_key_norm=True)
    gains = [weight for weight in layer.weights if "norm" in weight.path]
    assert [weight.path.split("/", 1)[1] for weight in gains] == ["query_norm/scale", "key_norm/scale"]
    assert [weight.shape for weight in gains] == [(H,), (H,)]


def test_a_layer_without_normalization_has_no_weights_for_it(query, value):
    assert len(built(query, value).weights) == 8


@pytest.mark.parametrize("policy", HALF)
def test_normalization_computes_in_float32(policy, query, value):
    reference = built(query, value, use_query_key_norm=True)
    layer = MultiHeadAttention(N, H, num_key_value_heads=GROUPED, use_query_key_norm=True, dtype=policy)
    layer.build(query.shape, value.shape)
    layer.set_weights(reference.get_weights())
    inputs = 100 * query, 100 * value  # heads of some hundreds, whose squares are beyond float16
    _, weights = layer(*inputs, return_attention_scores=True)
    _, expected = reference(*inputs, return_attention_scores=True)
    np.testing.assert_allclose(to_numpy(ops.cast(weights, "float32")), expected, atol=HALF[policy])


# === Training, saving, quantizing ===


def test_gradients_are_those_of_the_loop(query, value):
    layer = built(query, value)
    plain = built(query, value, num_key_value_heads=N)
    weights = [np.repeat(w, layer.group, axis=-2) if 2 <= i < 6 else w for i, w in enumerate(layer.get_weights())]
    plain.set_weights(weights)
    grouped, expected = (
        gradient(lambda query, layer=layer: ops.sum(ops.sin(layer(query, value))), query) for layer in (layer, plain)
    )
    np.testing.assert_allclose(grouped, expected, rtol=FLOAT32, atol=10 * FLOAT32)


def test_the_layer_comes_back_from_its_config(query, value):
    layer = built(query, value, use_query_key_norm=True)
    again = MultiHeadAttention.from_config(layer.get_config())
    again.build(query.shape, value.shape)
    again.set_weights(layer.get_weights())
    np.testing.assert_allclose(again(query, value), layer(query, value), atol=0.0)


def test_a_config_without_these_arguments_stays_multi_head_attention():
    config = MultiHeadAttention(N, H).get_config()
    for name in ("num_key_value_heads", "use_query_key_norm"):
        config.pop(name)
    layer = MultiHeadAttention.from_config(config)
    assert layer.num_key_value_heads is None and layer.use_query_key_norm is False


@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize` method")  # of layers without kernels
def test_a_model_with_groups_quantizes_and_comes_back(query, value, tmp_path):
    inputs = keras.Input((None, D)), keras.Input((None, D_VALUE))
    layer = MultiHeadAttention(N, H, num_key_value_heads=GROUPED, use_query_key_norm=True)
    model = keras.Model(inputs, layer(*inputs))
    expected = model([query, value])
    model.quantize("int8")
    quantized = model([query, value])
    np.testing.assert_allclose(quantized, expected, atol=0.1)
    model.save(tmp_path / "model.keras")
    np.testing.assert_allclose(keras.saving.load_model(tmp_path / "model.keras")([query, value]), quantized, atol=0.0)


# === Errors ===


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_key_value_heads": 3}, r"multiple of `num_key_value_heads`.*num_heads=14 and num_key_value_heads=3"),
        ({"num_key_value_heads": 28}, r"num_heads=14 and num_key_value_heads=28"),
        ({"num_key_value_heads": 0}, r"`num_key_value_heads` must be a positive integer. Received: 0"),
        ({"num_key_value_heads": True}, r"`num_key_value_heads` must be a positive integer. Received: True"),
        ({"use_query_key_norm": "rms"}, r"`use_query_key_norm` must be `True` or `False`. Received: 'rms'"),
    ],
    ids=str,
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(N, H, **arguments)
