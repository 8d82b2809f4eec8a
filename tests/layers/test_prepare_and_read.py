"""A memory is prepared once and read many times: `read(query, prepare(value))` is the call."""

import keras
import numpy as np
import pytest
from keras import ops
from reference.arrays import normal, to_numpy
from tolerances import EXACT, FLOAT32

from keras_attention import alignments, layers, scores

B, T, S, D, N, H = 2, 7, 5, 11, 3, 4

LAYERS = {
    "soft": lambda: layers.SoftAttention(score="additive"),
    "soft-bilinear": lambda: layers.SoftAttention(score="bilinear", alignment="sparsemax"),
    "hard": lambda: layers.HardAttention(score="concat"),
    "structured": lambda: layers.StructuredAttention(),
    "key-value": lambda: layers.KeyValueAttention(score="dot"),
    "memory": lambda: layers.KeyValueMemory(num_hops=2, score="additive"),
    "heads": lambda: layers.MultiHeadAttention(N, H, score="additive"),
    "heads-window": lambda: layers.MultiHeadAttention(N, H, sliding_window=3, use_gate=True),
}

each_layer = pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)


def built(make):
    layer = make()
    layer.build((B, T, D), (B, S, D), (B, S, D))
    layer.set_weights([normal(*weight.shape, seed=seed) / 2 for seed, weight in enumerate(layer.weights)])
    return layer


@pytest.fixture
def tensors():
    return [ops.convert_to_tensor(normal(B, length, D, seed=seed)) for seed, length in enumerate((T, S, S))]


@each_layer
def test_a_memory_that_is_read_query_by_query_gives_what_a_call_gives(make, tensors):
    layer, (query, value, key) = built(make), tensors
    mask = np.array([[False, True, True, False, True], [True, True, False, True, True]])
    expected = to_numpy(layer(query, value, key, value_mask=mask, return_attention_scores=True))
    memory = layer.prepare(value, key, mask)
    at_once = layer.read(query, memory, return_attention_scores=True)
    for read, called in zip(at_once, expected, strict=True):
        np.testing.assert_allclose(to_numpy(read), called, rtol=FLOAT32, atol=FLOAT32)
    standing = ops.arange(T)[None]
    steps = [
        to_numpy(layer.read(query[:, t : t + 1], memory, query_positions=standing[:, t : t + 1])) for t in range(T)
    ]
    np.testing.assert_allclose(np.concatenate(steps, axis=1), expected[0], rtol=FLOAT32, atol=FLOAT32)


@each_layer
def test_what_the_memory_masks_is_never_looked_at(make, tensors):
    layer, (query, value, key) = built(make), tensors
    mask = np.array([[False, True, True, True, True]] * B)
    expected = to_numpy(layer.read(query, layer.prepare(value, key, mask)))
    garbage = np.where(mask[..., None], 0.0, np.array([np.nan, np.inf, *[1e30] * (D - 2)], "float32"))
    memory = layer.prepare(to_numpy(value) + garbage, to_numpy(key) + garbage, mask)
    np.testing.assert_allclose(to_numpy(layer.read(query, memory)), expected, atol=EXACT)


@each_layer
def test_masks_of_the_query_are_given_when_it_reads(make, tensors):
    layer, (query, value, key) = built(make), tensors
    query_mask = np.array([[True] * 5 + [False] * 2, [False] + [True] * 6])
    options = {"query_mask": query_mask, "attention_mask": normal(T, S) > -0.5, "use_causal_mask": True}
    expected = to_numpy(layer(query, value, key, **options))
    np.testing.assert_allclose(
        to_numpy(layer.read(query, layer.prepare(value, key), **options)), expected, rtol=FLOAT32, atol=FLOAT32
    )


@each_layer
def test_only_a_layer_that_is_built_prepares(make, tensors):
    with pytest.raises(ValueError, match="must be built before it can prepare a memory"):
        make().prepare(*tensors[1:])


@pytest.mark.parametrize("layer", [layers.AttentionPooling, layers.Pointer], ids=lambda layer: layer.__name__)
def test_pooling_and_pointer_are_built_before_they_prepare_too(layer, tensors):
    with pytest.raises(ValueError, match="must be built before it can prepare a memory"):
        layer().prepare(tensors[1])


