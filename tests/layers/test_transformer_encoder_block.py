import re

import keras
import numpy as np
import pytest
from keras import ops
from reference import attention, transformer
from reference.arrays import normal, to_numpy
from tolerances import EXACT, FLOAT32

from keras_attention.layers import MultiHeadAttention, TransformerEncoderBlock
from keras_attention.positions import PositionScheme
from keras_attention.scores import AdditiveScore

B, T, D, N, HIDDEN = 2, 5, 6, 3, 13

ORDERS = pytest.mark.parametrize("normalize_first", [False, True], ids=["post", "pre"])


def built(**arguments):
    block = TransformerEncoderBlock(**{"num_heads": N, "intermediate_dim": HIDDEN, **arguments})
    block.build((B, T, D))
    block.set_weights([normal(*weight.shape, seed=index) / 2 for index, weight in enumerate(block.weights)])
    return block


@pytest.fixture
def inputs():
    return normal(B, T, D)


@pytest.fixture
def mask():
    return np.array([[True, True, True, False, False], [True, True, True, True, True]])


@ORDERS
def test_output_equals_the_formula(normalize_first, inputs, mask):
    block = built(normalize_first=normalize_first)
    np.testing.assert_allclose(block(inputs), transformer.encoder_block(block, inputs), rtol=FLOAT32, atol=FLOAT32)
    full = mask[:, None, None] & mask[:, None, :, None] & (normal(B, 1, T, T) > -1)
    padding_is_zero = np.where(mask[..., None], inputs, 0)
    expected = transformer.encoder_block(block, padding_is_zero, full)
    output = block(inputs, mask=mask, attention_mask=full[:, 0])
    np.testing.assert_allclose(output, expected, rtol=FLOAT32, atol=FLOAT32)


@ORDERS
def test_a_causal_block_equals_the_formula(normalize_first, inputs):
    block = built(normalize_first=normalize_first)
    expected = transformer.encoder_block(block, inputs, attention.causal(T, T))
    np.testing.assert_allclose(block(inputs, use_causal_mask=True), expected, rtol=FLOAT32, atol=FLOAT32)


def test_post_ln_ends_with_a_normalization_and_pre_ln_does_not(inputs):
    for normalize_first in (False, True):
        block = TransformerEncoderBlock(N, HIDDEN, normalize_first=normalize_first)
        mean = np.abs(to_numpy(block(inputs)).mean(axis=-1))
        assert (mean.max() < FLOAT32) is not normalize_first


@ORDERS
def test_weights_on_request_are_those_of_the_attention(normalize_first, inputs, mask):
    block = built(normalize_first=normalize_first)
    output, weights = to_numpy(block(inputs, mask=mask, return_attention_scores=True))
    np.testing.assert_allclose(block(inputs, mask=mask), output, atol=EXACT)
    assert weights.shape == (B, N, T, T)
    read = to_numpy(block.before("self_attention", inputs))
    full = mask[:, None, None] & mask[:, None, :, None]
    expected = attention.multi_head_attention(read, read, read, full, block.self_attention.get_weights())
    np.testing.assert_allclose(weights, expected[1], atol=FLOAT32)


@ORDERS
def test_padding_has_no_influence_whatever_it_holds(normalize_first, inputs, mask):
    block = built(normalize_first=normalize_first)
    expected = to_numpy(block(inputs[:, :3]))
    inputs[:, 3:] = np.nan
    mask[:] = [True, True, True, False, False]
    np.testing.assert_allclose(to_numpy(block(inputs, mask=mask))[:, :3], expected, rtol=FLOAT32, atol=FLOAT32)


def test_the_implicit_mask_is_honoured_and_passed_on():
    ids = np.array([[4, 5, 6, 0, 0], [7, 8, 9, 4, 0]])
    inputs, block = keras.layers.Embedding(11, D, mask_zero=True)(ids), built()
    output = block(inputs)
    np.testing.assert_array_equal(to_numpy(output._keras_mask), ids != 0)
    np.testing.assert_allclose(output, block(to_numpy(inputs), mask=ids != 0), atol=EXACT)


