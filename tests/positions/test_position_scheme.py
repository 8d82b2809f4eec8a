"""A position scheme of one's own: it turns query and key, or adds to the scores, in every call and in the cache."""

import keras
import numpy as np
import pytest
from keras import ops
from reference.arrays import normal, to_numpy
from tolerances import EXACT, FLOAT32

from keras_attention.layers import MultiHeadAttention
from keras_attention.positions import PositionScheme, SlidingWindow

B, T, D, N, H, SLOTS = 2, 7, 11, 3, 2, 13


@keras.saving.register_keras_serializable(package="tests")
class Turned(PositionScheme):
    """A head of two features is a point in the plane, turned by its position in radians."""

    adds_bias = False

    def rotate(self, tensor, positions):
        angle = ops.cast(positions, tensor.dtype)[:, None]  # (B or 1, 1, length)
        x, y = tensor[..., 0], tensor[..., 1]
        turned = [x * ops.cos(angle) - y * ops.sin(angle), x * ops.sin(angle) + y * ops.cos(angle)]
        return ops.stack(turned, axis=-1)


@keras.saving.register_keras_serializable(package="tests")
class Distant(PositionScheme):
    """A learned number for each head, times the distance, is added."""

    def build(self, query_shape):
        self.slope = self.add_weight(name="slope", shape=(query_shape[1],), initializer="ones")
        self.built = True

    def bias(self, query_positions, key_positions):
        distance = query_positions[..., :, None] - key_positions[..., None, :]
        return -ops.cast(ops.abs(distance), "float32")[:, None] * self.slope[:, None, None]  # (B or 1, N, T, S)


SCHEMES = {"turned": Turned, "distant": Distant, "window": lambda: SlidingWindow(3)}

each_scheme = pytest.mark.parametrize("make", SCHEMES.values(), ids=SCHEMES)


def built(make, **options):
    layer = MultiHeadAttention(N, H, position=make(), **options)
    layer.build((B, T, D), (B, T, D))
    layer.set_weights([normal(*weight.shape, seed=seed) for seed, weight in enumerate(layer.weights)])
    return layer


def weights_of(layer, inputs, **options):
    return to_numpy(layer(inputs, inputs, return_attention_scores=True, **options)[1])


def scores_in_numpy(layer, inputs):
    """`query · key / √H` of each head, before any position: `(B, N, T, T)`."""
    query, key = (
        np.einsum("btd,dnh->bnth", inputs, to_numpy(dense.kernel)) + to_numpy(dense.bias)[:, None]
        for dense in (layer.query_dense, layer.key_dense)
    )
    return query, key


def softmax(scores):
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return scores / scores.sum(axis=-1, keepdims=True)


def test_query_and_key_are_turned_before_the_score():
    layer, inputs = built(Turned), normal(B, T, D)
    query, key = (heads @ np.array([1, 1j]) for heads in scores_in_numpy(layer, inputs))  # points as complex numbers
    turn = np.exp(1j * np.arange(T))
    scores = np.real((query * turn)[..., :, None] * np.conj(key * turn)[..., None, :]) / np.sqrt(H)
    np.testing.assert_allclose(weights_of(layer, inputs), softmax(scores), atol=FLOAT32)


def test_a_bias_is_added_to_the_scores():
    layer, inputs = built(Distant), normal(B, T, D)
    query, key = scores_in_numpy(layer, inputs)
    distance = np.abs(np.subtract.outer(np.arange(T), np.arange(T)))
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(H) - to_numpy(layer.position.slope)[:, None, None] * distance
    np.testing.assert_allclose(weights_of(layer, inputs), softmax(scores), atol=FLOAT32)


@each_scheme
def test_padding_on_the_left_moves_no_position(make):
    layer, inputs = built(make), normal(1, T, D)
    expected = weights_of(layer, inputs[:, :5])
    padded = np.concatenate([np.full((1, 2, D), np.nan, "float32"), inputs[:, :5]], axis=1)
    mask = np.array([[False] * 2 + [True] * 5])
    weights = weights_of(layer, padded, query_mask=mask, value_mask=mask)
    np.testing.assert_allclose(weights[..., 2:, 2:], expected, atol=FLOAT32)


@each_scheme
def test_decoding_with_a_cache_equals_the_causal_call(make):
    layer, inputs = built(make), normal(B, T, D)
    expected = to_numpy(layer(inputs, inputs, use_causal_mask=True))
    cache, outputs = layer.empty_cache(B, SLOTS), []
    for start, length in ((0, 3), (3, 1), (4, 3)):
        now = inputs[:, start : start + length]
        output, cache = layer(now, now, cache=cache, cache_index=start, use_causal_mask=True)
        outputs.append(to_numpy(output))
    np.testing.assert_allclose(np.concatenate(outputs, axis=1), expected, rtol=FLOAT32, atol=FLOAT32)


@each_scheme
def test_a_scheme_comes_back_from_the_config_with_its_weights(make, tmp_path):
    inputs = keras.Input((None, D))
    model = keras.Model(inputs, MultiHeadAttention(N, H, position=make())(inputs, inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    x = normal(B, T, D)
    np.testing.assert_allclose(to_numpy(loaded(x)), to_numpy(model(x)), atol=EXACT)


def test_the_window_is_the_argument_of_keras():
    inputs = normal(B, T, D)
    by_object, by_argument = built(lambda: SlidingWindow(3)), MultiHeadAttention(N, H, sliding_window=3)
    by_argument.build((B, T, D), (B, T, D))
    by_argument.set_weights(by_object.get_weights())
    np.testing.assert_allclose(weights_of(by_argument, inputs), weights_of(by_object, inputs), atol=EXACT)


def test_flash_attention_adds_no_bias():
    with pytest.raises(ValueError, match=r"Flash attention adds no bias to the scores\. Received <Distant"):
        MultiHeadAttention(N, H, position=Distant(), flash_attention=True)


def test_what_is_no_scheme_is_an_error():
    with pytest.raises(TypeError, match=r"`position` must be .*`PositionScheme`.* Received: 3 of type int"):
        MultiHeadAttention(N, H, position=3)


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_the_weights_of_a_scheme_stay_in_full_precision(dtype):
    layer = MultiHeadAttention(N, H, position=Distant(), dtype=dtype)
    output = layer(normal(B, T, D), normal(B, T, D, seed=1))
    assert keras.backend.standardize_dtype(output.dtype) == layer.compute_dtype
