"""The memory of earlier segments in the encoder block, as in Transformer-XL."""

import keras
import numpy as np
import pytest
from compiled import compiled
from reference import transformer
from reference.arrays import normal, to_numpy
from reference.attention import causal
from reference.gradients import gradient
from tolerances import EXACT, FLOAT32

from keras_attention.layers import TransformerEncoderBlock
from keras_attention.ops import next_memory
from keras_attention.positions import SlidingWindow

B, D, N, HIDDEN, M, T, LENGTH = 2, 6, 3, 13, 5, 3, 17

SEGMENTS = [slice(start, min(start + T, LENGTH)) for start in range(0, LENGTH, T)]  # the last one is shorter


def built(seed=0, **arguments):
    block = TransformerEncoderBlock(N, HIDDEN, **arguments)
    block.build((B, T, D))
    block.set_weights([normal(*weight.shape, seed=seed + index) / 2 for index, weight in enumerate(block.weights)])
    return block


def stack(**arguments):
    return [built(seed=100 * index, normalize_first=bool(index), **arguments) for index in range(2)]


def read_in_segments(blocks, text, **options):
    """The output of the last block for `text (B, length, D)`, with M positions of each segment's past as memory."""
    memories, outputs = [None] * len(blocks), []
    for segment in SEGMENTS:
        hidden = text[:, segment]
        for index, block in enumerate(blocks):
            memory, memories[index] = memories[index], next_memory(memories[index], hidden, M)
            hidden = block(hidden, memory=memory, use_causal_mask=True, **options)
        outputs.append(to_numpy(hidden))
    return np.concatenate(outputs, axis=1)


def reach():
    """Mask `(LENGTH, LENGTH)`: each position sees its own segment and M positions before it, nothing later."""
    mask = np.zeros((LENGTH, LENGTH), bool)
    for segment in SEGMENTS:
        mask[segment, max(segment.start - M, 0) : segment.stop] = True
    return mask & causal(LENGTH, LENGTH)


def test_segments_follow_the_recurrence_of_the_paper():
    blocks, text = stack(), normal(B, LENGTH, D)
    memories, expected = [np.zeros((B, 0, D))] * 2, []
    for segment in SEGMENTS:
        hidden = text[:, segment]
        for index, block in enumerate(blocks):
            extended = np.concatenate([memories[index], hidden], axis=1)
            memories[index] = extended[:, -M:]
            mask = causal(extended.shape[1], extended.shape[1])
            hidden = transformer.encoder_block(block, extended, mask)[:, -hidden.shape[1] :]
        expected.append(hidden)
    output = read_in_segments(blocks, text)
    np.testing.assert_allclose(output, np.concatenate(expected, axis=1), rtol=FLOAT32, atol=FLOAT32)


@pytest.mark.parametrize("position", ["alibi", "transformer_xl"])
def test_segments_are_the_joined_text_with_the_same_reach(position):
    blocks, text = stack(position=position), normal(B, LENGTH, D)
    expected = text
    for block in blocks:
        expected = block(expected, attention_mask=reach())
    np.testing.assert_allclose(read_in_segments(blocks, text), to_numpy(expected), rtol=FLOAT32, atol=FLOAT32)


def test_a_window_within_the_memory_reads_as_the_whole_text():
    blocks, text = [built(seed=seed, position=SlidingWindow(M + 1)) for seed in (0, 100)], normal(B, LENGTH, D)
    expected = text
    for block in blocks:
        expected = block(expected, use_causal_mask=True)
    np.testing.assert_allclose(read_in_segments(blocks, text), to_numpy(expected), rtol=FLOAT32, atol=FLOAT32)


def test_padding_in_the_memory_is_not_there_whatever_it_holds():
    block, text = built(position=SlidingWindow(4)), normal(B, M + T, D)
    expected, weights = to_numpy(block(text[:, M:], memory=text[:, 2:M], return_attention_scores=True))
    memory, mask = text[:, :M].copy(), np.array([[False] * 2 + [True] * 3] * B)
    memory[:, :2] = np.nan
    outputs = block(text[:, M:], memory=memory, memory_mask=mask, return_attention_scores=True)
    output, padded = to_numpy(outputs)
    np.testing.assert_allclose(output, expected, rtol=FLOAT32, atol=FLOAT32)
    np.testing.assert_allclose(padded[..., 2:], weights, atol=FLOAT32)
    assert padded.shape == (B, N, T, M + T) and not padded[..., :2].any()
    implicit = keras.layers.Masking()(np.nan_to_num(memory))
    np.testing.assert_allclose(to_numpy(block(text[:, M:], memory=implicit)), expected, rtol=FLOAT32, atol=FLOAT32)


