import functools

import keras
import numpy as np
import pytest
from compiled import compiled
from keras import ops
from reference import attention, memories
from reference.arrays import normal, to_numpy
from reference.gradients import gradient
from tolerances import EXACT, FLOAT32

from keras_attention.alignments import Sparsemax
from keras_attention.alignments.estimators import Recorder
from keras_attention.layers import KeyValueAttention, KeyValueSplitAttention
from keras_attention.scores import AdditiveScore

B, T, H, U = 2, 7, 5, 13
FULL = np.ones((B, T), bool)
GAPS = np.array([[False, True, True, False, False, True, True], [True, True, True, True, False, False, False]])
EMPTY = np.array([[False] * T, [True] * T])


def with_and_without_weights(layer, inputs, mask):
    return layer(inputs, mask=mask, return_attention_scores=True), layer(inputs, mask=mask)


def attend(layer, inputs, mask=None):
    """Output `(B, T, H)` and weights `(B, T, T)`, after checking that the output alone is the same."""
    if not layer.built:
        layer.build(inputs.shape)
    (output, weights), alone = to_numpy(compiled(with_and_without_weights, layer)(inputs, mask))
    np.testing.assert_allclose(alone, output, atol=EXACT)
    return output, memories.at_positions(weights, FULL if mask is None else mask)


@functools.cache
def additive(window, num_parts):
    layer = KeyValueSplitAttention(window, num_parts, score=AdditiveScore(U))
    layer.build((B, T, num_parts * H))
    return layer


def expected(layer, inputs, mask):
    weights = {weight.path.split("/")[-1]: to_numpy(weight.value) for weight in layer.weights}
    score_weights = [weights[name] for name in ("query_kernel", "key_kernel", "vector")]
    kernels = weights["context_kernel"], weights["state_kernel"]
    return memories.window_attention(inputs, mask, layer.window, layer.num_parts, score_weights, *kernels)


# === The formula ===


@pytest.mark.parametrize("mask", [FULL, GAPS, EMPTY], ids=["full", "gaps", "empty"])
@pytest.mark.parametrize("window", [1, 3, 11])
@pytest.mark.parametrize("num_parts", [2, 3])
def test_it_equals_the_loop(num_parts, window, mask):
    layer, inputs = additive(window, num_parts), normal(B, T, num_parts * H)
    output, weights = attend(layer, inputs, mask)
    assert output.shape == (B, T, H)
    for found, right in zip((output, weights), expected(layer, inputs, mask), strict=True):
        np.testing.assert_allclose(found, right, atol=FLOAT32)


def test_the_first_position_has_nothing_to_attend():
    layer, inputs = KeyValueSplitAttention(3), normal(B, T, 3 * H)
    output, weights = attend(layer, inputs)
    assert not weights[:, 0].any()
    np.testing.assert_allclose(
        output[:, 0], np.tanh(inputs[:, 0, 2 * H :] @ to_numpy(layer.state_kernel.value)), atol=FLOAT32
    )
    np.testing.assert_allclose(weights[:, 1:].sum(axis=-1), 1.0, atol=FLOAT32)


@pytest.mark.parametrize("window", [2, T])
@pytest.mark.parametrize("score", ["dot", "bilinear"])
@pytest.mark.parametrize("alignment", ["softmax", "sparsemax"])
def test_it_equals_key_value_attention_under_the_mask_of_the_window(alignment, score, window):
    layer = KeyValueSplitAttention(window, num_parts=2, score=score, alignment=alignment)
    inputs, position = normal(B, T, 2 * H), GAPS.cumsum(axis=1)
    distance = position[:, :, None] - position[:, None]
    output, weights = attend(layer, inputs, GAPS)
    plain = KeyValueAttention(score=score, alignment=alignment)
    key, value = inputs[..., :H], inputs[..., H:]
    masks = {"query_mask": GAPS, "key_mask": GAPS, "attention_mask": (distance > 0) & (distance <= window)}
    plain.build(key.shape, value.shape, key.shape)
    plain.score.set_weights(layer.score.get_weights())
    context, right = to_numpy(plain(key, value, key, **masks, return_attention_scores=True))
    context_kernel, state_kernel = to_numpy((layer.context_kernel.value, layer.state_kernel.value))
    np.testing.assert_allclose(weights, right, atol=FLOAT32)
    real = np.where(GAPS[..., None], value, 0.0)
    np.testing.assert_allclose(output, np.tanh(context @ context_kernel + real @ state_kernel), atol=FLOAT32)


def recorded(layer, inputs, mask):
    with Recorder() as recorder:
        _, weights = layer(inputs, mask=mask, return_attention_scores=True, training=True)
    return weights, recorder.log_prob(B)


