"""`position=` of the Transformer blocks: in the self-attention, shared or of its own, beside a template or without."""

import keras
import numpy as np
import pytest
from keras import ops
from reference.arrays import normal, to_numpy
from tolerances import EXACT, FLOAT32

from keras_attention.layers import MultiHeadAttention, TransformerDecoderBlock, TransformerEncoderBlock
from keras_attention.positions import PositionScheme, SlidingWindow

B, T, S, D, N, HIDDEN, SLOTS = 2, 5, 7, 6, 3, 13, 11


@keras.saving.register_keras_serializable(package="tests.blocks")
class Slopes(PositionScheme):
    """A learned number for each head, times the distance, is added; the blocks of a stack share it."""

    shared = True

    def build(self, query_shape):
        self.slope = self.add_weight(name="slope", shape=(query_shape[1],), initializer="ones")
        self.built = True

    def bias(self, query_positions, key_positions):
        distance = query_positions[..., :, None] - key_positions[..., None, :]
        return -ops.cast(ops.abs(distance), "float32")[:, None] * self.slope[:, None, None]


class OwnSlopes(Slopes):
    shared = False


KINDS = {"encoder": TransformerEncoderBlock, "decoder": TransformerDecoderBlock}
SHAPES = {"encoder": [(B, T, D)], "decoder": [(B, T, D), (B, S, D)]}
both_blocks = pytest.mark.parametrize("side", KINDS)


def built(side, **arguments):
    block = KINDS[side](intermediate_dim=HIDDEN, **arguments)
    block.build(*SHAPES[side])
    block.set_weights([normal(*weight.shape, seed=index) / 2 for index, weight in enumerate(block.weights)])
    return block


def output_of(block, side):
    return to_numpy(block(*(normal(*shape, seed=seed) for seed, shape in enumerate(SHAPES[side]))))


@both_blocks
def test_the_shorthand_is_the_position_of_a_template(side):
    shorthand = built(side, num_heads=N, position=SlidingWindow(2))
    template = built(side, attention=MultiHeadAttention(N, D // N, position=SlidingWindow(2)))
    beside = built(side, attention=MultiHeadAttention(N, D // N), position=SlidingWindow(2))
    plain = built(side, num_heads=N)
    expected = output_of(shorthand, side)
    for block in (template, beside):
        np.testing.assert_allclose(output_of(block, side), expected, atol=EXACT)
    assert np.abs(output_of(plain, side) - expected).max() > FLOAT32


def test_the_attention_to_the_source_has_no_position():
    block = built("decoder", num_heads=N, position=OwnSlopes())
    assert block.self_attention.position is block.position and block.cross_attention.position is None


@both_blocks
@pytest.mark.parametrize("template", [None, MultiHeadAttention(N, D // N)], ids=["heads", "template"])
def test_the_position_comes_back_from_the_config(side, template):
    heads = {"num_heads": N} if template is None else {"attention": template}
    block = built(side, position=SlidingWindow(2), **heads)
    copied = KINDS[side].from_config(block.get_config())
    copied.build(*SHAPES[side])
    copied.set_weights(block.get_weights())
    np.testing.assert_allclose(output_of(copied, side), output_of(block, side), atol=EXACT)
    assert copied.get_config() == block.get_config()


@pytest.mark.parametrize("where", ["position", "cross_position"])
def test_decoding_step_by_step_equals_decoding_at_once(where):
    block, target = built("decoder", num_heads=N, **{where: OwnSlopes()}), normal(B, T, D)
    source, source_mask = normal(B, S, D, seed=1), np.arange(S) % 3 > 0
    source_mask = np.stack([source_mask, ~source_mask])
    expected = to_numpy(block(target, source, source_mask=source_mask))
    cache = block.initial_cache(source, SLOTS, source_mask=source_mask)
    for t in range(T):
        output, cache = block(target[:, t : t + 1], cache=cache, cache_index=t)
        np.testing.assert_allclose(to_numpy(output)[:, 0], expected[:, t], rtol=FLOAT32, atol=FLOAT32)


@pytest.mark.parametrize("target_is_padded", [False, True])
@pytest.mark.parametrize("source_is_padded", [False, True])
def test_target_and_source_are_counted_from_0_each(target_is_padded, source_is_padded):
    seen = []

    class Seeing(PositionScheme):
        def bias(self, query_positions, key_positions):
            seen.extend(to_numpy(positions).tolist()[0] for positions in (query_positions, key_positions))

    block, inputs = TransformerDecoderBlock(N, HIDDEN, cross_position=Seeing()), normal(1, T, D)
    mask, counted = np.array([[False, True, False, True, True]]), [0, 0, 0, 1, 2]
    masks = {"target_mask": mask if target_is_padded else None, "source_mask": mask if source_is_padded else None}
    block(inputs, inputs, **masks)  # as many of one as of the other
    everything = list(range(T))
    assert seen[-2] == (counted if target_is_padded else everything)
    assert seen[-1] == (counted if source_is_padded else everything)


def test_one_shared_scheme_is_one_table_also_after_loading(tmp_path):
    scheme, inputs = Slopes(), keras.Input((None, D))
    hidden = TransformerEncoderBlock(N, HIDDEN, position=scheme)(inputs)
    hidden = TransformerEncoderBlock(N, HIDDEN, position=scheme)(hidden)
    outputs = MultiHeadAttention(N, D // N, position=scheme)(hidden, hidden)
    model, array = keras.Model(inputs, outputs), normal(B, T, D)
    model.set_weights([normal(*weight.shape, seed=index) / 2 for index, weight in enumerate(model.weights)])
    for _ in range(2):
        model.save(tmp_path / "model.keras")
        loaded = keras.saving.load_model(tmp_path / "model.keras")
        np.testing.assert_allclose(to_numpy(loaded(array)), to_numpy(model(array)), atol=EXACT)
        for each in (model, loaded):
            assert len([weight for weight in each.weights if weight.name == "slope"]) == 1
        model = loaded


def test_a_scheme_that_is_not_shared_belongs_to_one_attention():
    scheme = OwnSlopes()
    built("encoder", num_heads=N, position=scheme)
    with pytest.raises(ValueError, match=r"position scheme belongs to one attention layer.* is built already"):
        built("encoder", num_heads=N, position=scheme)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"attention": MultiHeadAttention(N, 2, position=SlidingWindow(3)), "position": SlidingWindow(2)},
            ValueError,
            r"`position` must be left out beside an `attention` that has one itself.* position=<SlidingWindow",
        ),
        (
            {"num_heads": N, "position": 3},
            TypeError,
            r"`position` must be .*`PositionScheme`.* Received: 3 of type int",
        ),
    ],
)
def test_positions_that_do_not_fit_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        built("encoder", **arguments)
