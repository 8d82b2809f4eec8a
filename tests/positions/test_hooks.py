"""Every hook of a position scheme, against the sum over pairs, with one head and with several, in further axes of batch."""

import keras
import numpy as np
import pytest
from keras import ops
from reference.arrays import normal, to_numpy
from tolerances import FLOAT32

from keras_attention.layers import HardAttention, KeyValueMemory, MultiHeadAttention, SoftAttention
from keras_attention.positions import PositionScheme

B, X, T, S, D, N = 2, 3, 5, 7, 11, 2
QUERY_POSITIONS = np.array([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])
NO_BIAS = np.zeros((T, S))
KEY_POSITIONS = np.array([[2, 7, 1, 8, 2, 8, 1], [0, 1, 2, 3, 4, 5, 6]])


@keras.saving.register_keras_serializable(package="tests")
class Everything(PositionScheme):
    """Each hook does something that a loop can do, too."""

    def build(self, query_shape):
        self.shift = self.add_weight(name="shift", shape=(query_shape[1], 1, query_shape[3]), initializer="ones")
        self.built = True

    def rotate(self, tensor, positions):
        return tensor * ops.cos(ops.cast(positions, "float32"))[:, None, :, None]

    def rotate_query(self, query, positions):
        return self.rotate(query + self.shift, positions)

    def bias(self, query_positions, key_positions):
        return ops.cast(query_positions[:, :, None] - key_positions[:, None, :], "float32") / 3

    def relative_scores(self, query, query_positions, key_positions):
        return ops.sum(query, axis=-1, keepdims=True) * ops.cast(key_positions, "float32")[:, None, None, :]

    def relative_context(self, weights, query_positions, key_positions):
        read = ops.sum(weights * ops.cast(key_positions, "float32")[:, None, None, :], axis=-1, keepdims=True)
        return ops.repeat(read, D, axis=-1)


def attend(query, key, value, query_positions, key_positions, shift, bias=NO_BIAS):
    """One row of one head, `(T, D)`, `(S, D)` -> `(T, D)`, pair by pair."""
    context = np.zeros((len(query), value.shape[-1]))
    for t, i in enumerate(query_positions):
        scores = np.zeros(len(key))
        for s, j in enumerate(key_positions):
            content = ((query[t] + shift) * np.cos(i)) @ (key[s] * np.cos(j))
            scores[s] = (content + query[t].sum() * j) / np.sqrt(query.shape[-1]) + (i - j) / 3
        weights = np.exp(scores + bias[t] - np.max(scores + bias[t]))
        weights /= weights.sum()
        context[t] = weights @ value + weights @ key_positions
    return context


def built(layer, *shapes):
    layer.build(*shapes)
    layer.set_weights([normal(*weight.shape, seed=seed) for seed, weight in enumerate(layer.weights)])
    return layer


def positions_by_hand():
    return {"query_positions": QUERY_POSITIONS, "key_positions": KEY_POSITIONS}


def test_one_head_by_hand():
    layer = built(SoftAttention(position=Everything()), (B, T, D), (B, S, D))
    query, key = normal(B, T, D), normal(B, S, D, seed=1)
    shift = to_numpy(layer.position.shift)[0, 0]
    expected = [attend(query[b], key[b], key[b], QUERY_POSITIONS[b], KEY_POSITIONS[b], shift) for b in range(B)]
    context = layer(query, key, **positions_by_hand())
    np.testing.assert_allclose(to_numpy(context), expected, rtol=FLOAT32, atol=FLOAT32)
    memory = layer.prepare(key, positions=KEY_POSITIONS)
    read = layer.read(query, memory, query_positions=QUERY_POSITIONS)
    np.testing.assert_allclose(to_numpy(read), expected, rtol=FLOAT32, atol=FLOAT32)