def test_padding_in_the_segment_moves_no_position():
    block, text = built(position=SlidingWindow(3)), normal(B, M + T, D)
    padded = np.concatenate([text[:, M : M + 1], np.full((B, 1, D), np.nan, "float32"), text[:, M + 1 :]], axis=1)
    mask = np.array([[True, False, True, True]] * B)
    output = to_numpy(block(padded, mask=mask, memory=text[:, :M]))
    expected = to_numpy(block(text[:, M:], memory=text[:, :M]))
    np.testing.assert_allclose(output[:, [0, 2, 3]], expected, rtol=FLOAT32, atol=FLOAT32)


def test_no_gradient_flows_into_the_memory():
    block, text = built(), normal(B, M + T, D)
    # Its sum, once, so that torch has a gradient at all.
    for_memory = gradient(
        lambda memory: keras.ops.sum(block(text[:, M:], memory=memory) ** 2) + keras.ops.sum(memory), text[:, :M]
    )
    np.testing.assert_array_equal(for_memory, 1.0)
    for_inputs = gradient(lambda inputs: keras.ops.sum(block(inputs, memory=text[:, :M]) ** 2), text[:, M:])
    assert for_inputs.any()


def test_a_memory_of_unknown_length_in_a_graph():
    inputs, memory = keras.Input((None, D)), keras.Input((None, D))
    block = built()
    output, weights = block(inputs, memory=memory, return_attention_scores=True)
    assert (output.shape, weights.shape) == ((None, None, D), (None, N, None, None))
    known = block(keras.Input((T, D)), memory=keras.Input((M, D)), return_attention_scores=True)[1]
    assert known.shape == (None, N, T, M + T)
    model, text = keras.Model([inputs, memory], output), normal(B, M + T, D)
    expected = to_numpy(block(text[:, M:], memory=text[:, :M]))
    found = compiled(lambda model, *tensors: model(list(tensors)), model)(text[:, M:], text[:, :M])
    np.testing.assert_allclose(to_numpy(found), expected, rtol=FLOAT32, atol=FLOAT32)


def test_half_precision_takes_a_memory():
    block, text = built(dtype="mixed_bfloat16"), normal(B, M + T, D)
    full = to_numpy(built()(text[:, M:], memory=text[:, :M]))
    output = block(text[:, M:], memory=text[:, :M])
    assert keras.backend.standardize_dtype(output.dtype) == "bfloat16"
    np.testing.assert_allclose(to_numpy(keras.ops.cast(output, "float32")), full, atol=0.1)


@pytest.mark.parametrize("shape", [(B, M, D + 1), (B + 1, M, D), (M, D)], ids=str)
def test_a_memory_that_does_not_fit_is_an_error_also_in_a_graph(shape):
    message = rf"batch and the width of the inputs, shape \(2, M, 6\)\. Received memory of shape \({shape[0]}, "
    for kind in (normal, lambda *shape: keras.Input(batch_shape=shape)):
        with pytest.raises(ValueError, match=message):
            built()(kind(B, T, D), memory=kind(*shape))


def test_a_mask_that_does_not_fit_the_memory_is_an_error():
    with pytest.raises(
        ValueError, match=r"`memory_mask` must have one entry for each position, shape \(2, 5\).* \(2, 3\)"
    ):
        built()(normal(B, T, D), memory=normal(B, M, D), memory_mask=np.ones((B, T), bool))
    with pytest.raises(ValueError, match=r"`memory_mask` belongs to a `memory`\. Received a mask of shape \(2, 5\)"):
        built()(normal(B, T, D), memory_mask=np.ones((B, M), bool))


# === What is kept ===


def test_a_memory_of_other_inputs_is_an_error():
    message = r"one batch and one width.*Received shapes \(2, 5, 6\) and \(2, 3, 7\)"
    with pytest.raises(ValueError, match=message):
        next_memory(normal(B, M, D), normal(B, T, D + 1), M)


def test_the_last_positions_of_memory_and_inputs_are_kept():
    memory, inputs = normal(B, M, D), normal(B, T, D, seed=1)
    joined = np.concatenate([memory, inputs], axis=1)
    for length in (1, T, M, 29):
        np.testing.assert_allclose(next_memory(memory, inputs, length), joined[:, -length:], atol=EXACT)
    np.testing.assert_allclose(next_memory(None, inputs, 2), inputs[:, -2:], atol=EXACT)
    masks = np.array([[True] * M] * B), np.array([[True, False, True]] * B)
    assert to_numpy(next_memory(*masks, 4)).tolist() == [[True, True, False, True]] * B
    with pytest.raises(ValueError, match=r"`length` must be a positive integer\. Received: 0\."):
        next_memory(memory, inputs, 0)