@each_layer
@pytest.mark.parametrize("memory", [None, [1], {"key": 1}], ids=["none", "list", "no value"])
def test_a_memory_is_a_dictionary_of_keys_and_values(make, memory, tensors):
    with pytest.raises(
        ValueError, match="`memory` must be a dictionary with 'key' and 'value', as `prepare` of the same"
    ):
        built(make).read(tensors[0], memory)


@each_layer
def test_a_memory_has_as_many_keys_as_values(make, tensors):
    layer = built(make)
    memory = layer.prepare(*tensors[1:])
    with pytest.raises(ValueError, match="length"):
        layer.read(tensors[0], {**memory, "value": memory["value"][..., 1:, :]})


def test_key_value_attention_prepares_no_value_for_its_key(tensors):
    with pytest.raises(ValueError, match="needs a key for each value"):
        built(LAYERS["key-value"]).prepare(tensors[1])


@pytest.mark.parametrize("axes", [None, 1, (1, 2)], ids=str)
def test_a_memory_along_other_axes_than_the_last_is_refused(axes):
    layer = layers.MultiHeadAttention(N, H, attention_axes=axes)
    inputs = normal(B, 3, S, D)
    layer(inputs, inputs)
    with pytest.raises(ValueError, match=r"read along its last axis but one. Received value of shape \(2, 3, 5, 11\)"):
        layer.prepare(inputs)


@each_layer
def test_a_mask_of_another_length_is_an_error(make, tensors):
    with pytest.raises(ValueError, match=r"`mask` must have one entry for each position, shape \(2, 5\).*\(2, 7\)"):
        built(make).prepare(tensors[1], tensors[2], np.ones((B, T), bool))


def test_keys_are_projected_once(tensors, monkeypatch):
    query, value, _ = tensors
    layer = built(LAYERS["memory"])
    calls = []
    monkeypatch.setattr(
        layer.score, "prepare", lambda key: calls.append(1) or scores.AdditiveScore.prepare(layer.score, key)
    )
    memory = layer.prepare(value)
    for t in range(T):
        layer.read(query[:, t : t + 1], memory)
    layer(query, value)  # two hops
    assert len(calls) == 2


def test_a_memory_in_half_precision_is_read_outside_of_a_call(tensors):
    query, value, _ = tensors
    layer = layers.KeyValueMemory(num_hops=2, dtype="mixed_float16")
    expected = layer(query, value)
    read = layer.read(query, layer.prepare(value))
    assert keras.backend.standardize_dtype(read.dtype) == "float16"
    np.testing.assert_allclose(to_numpy(read), to_numpy(expected), atol=EXACT)


# === Scores of one's own ===


@keras.saving.register_keras_serializable(package="tests")
class Halved(scores.AdditiveScore):
    def call(self, query, key):
        return super().call(query, key) / 2


def test_a_subclass_that_writes_another_call_is_read_by_it(tensors):
    query, value, _ = tensors
    half, whole = layers.SoftAttention(Halved(units=13)), layers.SoftAttention(scores.AdditiveScore(units=13))
    weights = [half(query, value, return_attention_scores=True)[1]]
    whole.build(query.shape, value.shape)
    whole.set_weights([weight * factor for weight, factor in zip(half.get_weights(), (1, 1, 0.5), strict=True)])
    weights.append(whole(query, value, return_attention_scores=True)[1])
    np.testing.assert_allclose(*map(to_numpy, weights), atol=FLOAT32)


@keras.saving.register_keras_serializable(package="tests")
class Squared(scores.ScaledDotScore):
    def call(self, query, key):
        return ops.square(super().call(query, key))


def test_flash_attention_refuses_a_subclass_that_writes_another_call():
    with pytest.raises(ValueError, match="Flash attention computes"):
        layers.MultiHeadAttention(N, H, score=Squared(), flash_attention=True)


class Zero:
    def call(self, query, key):
        return ops.zeros((*ops.shape(query)[:-1], ops.shape(key)[-2]))


@pytest.mark.parametrize("base", [scores.AdditiveScore, scores.BilinearScore, scores.ScaledDotScore], ids=str)
def test_a_call_of_a_mixin_counts_as_its_own(base, tensors):
    score = type("Mixed", (Zero, base), {})()
    query, value, _ = tensors
    mean = np.repeat(to_numpy(value).mean(axis=1, keepdims=True), T, axis=1)
    np.testing.assert_allclose(to_numpy(layers.SoftAttention(score)(query, value)), mean, rtol=FLOAT32, atol=FLOAT32)
    assert score.factor(D) is None