def test_masks_pass_through_a_stack_without_a_warning(recwarn):
    ids = keras.Input((None,), dtype="int32")
    vectors = keras.layers.Embedding(11, D, mask_zero=True)(ids)
    hidden, weights = built()(built()(vectors), return_attention_scores=True)
    model = keras.Model(ids, [hidden, weights])
    _, weights = model(np.array([[4, 5, 0, 0]], "int32"))
    assert not to_numpy(weights)[..., 2:].any()
    assert not recwarn.list


def test_layer_normalization_divides_by_the_standard_deviation_of_small_inputs():
    inputs = normal(1, T, D) * 0.03
    block = built(normalize_first=True)
    normalized = to_numpy(block.norms["self_attention"](inputs))
    scale, offset = block.norms["self_attention"].get_weights()
    deviation = ((normalized - offset) / scale).std(axis=-1)
    np.testing.assert_allclose(deviation, 1.0, atol=2e-2)  # 0.7 with an epsilon of 1e-3


def test_score_and_alignment_reach_the_attention(inputs):
    score = AdditiveScore(units=5)
    block = TransformerEncoderBlock(N, HIDDEN, score=score)
    block(inputs)
    assert isinstance(block.self_attention, MultiHeadAttention)
    assert type(block.self_attention.score) is AdditiveScore
    assert block.self_attention.score.units == 5
    assert block.self_attention.score is score


def test_dropout_is_on_the_weights_and_on_both_updates_with_seeds_of_their_own(inputs):
    block = TransformerEncoderBlock(N, HIDDEN, dropout=0.5, seed=3)
    block(inputs)
    layers = [block.self_attention.dropout_layer, *block.dropouts.values()]
    assert [layer.rate for layer in layers] == [0.5] * 3
    assert len({layer.seed for layer in layers}) == 3
    assert block.feed_forward.dropout == 0.0


def test_dropout_is_off_at_inference(inputs):
    block, plain = built(dropout=0.5, seed=3), built()
    np.testing.assert_allclose(block(inputs, training=False), plain(inputs), atol=EXACT)
    assert np.abs(to_numpy(block(inputs, training=True)) - to_numpy(plain(inputs))).max() > 0.1


def test_symbolic_output_and_weights():
    output, weights = TransformerEncoderBlock(N, HIDDEN)(keras.Input((None, D)), return_attention_scores=True)
    assert (output.shape, weights.shape) == ((None, None, D), (None, N, None, None))


def test_heads_must_divide_the_width():
    message = (
        r"`num_heads` must divide the width D of the inputs. Received num_heads=4 and inputs of shape \(2, 5, 6\) "
        r"\(D=6\). Choose a divisor of 6\."
    )
    with pytest.raises(ValueError, match=message):
        TransformerEncoderBlock(4, HIDDEN)(normal(B, T, 6))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"num_heads": 0}, ValueError, r"`num_heads` must be a positive integer. Received: 0\."),
        ({"intermediate_dim": -1}, ValueError, r"`intermediate_dim` must be a positive integer. Received: -1\."),
        ({"dropout": 1}, ValueError, r"`dropout` must be a number in \[0, 1\). Received: 1\."),
        ({"score": "adittive"}, ValueError, r'Unknown score: "adittive".*Did you mean "additive"'),
        ({"alignment": None}, TypeError, r"`alignment` must be one of .* Received: None of type NoneType"),
    ],
    ids=str,
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        TransformerEncoderBlock(**{"num_heads": N, "intermediate_dim": HIDDEN, **arguments})


@pytest.mark.parametrize("shape", [(T, D), (B, 4, T, D)])
@pytest.mark.parametrize("is_built", [False, True])
def test_inputs_of_another_rank_are_refused_with_their_shape(shape, is_built):
    block = built() if is_built else TransformerEncoderBlock(N, HIDDEN)
    message = rf"`inputs` must have 3 axes, `\(B, length, features\)`\. Received shape {re.escape(str(shape))}"
    for inputs in (normal(*shape), keras.Input(batch_shape=shape)):
        with pytest.raises(ValueError, match=message):
            block(inputs)
        with pytest.raises(ValueError, match=message):
            block(inputs, return_attention_scores=True)


