import re

import keras
import numpy as np
import pytest
from keras import ops
from reference import attention, transformer
from reference.arrays import normal, to_numpy
from tolerances import EXACT, FLOAT32

from keras_attention.alignments import AttentionSink
from keras_attention.layers import MultiHeadAttention, TransformerDecoderBlock
from keras_attention.scores import AdditiveScore, SoftCap

B, T, S, D, D_SOURCE, N, HIDDEN, SLOTS = 2, 5, 7, 6, 11, 3, 13, 17

ORDERS = pytest.mark.parametrize("normalize_first", [False, True], ids=["post", "pre"])


def built(**arguments):
    block = TransformerDecoderBlock(**{"num_heads": N, "intermediate_dim": HIDDEN, **arguments})
    block.build((B, None, D), (B, None, D_SOURCE))
    block.set_weights([normal(*weight.shape, seed=index) / 2 for index, weight in enumerate(block.weights)])
    return block


@pytest.fixture
def target():
    return normal(B, T, D)


@pytest.fixture
def source():
    return normal(B, S, D_SOURCE, seed=1)


@pytest.fixture
def masks():
    return {
        "target_mask": np.array([[True, True, True, False, False], [True] * T]),
        "source_mask": np.array([[True, True, True, True, True, False, False], [True, False] + [True] * 5]),
    }


@ORDERS
def test_output_equals_the_formula(normalize_first, target, source):
    block = built(normalize_first=normalize_first)
    expected = transformer.decoder_block(block, target, source)
    np.testing.assert_allclose(block(target, source), expected, rtol=FLOAT32, atol=FLOAT32)


@ORDERS
def test_output_under_masks_equals_the_formula(normalize_first, target, source, masks):
    block = built(normalize_first=normalize_first)
    target_mask, source_mask = masks["target_mask"][:, None], masks["source_mask"][:, None, None]
    extra = normal(B, T, T) > -1
    self_mask = target_mask[..., None] & target_mask[..., None, :] & extra[:, None]
    padding_is_zero = np.where(masks["target_mask"][..., None], target, 0)
    expected = transformer.decoder_block(
        block, padding_is_zero, source, self_mask, target_mask[..., None] & source_mask
    )
    output = block(target, source, **masks, attention_mask=extra)
    np.testing.assert_allclose(output, expected, rtol=FLOAT32, atol=FLOAT32)


@ORDERS
def test_weights_come_as_self_and_cross(normalize_first, target, source, masks):
    block = built(normalize_first=normalize_first)
    output, weights = to_numpy(block(target, source, **masks, return_attention_scores=True))
    np.testing.assert_allclose(block(target, source, **masks), output, atol=EXACT)
    assert {name: array.shape for name, array in weights.items()} == {"self": (B, N, T, T), "cross": (B, N, T, S)}
    assert not np.triu(weights["self"], 1).any()
    real = np.broadcast_to(masks["target_mask"][:, None], (B, N, T))
    for array in weights.values():
        np.testing.assert_allclose(array.sum(axis=-1), real, atol=FLOAT32)
    assert not weights["cross"][0, ..., 5:].any()
    read = to_numpy(block.before("self_attention", target))
    mask = masks["target_mask"][:, None, None] & masks["target_mask"][:, None, :, None] & attention.causal(T, T)
    expected = attention.multi_head_attention(read, read, read, mask, block.self_attention.get_weights())
    np.testing.assert_allclose(weights["self"], expected[1], atol=FLOAT32)


def test_without_the_causal_mask_every_position_is_seen(target, source):
    _, weights = built()(target, source, use_causal_mask=False, return_attention_scores=True)
    assert (to_numpy(weights["self"]) > 0).all()


@ORDERS
def test_padding_has_no_influence_whatever_it_holds(normalize_first, target, source):
    block = built(normalize_first=normalize_first)
    expected = to_numpy(block(target[:, :3], source[:, :4]))
    target[:, 3:] = source[:, 4:] = np.nan
    masks = {"target_mask": np.arange(T) < 3, "source_mask": np.arange(S) < 4}
    masks = {name: np.tile(mask, (B, 1)) for name, mask in masks.items()}
    output = to_numpy(block(target, source, **masks))[:, :3]
    np.testing.assert_allclose(output, expected, rtol=FLOAT32, atol=FLOAT32)