def test_flash_attention_refuses_the_marginals_of_a_mixin():
    class Nothing:
        def marginals(self, scores, mask=None):
            return ops.zeros_like(scores)

    mixed = type("Mixed", (Nothing, alignments.Categorical), {})()
    with pytest.raises(ValueError, match="Flash attention computes"):
        layers.MultiHeadAttention(N, H, alignment=mixed, flash_attention=True)


@pytest.mark.parametrize("kind", [scores.AdditiveScore, scores.BilinearScore, scores.ConcatScore, scores.DotScore])
def test_the_activity_regularizer_of_a_score_has_its_loss(kind, tensors):
    query, value, _ = tensors
    layer = layers.SoftAttention(kind(activity_regularizer="l2"))
    layer(query, value)
    expected = 0.01 * np.sum(np.square(to_numpy(layer.score(query, value)))) / B
    np.testing.assert_allclose(to_numpy(layer.losses[0]), expected, rtol=FLOAT32)


# === Positions by hand ===


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_positions_are_integers_of_any_type(dtype, tensors):
    layer, (query, value, _) = built(LAYERS["heads-window"]), tensors
    memory = layer.prepare(value, positions=np.arange(S, dtype=dtype)[None])
    output = layer.read(query, memory, query_positions=np.arange(T, dtype=dtype)[None])
    np.testing.assert_allclose(to_numpy(output), to_numpy(layer(query, value)), rtol=FLOAT32, atol=FLOAT32)


@each_layer
@pytest.mark.parametrize("name", ["positions", "query_positions"])
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda positions: positions[0], ValueError, r"must have shape \(1, {length}\), or \(2, {length}\)"),
        (lambda positions: positions[:, 1:], ValueError, r"must have shape \(1, {length}\)"),
        (lambda positions: np.repeat(positions, 3, axis=0), ValueError, r"must have shape \(1, {length}\)"),
        (lambda positions: positions[:, None, None], ValueError, r"must have shape \(1, {length}\)"),
        (lambda positions: positions * 1.0, TypeError, "must be integers. Received dtype float64"),
    ],
    ids=["rank", "length", "batch", "axes", "floats"],
)
def test_positions_that_do_not_fit(make, name, change, error, message, tensors):
    layer, (query, value, key) = built(make), tensors
    length = S if name == "positions" else T
    given = {name: change(np.arange(length)[None])}
    with pytest.raises(error, match=f"`{name}` {message.format(length=length)}"):
        if name == "positions":
            layer.prepare(value, key, **given)
        else:
            layer.read(query, layer.prepare(value, key), **given)


def test_segments_in_one_row_are_read_as_rows_of_their_own():
    """Positions that restart, and a mask that keeps the segments apart, take two texts for two."""
    layer = layers.MultiHeadAttention(N, H, sliding_window=2)
    packed = ops.convert_to_tensor(normal(1, 8, D))
    expected = np.concatenate([to_numpy(layer(part, part)) for part in (packed[:, :3], packed[:, 3:])], axis=1)
    segments = np.array([1, 1, 1, 2, 2, 2, 2, 2])
    standing = np.array([[0, 1, 2, 0, 1, 2, 3, 4]], "int32")
    memory = layer.prepare(packed, positions=standing)
    output = layer.read(packed, memory, attention_mask=segments[:, None] == segments, query_positions=standing)
    np.testing.assert_allclose(to_numpy(output), expected, rtol=FLOAT32, atol=FLOAT32)


def test_a_causal_mask_by_flag_and_by_hand_are_one_for_a_window():
    layer = layers.MultiHeadAttention(N, H, sliding_window=2)
    query, value = normal(B, 2, D), normal(B, S, D, seed=1)
    by_hand = layer(query, value, attention_mask=np.tril(np.ones((2, S), bool), S - 2))
    np.testing.assert_allclose(
        to_numpy(layer(query, value, use_causal_mask=True)), to_numpy(by_hand), rtol=FLOAT32, atol=FLOAT32
    )