def test_several_heads_by_hand_with_a_bias_of_the_caller():
    layer = built(MultiHeadAttention(N, D, use_bias=False, position=Everything()), (B, T, D), (B, S, D))
    query, value, bias = normal(B, T, D), normal(B, S, D, seed=1), normal(B, N, T, S, seed=2)
    shift = to_numpy(layer.position.shift)[:, 0]
    query_heads, key_heads, value_heads = (
        np.einsum("btd,dne->bnte", tensor, to_numpy(dense.kernel))
        for tensor, dense in ((query, layer.query_dense), (value, layer.key_dense), (value, layer.value_dense))
    )
    heads = np.zeros((B, N, T, D))
    for b, n in np.ndindex(B, N):
        tensors = query_heads[b, n], key_heads[b, n], value_heads[b, n]
        heads[b, n] = attend(*tensors, QUERY_POSITIONS[b], KEY_POSITIONS[b], shift[n], bias[b, n])
    expected = np.einsum("bntd,nde->bte", heads, to_numpy(layer.output_dense.kernel))
    output = layer(query, value, attention_bias=bias, **positions_by_hand())
    np.testing.assert_allclose(to_numpy(output), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "make",
    [
        lambda: SoftAttention(position=Everything()),
        lambda: SoftAttention("additive", position=Everything()),
        lambda: KeyValueMemory(position=Everything()),
        lambda: HardAttention(position=Everything()),
        lambda: MultiHeadAttention(N, D, attention_axes=2, position=Everything()),
    ],
    ids=["soft", "additive", "memory", "hard", "heads"],
)
def test_further_axes_are_rows_of_the_batch(make):
    layer, inputs = built(make(), (B, X, T, D), (B, X, T, D)), normal(B, X, T, D)
    mask = np.arange(B * X * T).reshape(B, X, T) % 4 > 0
    by_rows = layer if layer.position.weights[0].shape[0] == 1 else built(make_rows(), (B * X, T, D), (B * X, T, D))
    rows = inputs.reshape(B * X, T, D)
    of_rows = {name: mask.reshape(B * X, T) for name in ("query_mask", "value_mask")}
    expected = to_numpy(by_rows(rows, rows, use_causal_mask=True, **of_rows)).reshape(B, X, T, D)
    output = layer(inputs, inputs, use_causal_mask=True, query_mask=mask, value_mask=mask)
    np.testing.assert_allclose(to_numpy(output), expected, rtol=FLOAT32, atol=FLOAT32)


def make_rows():
    return MultiHeadAttention(N, D, position=Everything())


def test_what_is_written_into_a_memory_stands_where_its_slot_does():
    layer = built(make_rows(), (B, T, D), (B, S, D))
    value, new = normal(B, S, D), normal(B, 2, D, seed=1)
    joined = np.concatenate([value[:, :3], new, value[:, 5:]], axis=1)
    expected = layer(
        new, joined[:, :5], query_positions=KEY_POSITIONS[:, 3:5], key_positions=KEY_POSITIONS[:, :5]
    )  # slots behind the last query stay out of sight
    output, _ = layer(new, new, cache=layer.prepare(value, positions=KEY_POSITIONS), cache_index=3)
    np.testing.assert_allclose(to_numpy(output), to_numpy(expected), rtol=1e-4, atol=1e-4)


def test_a_bias_of_the_caller_needs_no_scheme_and_may_forbid():
    layer, inputs = built(SoftAttention(), (B, T, D), (B, T, D)), normal(B, T, D)
    forbidden = np.where(np.tril(np.ones((T, T), bool)), 0.0, -np.inf).astype("float32")
    output = layer(inputs, inputs, attention_bias=forbidden)
    np.testing.assert_allclose(to_numpy(output), to_numpy(layer(inputs, inputs, use_causal_mask=True)), atol=FLOAT32)


def test_a_query_that_a_bias_allows_nothing_reads_nothing():
    layer, inputs = built(SoftAttention(), (B, T, D), (B, T, D)), normal(B, T, D)
    forbidden = np.where(np.tril(np.ones((T, T), bool)), 0.0, -np.inf).astype("float32")
    is_real = np.arange(T) > 1  # the first two queries see padding alone
    output, weights = layer(
        np.where(is_real[:, None], inputs, np.nan),
        np.where(is_real[:, None], inputs, np.nan),
        value_mask=np.tile(is_real, (B, 1)),
        attention_bias=forbidden,
        return_attention_scores=True,
    )
    assert not to_numpy(output)[:, :2].any() and not to_numpy(weights)[:, :2].any()
    alone = layer(inputs[:, 2:], inputs[:, 2:], use_causal_mask=True)
    np.testing.assert_allclose(to_numpy(output)[:, 2:], to_numpy(alone), atol=FLOAT32)
    low = np.full((T, T), -1e9, "float32")  # -inf in half precision
    assert np.isfinite(to_numpy(SoftAttention(dtype="mixed_float16")(inputs, inputs, attention_bias=low))).all()


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_a_bias_keeps_its_digits_in_half_precision(dtype):
    inputs, bias = normal(B, T, D) / 10, 1000 + np.random.default_rng(3).permutation(T * T).reshape(T, T) / 13
    _, expected = SoftAttention()(inputs, inputs, attention_bias=bias, return_attention_scores=True)
    layer = SoftAttention(dtype=dtype)
    output, weights = layer(inputs, inputs, attention_bias=bias.astype("float32"), return_attention_scores=True)
    assert keras.backend.standardize_dtype(output.dtype) == layer.compute_dtype
    np.testing.assert_allclose(to_numpy(ops.cast(weights, "float32")), to_numpy(expected), atol=0.01)