def test_a_source_that_is_all_padding_leaves_the_bias_of_the_cross_attention(target, source):
    block = built(normalize_first=True)
    block.cross_attention.output_dense.bias.assign(np.zeros(D))
    mask = np.array([[False] * S, [True] * S])
    output, weights = to_numpy(block(target, source, source_mask=mask, return_attention_scores=True))
    assert np.isfinite(output).all()
    assert not weights["cross"][0].any()
    other_source = to_numpy(block(target, source + 1, source_mask=mask))
    np.testing.assert_allclose(other_source[0], output[0], atol=EXACT)


def test_implicit_masks_are_honoured_and_that_of_the_target_passed_on():
    target_ids, source_ids = np.array([[4, 5, 0], [6, 7, 8]]), np.array([[4, 5, 6, 0], [7, 0, 0, 0]])
    target = keras.layers.Embedding(11, D, mask_zero=True)(target_ids)
    source = keras.layers.Embedding(11, D_SOURCE, mask_zero=True)(source_ids)
    block = built()
    output = block(target, source)
    np.testing.assert_array_equal(to_numpy(output._keras_mask), target_ids != 0)
    expected = block(to_numpy(target), to_numpy(source), target_mask=target_ids != 0, source_mask=source_ids != 0)
    np.testing.assert_allclose(output, expected, atol=EXACT)


# === Decoding ===


@pytest.mark.parametrize("chunks", [[1] * T, [2, 2, 1]], ids=str)
@pytest.mark.parametrize(("normalize_first", "score"), [(False, "scaled_dot"), (True, "additive")])
def test_decoding_step_by_step_equals_decoding_at_once(normalize_first, chunks, score, target, source, masks):
    block = built(normalize_first=normalize_first, score=score)
    source_mask = masks["source_mask"]
    expected = block(target, source, source_mask=source_mask, return_attention_scores=True)
    expected, expected_weights = to_numpy(expected)
    cache, start = block.initial_cache(source, SLOTS, source_mask=source_mask), 0
    for length in chunks:
        positions = slice(start, start + length)
        output, weights, cache = block(
            target[:, positions],
            source_mask=source_mask,
            cache=cache,
            cache_index=start,
            return_attention_scores=True,
        )
        np.testing.assert_allclose(output, expected[:, positions], rtol=FLOAT32, atol=FLOAT32)
        np.testing.assert_allclose(weights["self"][..., :T], expected_weights["self"][:, :, positions], atol=FLOAT32)
        np.testing.assert_allclose(weights["cross"], expected_weights["cross"][:, :, positions], atol=FLOAT32)
        start += length


def test_decoding_with_padding_on_the_left(target, source):
    block = built()
    mask = np.ones((B, SLOTS), bool)
    mask[0, :2] = False
    expected = to_numpy(block(target, source, target_mask=mask[:, :T]))
    cache, outputs = block.initial_cache(source, SLOTS), []
    for t in range(T):
        output, cache = block(target[:, t : t + 1], target_mask=mask, cache=cache, cache_index=t)
        outputs.append(to_numpy(output))
    real = mask[:, :T]
    np.testing.assert_allclose(np.concatenate(outputs, axis=1)[real], expected[real], rtol=FLOAT32, atol=FLOAT32)


def test_the_cache_holds_slots_for_the_target_and_the_projected_source(source):
    cache = built().initial_cache(source, SLOTS)
    shapes = {name: {part: slots.shape for part, slots in slots.items()} for name, slots in cache.items()}
    size = D // N
    assert shapes == {
        "self": {"key": (B, N, SLOTS, size), "value": (B, N, SLOTS, size)},
        "cross": {"key": (B, N, S, size), "value": (B, N, S, size)},
    }