def test_a_hard_alignment_chooses_one_position_of_each_window():
    layer, inputs = KeyValueSplitAttention(3, score="dot", alignment="sampled", seed=3), normal(B, T, 3 * H)
    layer.build(inputs.shape)
    weights, recorded_log_prob = to_numpy(compiled(recorded, layer)(inputs, GAPS))
    weights, position = memories.at_positions(weights, GAPS), GAPS.cumsum(axis=1)
    distance = position[:, :, None] - position[:, None]
    allowed = (distance > 0) & (distance <= 3) & GAPS[:, None] & GAPS[..., None]
    np.testing.assert_allclose(weights.sum(axis=-1), allowed.any(axis=-1), atol=EXACT)
    soft = attention.softmax(np.einsum("bth,bsh->bts", inputs[..., :H], inputs[..., :H]), allowed)
    log_prob = (weights * np.log(np.where(weights > 0, soft, 1.0))).sum(axis=(1, 2))
    np.testing.assert_allclose(recorded_log_prob, log_prob, rtol=FLOAT32)


def test_the_window_moves_with_the_sequence():
    layer, inputs = KeyValueSplitAttention(3), normal(B, T, 3 * H)
    shifted = np.concatenate([normal(B, 2, 3 * H), inputs], axis=1)
    mask = np.arange(T + 2) >= 2
    output = attend(layer, shifted, np.broadcast_to(mask, (B, T + 2)))[0]
    np.testing.assert_allclose(output[:, 2:], attend(layer, inputs)[0], atol=FLOAT32)


def test_what_lies_before_the_window_and_after_the_position_changes_nothing():
    layer, inputs = KeyValueSplitAttention(2), normal(B, T, 3 * H)
    changed = inputs.copy()
    changed[:, 0], changed[:, 5] = 3.0, -3.0
    outputs = attend(layer, inputs)[0], attend(layer, changed)[0]
    np.testing.assert_allclose(outputs[0][:, 3:5], outputs[1][:, 3:5], atol=EXACT)
    for t in (1, 2, 6):
        assert np.abs(outputs[0][:, t] - outputs[1][:, t]).max() > FLOAT32


def test_every_axis_left_of_the_last_two_is_batch():
    layer, inputs, mask = KeyValueSplitAttention(3), normal(B, 11, T, 3 * H), normal(B, 11, T) > -0.5
    layer.build(inputs.shape)
    output = to_numpy(compiled(with_and_without_weights, layer)(inputs, mask)[1])
    for n in range(11):
        np.testing.assert_allclose(output[:, n], attend(layer, inputs[:, n], mask[:, n])[0], atol=FLOAT32)


# === Masks ===


@pytest.mark.parametrize("garbage", [np.nan, 1e30])
def test_masked_positions_have_no_influence_whatever_they_hold(garbage):
    layer, inputs, factors = KeyValueSplitAttention(3), normal(B, T, 3 * H), normal(B, T, H)
    right = attend(layer, inputs, GAPS)[0]
    inputs[~GAPS] = garbage
    np.testing.assert_allclose(attend(layer, inputs, GAPS)[0], right, atol=EXACT)
    found = gradient(lambda inputs: ops.sum(layer(inputs, mask=GAPS) * factors), inputs)
    assert np.isfinite(found).all()
    assert not found[~GAPS].any()


# === Symbolic, compiled, saved ===


def test_output_and_weights_of_any_length_through_a_file_and_compiled(tmp_path):
    inputs = keras.Input((None, 3 * H))
    layer = KeyValueSplitAttention(3, alignment=Sparsemax(), dtype="mixed_bfloat16")
    outputs = layer(keras.layers.Masking()(inputs), return_attention_scores=True)
    assert [(tensor.shape, tensor.dtype) for tensor in outputs] == [
        ((None, None, H), "bfloat16"),
        ((None, None, 3), "bfloat16"),
    ]
    model = keras.Model(inputs, outputs)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    loaded.compile(jit_compile=keras.backend.backend() != "torch")
    for array in (np.where(GAPS[..., None], normal(B, T, 3 * H), 0.0), normal(3, 2, 3 * H)):
        for found, right in zip(loaded.predict_on_batch(array), to_numpy(model(array)), strict=True):
            assert found.shape == right.shape
            np.testing.assert_allclose(found.astype("float32"), right.astype("float32"), atol=1e-2)


def test_no_position_gives_no_output():
    output, weights = KeyValueSplitAttention(3)(normal(B, 0, 3 * H), return_attention_scores=True)
    assert (output.shape, weights.shape) == ((B, 0, H), (B, 0, 3))


# === Errors ===


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"window": 0}, ValueError, "`window` must be a positive integer. Received: 0"),
        ({"window": 3, "num_parts": 4}, ValueError, r"`num_parts` must be 2 .* or 3 .*Received: 4"),
        ({"window": 3, "alignment": "monotonic"}, ValueError, r"Monotonic .*on its own"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        KeyValueSplitAttention(**arguments)


def test_shapes_and_masks_that_do_not_fit():
    with pytest.raises(ValueError, match=r"num_parts=3 parts .*multiple.* \(2, 7, 11\).*Dense\(12\)"):
        KeyValueSplitAttention(3)(normal(B, T, 11))
    with pytest.raises(ValueError, match=r"`mask` must have one entry for each position, shape \(2, 7\).* \(2, 5\)"):
        KeyValueSplitAttention(3)(normal(B, T, 3 * H), mask=np.ones((B, 5), bool))