def test_the_width_must_be_known():
    with pytest.raises(ValueError, match=r"`inputs` must have a known last axis.* \(None, 5, None\)"):
        TransformerEncoderBlock(N, HIDDEN)(keras.Input((5, None)))


# === Positions by hand ===


class FromPosition(PositionScheme):
    """Looks at the position itself, not at a distance."""

    def bias(self, query_positions, key_positions):
        return ops.cast(query_positions[..., :, None] % 2 - key_positions[..., None, :] % 3, "float32")


def test_a_text_in_a_row_of_two_with_positions_that_restart_is_that_text_alone(inputs):
    block = built(position=FromPosition())
    segment_ids = np.array([[1, 1, 1, 2, 2]])
    packed = block(inputs, attention_mask=segment_ids[:, :, None] == segment_ids[:, None], positions=[[0, 1, 2, 0, 1]])
    alone = block(inputs[:, 3:])
    np.testing.assert_allclose(to_numpy(packed)[:, 3:], to_numpy(alone), rtol=FLOAT32, atol=FLOAT32)


def test_positions_speak_of_the_memory_and_then_of_the_inputs(inputs):
    block = built(position=FromPosition())
    positions = np.array([[3, 4, 5, 7, 11], [0, 2, 4, 6, 8]])
    whole = block(inputs, positions=positions)
    pieces = block(inputs[:, 3:], memory=inputs[:, :3], positions=positions)
    np.testing.assert_allclose(to_numpy(pieces), to_numpy(whole)[:, 3:], rtol=FLOAT32, atol=FLOAT32)


def test_there_is_a_position_for_each_place(inputs):
    message = r"`positions` must have shape \(1, 5\), or \(2, 5\) for each row its own\. Received shape \(1, 3\)"
    with pytest.raises(ValueError, match=message):
        built(position=FromPosition())(inputs, positions=[[0, 1, 2]])


# === Initializers and epsilon ===


def test_the_initializers_are_those_of_every_projection_and_of_the_feed_forward_network(inputs):
    block = TransformerEncoderBlock(
        N, HIDDEN, normalize_first=True, kernel_initializer="zeros", bias_initializer=keras.initializers.Constant(0.5)
    )
    # Without kernels both updates are their last bias.
    np.testing.assert_allclose(block(inputs), inputs + 0.5 + 0.5, atol=FLOAT32)


def test_the_epsilon_is_added_to_the_variance(inputs):
    block = TransformerEncoderBlock(N, HIDDEN, layer_norm_epsilon=0.5, kernel_initializer="zeros")
    expected = inputs
    for _ in range(2):
        deviation = np.sqrt(expected.var(axis=-1, keepdims=True) + 0.5)
        expected = (expected - expected.mean(axis=-1, keepdims=True)) / deviation
    np.testing.assert_allclose(block(inputs), expected, atol=FLOAT32)


def test_one_initializer_gives_every_kernel_numbers_of_its_own():
    block = TransformerEncoderBlock(N, HIDDEN, kernel_initializer=keras.initializers.RandomNormal())
    block.build((B, T, D))
    kernels = [weight for weight in block.weights if weight.name == "kernel" and tuple(weight.shape) == (D, N, D // N)]
    assert len(kernels) == 3
    assert np.abs(to_numpy(kernels[0].value) - to_numpy(kernels[1].value)).min() > 0


def test_initializers_and_epsilon_come_back_from_the_config():
    block = TransformerEncoderBlock(
        N, HIDDEN, layer_norm_epsilon=0.25, kernel_initializer=keras.initializers.Constant(0.5)
    )
    config = TransformerEncoderBlock.from_config(block.get_config()).get_config()
    assert config["layer_norm_epsilon"] == 0.25
    assert config["kernel_initializer"]["config"] == {"value": 0.5}
    assert config["bias_initializer"] == "zeros"