def test_a_step_is_the_same_for_an_index_that_is_a_tensor(target, source):
    block = built()
    steps = []
    for index in (3, ops.convert_to_tensor(3, "int32")):
        output, _ = block(target[:, :1], cache=block.initial_cache(source, SLOTS), cache_index=index)
        steps.append(to_numpy(output))
    np.testing.assert_allclose(steps[0], steps[1], atol=EXACT)


# === Parts ===


def test_each_attention_has_a_score_of_its_own(target, source):
    block = TransformerDecoderBlock(N, HIDDEN, score=AdditiveScore(units=5))
    block(target, source)
    scores = block.self_attention.score, block.cross_attention.score
    assert [score.units for score in scores] == [5, 5]
    assert scores[0] is not scores[1]
    assert np.abs(to_numpy(scores[0].query_kernel.value) - to_numpy(scores[1].query_kernel.value)).min() > 0


def test_every_dropout_has_a_seed_of_its_own(target, source):
    block = TransformerDecoderBlock(N, HIDDEN, dropout=0.5, seed=3)
    block(target, source)
    attentions = block.self_attention, block.cross_attention
    layers = [*(attention.dropout_layer for attention in attentions), *block.dropouts.values()]
    assert [layer.rate for layer in layers] == [0.5] * 5
    assert len({layer.seed for layer in layers}) == 5


def test_symbolic_output_and_weights():
    target, source = keras.Input((None, D)), keras.Input((S, D_SOURCE))
    output, weights = TransformerDecoderBlock(N, HIDDEN)(target, source, return_attention_scores=True)
    assert output.shape == (None, None, D)
    assert (weights["self"].shape, weights["cross"].shape) == ((None, N, None, None), (None, N, None, S))


# === Errors ===


def test_heads_must_divide_the_width(source):
    message = r"`num_heads` must divide the width D.* Received num_heads=3 and inputs of shape \(2, 5, 7\) \(D=7\)"
    with pytest.raises(ValueError, match=message):
        TransformerDecoderBlock(N, HIDDEN)(normal(B, T, 7), source)


def test_a_block_needs_a_source_or_a_cache(target):
    message = r"The decoder block needs `source`.* or a `cache`.* Received neither, with target of shape \(2, 5, 6\)"
    with pytest.raises(ValueError, match=message):
        built()(target)


def test_a_block_that_is_not_built_needs_a_source_too(target):
    with pytest.raises(ValueError, match=r"The decoder block needs `source`"):
        TransformerDecoderBlock(N, HIDDEN)(target)


def test_target_and_source_must_have_one_batch(target):
    with pytest.raises(ValueError, match=r"agree in every axis left of the last two.* \(2, 5, 6\).* \(3, 7, 11\)"):
        TransformerDecoderBlock(N, HIDDEN)(target, normal(3, S, D_SOURCE))


@pytest.mark.parametrize(
    ("name", "shape", "expected"), [("target_mask", (B, S), r"\(2, 5\)"), ("source_mask", (B, T), r"\(2, 7\)")]
)
def test_masks_that_do_not_fit(name, shape, expected, target, source):
    with pytest.raises(ValueError, match=rf"must have one entry for each position, shape {expected}"):
        built()(target, source, **{name: np.ones(shape, bool)})


@pytest.mark.parametrize("is_built", [False, True])
def test_sequences_of_another_rank_are_refused_with_their_shape(is_built, target, source):
    for name, tensors in (("target", (target[:, None], source)), ("source", (target, source[0]))):
        shape = str(tensors[name == "source"].shape)
        for inputs in (tensors, [keras.Input(batch_shape=tensor.shape) for tensor in tensors]):
            block = built() if is_built else TransformerDecoderBlock(N, HIDDEN)
            with pytest.raises(ValueError, match=rf"`{name}` must have 3 axes.* Received shape {re.escape(shape)}"):
                block(*inputs)


def test_the_initializers_are_those_of_every_projection_and_of_the_feed_forward_network(target, source):
    block = TransformerDecoderBlock(
        N, HIDDEN, normalize_first=True, kernel_initializer="zeros", bias_initializer=keras.initializers.Constant(0.5)
    )
    # Without kernels all three updates are their last bias.
    np.testing.assert_allclose(block(target, source), target + 0.5 + 0.5 + 0.5, atol=FLOAT32)