@pytest.mark.parametrize(
    ("hook", "returned", "message"),
    [
        ("bias", lambda *_: ops.ones((T, S)), r"\(2, 1, 5, 7\)\. Received shape \(5, 7\)"),
        ("bias", lambda *_: ops.ones((1, S, T)), r"\(2, 5, 7\)\. Received shape \(1, 7, 5\)"),
        ("relative_scores", lambda query, *_: query, r"\(2, 1, 5, 7\)\. Received shape \(2, 1, 5, 11\)"),
        ("rotate", lambda tensor, _: tensor[..., :3], r"\(2, 1, 7, 11\)\. Received shape \(2, 1, 7, 3\)"),
    ],
)
def test_a_hook_that_returns_another_shape_is_an_error(hook, returned, message):
    scheme = type("Wrong", (PositionScheme,), {hook: lambda self, *arguments: returned(*arguments)})()
    with pytest.raises(ValueError, match=rf"`{hook}` of Wrong must return a tensor of shape {message}"):
        SoftAttention(position=scheme)(normal(B, T, D), normal(B, S, D))


def test_bad_biases_and_positions_are_errors():
    layer, inputs = built(make_rows(), (B, T, D), (B, T, D)), normal(B, T, D)
    with pytest.raises(TypeError, match=r"`attention_bias` must hold floats.*Received dtype bool.*`attention_mask`"):
        layer(inputs, inputs, attention_bias=np.ones((T, T), bool))
    with pytest.raises(ValueError, match=r"`attention_bias` must .* here \(2, 2, 5, 5\)\. Received shape \(7, 5\)"):
        layer(inputs, inputs, attention_bias=normal(S, T))
    with pytest.raises(ValueError, match=r"`key_positions` must have shape \(1, 5\).* Received shape \(2, 7\)"):
        layer(inputs, inputs, key_positions=KEY_POSITIONS)
    with pytest.raises(ValueError, match=r"`key_positions` must have .* Received shape \(2, 7, 5\)"):
        layer_of_axes = MultiHeadAttention(N, D, attention_axes=2, position=Everything())
        layer_of_axes(normal(B, X, T, D), normal(B, X, T, D), key_positions=np.zeros((B, 7, T), int))
    with pytest.raises(TypeError, match=r"`query_positions` must be integers\. Received dtype float32"):
        layer(inputs, inputs, query_positions=normal(B, T))
    with pytest.raises(ValueError, match=r"With a cache positions are counted\. Received `query_positions` of shape"):
        layer(inputs, inputs, cache=layer.empty_cache(B, S), cache_index=0, query_positions=QUERY_POSITIONS)
    with pytest.raises(
        ValueError, match=r"Flash attention adds no bias .* Received `attention_bias` of shape \(5, 5\)"
    ):
        MultiHeadAttention(N, D, flash_attention=True)(inputs, inputs, attention_bias=normal(T, T))


def test_a_bias_and_positions_go_through_a_functional_model():
    layer, inputs, bias = make_rows(), keras.Input((None, D)), keras.Input((None, None))
    positions = keras.Input((None,), dtype="int32")
    output, weights = layer(
        inputs,
        inputs,
        attention_bias=bias,
        query_positions=positions,
        key_positions=positions,
        return_attention_scores=True,
    )
    assert output.shape == (None, None, D)
    assert weights.shape == (None, N, None, None)
    arrays = normal(B, T, D), normal(B, T, T, seed=1), QUERY_POSITIONS
    by_model = keras.Model([inputs, bias, positions], output)(arrays)
    by_layer = layer(arrays[0], arrays[0], attention_bias=arrays[1], query_positions=arrays[2], key_positions=arrays[2])
    np.testing.assert_allclose(to_numpy(by_model), to_numpy(by_layer), atol=FLOAT32)