def test_the_epsilon_is_added_to_the_variance(target, source):
    block = TransformerDecoderBlock(N, HIDDEN, layer_norm_epsilon=0.5, kernel_initializer="zeros")
    expected = target
    for _ in range(3):
        deviation = np.sqrt(expected.var(axis=-1, keepdims=True) + 0.5)
        expected = (expected - expected.mean(axis=-1, keepdims=True)) / deviation
    np.testing.assert_allclose(block(target, source), expected, atol=FLOAT32)


# === An attention as a template ===


def test_a_template_gives_what_its_shorthands_give(target, source, masks):
    shorthand = built(score="additive", attention_dropout=0.3)
    template = MultiHeadAttention(N, D // N, dropout=0.3, score="additive")
    block = built(num_heads=None, attention=template)
    assert [weight.shape for weight in block.weights] == [weight.shape for weight in shorthand.weights]
    block.set_weights(shorthand.get_weights())
    np.testing.assert_allclose(block(target, source, **masks), shorthand(target, source, **masks), atol=EXACT)
    assert block.num_heads == N and not template.built
    assert block.self_attention.dropout == block.cross_attention.dropout == 0.3


def test_every_option_of_a_template_reaches_both_attentions_and_comes_back_from_the_config(target, source):
    template = MultiHeadAttention(5, 2, value_dim=7, use_bias=False, use_gate=True, seed=3, alignment="sampled")
    block = built(num_heads=None, attention=template)
    copied = TransformerDecoderBlock.from_config(block.get_config())
    copied.build((B, None, D), (B, None, D_SOURCE))
    copied.set_weights(block.get_weights())
    np.testing.assert_allclose(copied(target, source), block(target, source), atol=EXACT)
    attentions = copied.self_attention, copied.cross_attention
    for each in attentions:
        assert (each.num_heads, each.key_dim, each.value_dim, each.use_bias, each.use_gate) == (5, 2, 7, False, True)
    assert len({each.seed for each in attentions}) == len({each.alignment.seed for each in attentions}) == 2


TEMPLATES = {
    "window-gate": {"num_heads": 5, "sliding_window": 3, "use_gate": True},
    "grouped-sink-cap": {
        "num_heads": 4,
        "num_key_value_heads": 2,
        "use_query_key_norm": True,
        "alignment": AttentionSink(num_heads=4),
        "score": SoftCap("additive", 0.5),
    },
}


@pytest.mark.parametrize("options", TEMPLATES.values(), ids=TEMPLATES)
def test_decoding_step_by_step_equals_decoding_at_once_with_a_template(options, target, source):
    block = built(num_heads=None, attention=MultiHeadAttention(key_dim=2, **options))
    expected, cache = to_numpy(block(target, source)), block.initial_cache(source, SLOTS)
    for t in range(T):
        output, cache = block(target[:, t : t + 1], cache=cache, cache_index=t)
        np.testing.assert_allclose(output[:, 0], expected[:, t], rtol=FLOAT32, atol=FLOAT32)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"num_heads": 2},
            ValueError,
            "`num_heads` must be left out beside `attention`.* Received num_heads=2 and .*=3",
        ),
        ({"attention_dropout": 0.1}, ValueError, "attention_dropout=0.1 and an attention with dropout=0.0"),
        ({"score": "additive"}, ValueError, "`score` must be left out beside `attention`"),
        ({"attention": 3}, TypeError, "`attention` must be a `MultiHeadAttention`.* Received: 3 of type int"),
        ({"attention": None}, ValueError, "`num_heads` must be a positive integer. Received: None"),
        (
            {"attention": MultiHeadAttention(3, 2, output_shape=7)},
            ValueError,
            r"the query, here \(2, 5, 6\).* \(2, 5, 7\)",
        ),
    ],
)
def test_a_template_that_does_not_fit_is_refused(arguments, error, message, target, source):
    with pytest.raises(error, match=message):
        arguments = {"intermediate_dim": HIDDEN, "attention": MultiHeadAttention(3, 2), **arguments}
        TransformerDecoderBlock(**arguments)(target, source)
