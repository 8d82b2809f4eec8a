import functools

import keras
import numpy as np
import pytest
from compiled import compiled
from keras import ops
from reference.arrays import normal, to_numpy
from reference.gradients import gradient
from reference.hierarchical_attention import hierarchical_attention as loop
from tolerances import EXACT, FLOAT32

from keras_attention.alignments.estimators import Recorder
from keras_attention.layers import HierarchicalAttention, SinusoidalPositionEncoding, TransformerEncoderBlock

BACKEND = keras.backend.backend()
B, L, W, D, P, U = 2, 3, 5, 7, 11, 13
PADDING = 1e-6  # how far padding may move a result

# Right-padded sentences; an empty one within a document, at its end, and a document that ends early.
MASK = np.zeros((B, L, W), bool)
for index, length in {(0, 0): 5, (0, 2): 3, (1, 0): 3, (1, 1): 5}.items():
    MASK[index][:length] = True
INPUTS = normal(B, L, W, D)


def recurrent(kind):
    return keras.layers.Bidirectional(kind(4, return_sequences=True))


ENCODERS = {
    "none": lambda: None,
    "gru": lambda: recurrent(keras.layers.GRU),
    "lstm": lambda: recurrent(keras.layers.LSTM),
    "convolution": lambda: keras.layers.Conv1D(7, 3, padding="same"),
    "transformer": lambda: TransformerEncoderBlock(7, 11),
    "sequential": lambda: keras.Sequential(
        [keras.layers.Dense(7), SinusoidalPositionEncoding(), TransformerEncoderBlock(7, 11)]
    ),
}
LEVELS = ("word", "sentence", "paragraph")


def make(encoder, depth=2, **options):
    keras.utils.set_random_seed(3)
    encoders = [ENCODERS[encoder]() for _ in range(depth)]
    return HierarchicalAttention(LEVELS[:depth], encoders, **options)


@functools.cache
def shared(encoder):
    """A layer of two levels that no test changes."""
    layer = make(encoder, units=U)
    layer.build(INPUTS.shape)
    return layer


# JAX compiles every encoder anew in every test: there one of each kind has to do.
each_encoder = pytest.mark.parametrize(
    "encoder", ENCODERS if BACKEND == "tensorflow" else ["none", "gru", "transformer"]
)


def close(received, expected, atol=FLOAT32):
    np.testing.assert_allclose(to_numpy(received), expected, atol=atol)


def call(layer, inputs, mask):
    """The output and the weights by level, as NumPy arrays."""
    inputs = inputs.astype("float32")
    if not layer.built:
        layer.build(inputs.shape)
    return to_numpy(compiled(with_weights, layer)(inputs, mask))


def with_weights(layer, inputs, mask, training=None):
    return layer(inputs, mask=mask, return_attention_scores=True, training=training)


def as_levels(layer):
    """What the loop needs: of each level its encoder, on one sequence without padding, and the weights of its pooling."""

    def on_one(encoder):
        return lambda vectors: to_numpy(encoder(vectors[None].astype("float32")))[0]

    return [
        (None if layer.encoders[level] is None else on_one(layer.encoders[level]), layer.poolings[level].get_weights())
        for level in layer.levels
    ]


# === The formula ===


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_output_and_weights_are_those_of_the_loop_at_any_depth(depth):
    layer, shape = make("none", depth, units=U), (B, P, L, W)[3 - depth :]
    shape = (B, *shape[-depth:])
    inputs, mask = normal(*shape, D, seed=depth), np.random.default_rng(depth).random(shape) > 0.3
    mask[0, 1:2] = False
    output, weights = to_numpy(with_weights(layer, inputs.astype("float32"), mask))
    expected, expected_weights = loop(inputs, mask, as_levels(layer))
    close(output, expected)
    assert list(weights) == list(LEVELS[:depth])
    for level, each in zip(layer.levels, expected_weights, strict=True):
        close(weights[level], each)


@each_encoder
def test_it_equals_a_loop_over_documents_and_sentences_without_padding(encoder):
    mask = MASK.copy()
    mask[1, :, 1] = False  # a hole
    output, weights = call(shared(encoder), INPUTS, mask)
    expected, expected_weights = loop(INPUTS, mask, as_levels(shared(encoder)))
    close(output, expected)
    close(weights["word"], expected_weights[0])
    close(weights["sentence"], expected_weights[1])


def test_every_axis_left_of_the_levels_is_batch():
    inputs, mask = normal(B, P, L, W, D), np.random.default_rng(7).random((B, P, L, W)) > 0.3
    output, weights = call(shared("gru"), inputs, mask)
    assert (
        output.shape == (B, P, 8) and weights["word"].shape == (B, P, L, W) and weights["sentence"].shape == (B, P, L)
    )
    for index in range(P):
        close(output[:, index], call(shared("gru"), inputs[:, index], mask[:, index])[0])


def test_every_pooling_has_weights_of_its_own():
    layer = make("none", depth=3, units=U)
    layer.build((B, P, L, W, D))
    shapes = [tuple(weight.shape) for weight in layer.trainable_weights]
    assert shapes == 3 * [(D, U), (U,), (U,)]
    assert len({layer.poolings[level].get_weights()[0].tobytes() for level in LEVELS}) == 3


def test_encoders_may_stand_at_some_levels_only():
    as_dictionary = HierarchicalAttention(encoders={"sentence": ENCODERS["convolution"]()})
    as_list = HierarchicalAttention(encoders=[None, ENCODERS["convolution"]()])
    for layer in (as_dictionary, as_list):
        assert call(layer, INPUTS, MASK)[0].shape == (B, 7)
        assert layer.encoders["word"] is None and len(layer.trainable_weights) == 8
    as_list.set_weights(as_dictionary.get_weights())
    close(call(as_list, INPUTS, MASK)[0], call(as_dictionary, INPUTS, MASK)[0], atol=EXACT)


# === Padding ===


def with_garbage(inputs, mask, more, content):
    """Inputs and mask with `more` padding after each axis, and `content` at all that is padding."""
    pads = [(0, size) for size in more]
    mask = np.pad(mask, [(0, 0), *pads])
    inputs = np.pad(inputs, [(0, 0), *pads, (0, 0)])
    return np.where(mask[..., None], inputs, content), mask


@each_encoder
def test_padding_of_any_content_and_size_changes_nothing(encoder):
    expected, expected_weights = call(shared(encoder), INPUTS, MASK)
    output, weights = call(shared(encoder), *with_garbage(INPUTS, MASK, (2, 2), np.nan))
    close(output, expected, atol=PADDING)
    close(weights["word"][:, :L, :W], expected_weights["word"], atol=PADDING)
    close(weights["sentence"][:, :L], expected_weights["sentence"], atol=PADDING)
    assert not weights["word"][:, L:].any() and not weights["word"][..., W:].any()
    assert not weights["sentence"][:, L:].any()


@pytest.mark.parametrize("encoder", ["gru", "convolution"])
def test_padding_changes_nothing_at_three_levels(encoder):
    inputs, mask = normal(B, P, L, W, D), np.zeros((B, P, L, W), bool)
    mask[0, 1], mask[0, 3:], mask[1, :2] = MASK[0], MASK[1], MASK[0]
    layer = make(encoder, depth=3)
    output, weights = call(layer, inputs, mask)
    padded, padded_weights = call(layer, *with_garbage(inputs, mask, (1, 2, 3), 1e30))
    close(padded, output, atol=PADDING)
    close(padded_weights["paragraph"][:, :P], weights["paragraph"], atol=PADDING)
    close(padded_weights["word"][:, :P, :L, :W], weights["word"], atol=PADDING)


@each_encoder
def test_padding_may_stand_anywhere(encoder):
    lines, words = np.ix_([0, 2, 3], [1, 2, 3, 5, 6])
    wide, wide_mask = np.full((B, L + 2, W + 2, D), np.nan, "float32"), np.zeros((B, L + 2, W + 2), bool)
    wide[:, lines, words], wide_mask[:, lines, words] = INPUTS, MASK
    expected, expected_weights = call(shared(encoder), INPUTS, MASK)
    output, weights = call(shared(encoder), wide, wide_mask)
    close(output, expected, atol=PADDING)
    close(weights["word"][:, lines, words], expected_weights["word"], atol=PADDING)


@each_encoder
def test_an_empty_sentence_in_the_middle_is_as_good_as_none(encoder):
    order = [0, 2, 1]  # the empty sentence at the end is padding
    output, weights = call(shared(encoder), INPUTS, MASK)
    expected, expected_weights = call(shared(encoder), INPUTS[:, order], MASK[:, order])
    close(output[0], expected[0], atol=PADDING)
    close(weights["sentence"][0, order], expected_weights["sentence"][0], atol=PADDING)
    assert weights["sentence"][0, 1] == 0 and not weights["word"][0, 1].any()


@each_encoder
def test_a_batch_of_one_equals_a_batch_of_many(encoder):
    output, weights = call(shared(encoder), INPUTS, MASK)
    for row in range(B):
        alone, alone_weights = call(shared(encoder), INPUTS[row : row + 1], MASK[row : row + 1])
        close(alone[0], output[row], atol=PADDING)
        close(alone_weights["word"][0], weights["word"][row], atol=PADDING)


@each_encoder
def test_weights_sum_to_one_for_what_is_present_and_to_zero_for_what_is_not(encoder):
    mask = MASK.copy()
    mask[1] = False
    output, weights = call(shared(encoder), INPUTS, mask)
    close(weights["word"].sum(axis=-1), mask.any(axis=-1).astype("float32"))
    close(weights["sentence"].sum(axis=-1), [1.0, 0.0])
    assert not output[1].any()


@pytest.mark.parametrize("encoder", ["gru", "convolution"])
def test_an_empty_document_has_a_finite_gradient(encoder):
    mask = MASK.copy()
    mask[1] = False
    inputs = np.where(mask[..., None], INPUTS, np.nan)
    layer = shared(encoder)  # made before JAX traces the function
    received = gradient(lambda tensor: ops.sum(layer(tensor, mask=mask) ** 2), inputs)
    assert np.isfinite(received).all()
    assert received[mask].any() and not received[~mask].any()


@pytest.mark.parametrize("encoder", ["gru", "convolution"])
@pytest.mark.parametrize("sizes", [(0, L, W), (B, 0, W), (B, L, 0)], ids=["documents", "sentences", "words"])
def test_nothing_at_all_gives_zeros(encoder, sizes):
    output, weights = call(shared(encoder), np.zeros((*sizes, D)), None)
    assert output.shape == (sizes[0], shared(encoder).compute_output_shape((None, None, None, D))[-1])
    assert weights["word"].shape == sizes and weights["sentence"].shape == sizes[:2]
    assert not output.any()


def test_without_a_mask_everything_is_real():
    without = call(shared("gru"), INPUTS, None)[0]
    close(without, call(shared("gru"), INPUTS, np.ones((B, L, W), bool))[0], atol=EXACT)


def test_the_implicit_mask_is_used():
    zeroed = np.where(MASK[..., None], INPUTS, 0.0).astype("float32")
    close(shared("none")(keras.layers.Masking()(zeroed)), call(shared("none"), INPUTS, MASK)[0])


# === What an encoder meets ===


SEEN = []


class Witness(keras.layers.GRU):
    """Keeps the masks that it is called with."""

    def call(self, sequences, initial_state=None, mask=None, training=False):
        SEEN.append(to_numpy(mask))
        return super().call(sequences, initial_state, mask, training)


@pytest.mark.skipif(BACKEND == "jax", reason="JAX calls it with tracers")
def test_a_recurrent_encoder_gets_masks_that_cudnn_takes():
    SEEN.clear()
    layer = HierarchicalAttention(encoders=[Witness(4, return_sequences=True) for _ in range(2)])
    mask = MASK[:, :, ::-1].copy()
    mask[1] = False
    call(layer, INPUTS, mask)
    for seen in SEEN[-2:]:
        assert seen[:, 0].all(), "a row of nothing but padding"
        assert (np.diff(seen.astype(int), axis=-1) <= 0).all(), "padding before what is real"
    np.testing.assert_array_equal(SEEN[-2].sum(axis=1), [5, 1, 3, 1, 1, 1])


def test_an_encoder_without_a_mask_reads_what_is_real_side_by_side_and_then_zeros():
    convolution = keras.layers.Conv1D(7, 3, padding="same")
    layer = HierarchicalAttention(("word",), [convolution])
    mask = np.array([[True, False, True, True, False]])
    output, weights = call(layer, np.where(mask[..., None], INPUTS[:1, 0], np.nan), mask)
    together = np.pad(INPUTS[:1, 0, [0, 2, 3]], ((0, 0), (0, 2), (0, 0)))
    encoded = to_numpy(convolution(together))[:, :3]
    close(output, np.einsum("bs,bse->be", weights["word"][:, [0, 2, 3]], encoded))


class Doubled(keras.layers.Layer):
    """A layer that says nothing about its shapes."""

    def call(self, inputs):
        return ops.concatenate([inputs, inputs], axis=-1)


def test_an_encoder_may_be_any_layer():
    layer = HierarchicalAttention(encoders={"word": Doubled()})
    output, _ = call(layer, INPUTS, MASK)
    expected, _ = loop(INPUTS, MASK, as_levels(layer))
    close(output, expected)
    assert layer(keras.Input((None, None, D))).shape == (None, 2 * D)


def test_an_encoder_that_is_built_keeps_its_weights():
    convolution = keras.layers.Conv1D(7, 3, padding="same")
    convolution.build((None, None, D))
    kernel = convolution.get_weights()[0]
    layer = HierarchicalAttention(("word",), [convolution])
    layer.build(INPUTS[:, 0].shape)
    np.testing.assert_array_equal(layer.encoders["word"].get_weights()[0], kernel)


def recorded(layer, inputs, mask):
    with Recorder() as recorder:
        _, weights = layer(inputs, mask=mask, return_attention_scores=True, training=True)
    return weights, recorder.log_prob(B)


def test_sampled_choices_belong_to_their_document():
    layer, mask = make("convolution", alignment="sampled", seed=5), MASK.copy()
    mask[1] = False
    layer.build(INPUTS.shape)
    weights, log_prob = to_numpy(compiled(recorded, layer)(INPUTS.astype("float32"), mask))
    assert set(np.unique(weights["word"])) == {0.0, 1.0}
    assert log_prob[0] < 0 and log_prob[1] == 0


def test_dropouts_and_choices_of_all_levels_have_seeds_of_their_own():
    layer = make("none", depth=3, alignment="sampled", dropout=0.5, seed=5)
    poolings = layer.poolings.values()
    seeds = [each for pooling in poolings for each in (pooling.dropout_layer.seed, pooling.alignment.seed)]
    assert len(set(seeds)) == 6


def test_the_output_shape_is_known_before_the_layer_is_built():
    for encoder, width in {"none": D, "gru": 8, "convolution": 7, "transformer": D, "sequential": D}.items():
        assert make(encoder).compute_output_shape((None, None, None, D)) == (None, width)


# === Training and saving ===


@pytest.mark.parametrize(
    ("jit_compile", "policy"),
    [
        pytest.param(False, "float32", marks=pytest.mark.skipif(BACKEND == "jax", reason="JAX has no other graph")),
        (True, "mixed_bfloat16"),
    ],
    ids=["graph", "jit"],
)
def test_a_model_of_unknown_sizes_trains_on_an_empty_document(jit_compile, policy):
    encoder = keras.layers.GRU(7, return_sequences=True, use_cudnn=False, dtype=policy)
    inputs, mask = keras.Input((None, None, D)), keras.Input((None, None), dtype="bool")
    layer = HierarchicalAttention(encoders={"word": encoder}, dropout=0.1, seed=5, dtype=policy)
    model = keras.Model([inputs, mask], layer(inputs, mask=mask))
    model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=jit_compile)
    real = MASK.copy()
    real[1] = False
    before = model.get_weights()
    model.fit([np.where(real[..., None], INPUTS, np.nan), real], np.ones((B, 7)), verbose=0)
    assert all(np.isfinite(after).all() for after in model.get_weights())
    changed = {
        weight.path: (old != new).any()
        for weight, old, new in zip(model.weights, before, model.get_weights(), strict=True)
    }
    assert [path for path, has_changed in changed.items() if "kernel" in path and not has_changed] == []


def call_of_model(model, inputs, mask):
    return model([inputs, mask])


@each_encoder
def test_a_saved_layer_comes_back_with_its_encoders(encoder, tmp_path):
    inputs, mask = keras.Input((None, None, D)), keras.Input((None, None), dtype="bool")
    model = keras.Model([inputs, mask], make(encoder, units=U)(inputs, mask=mask, return_attention_scores=True))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    results = [compiled(call_of_model, each)(INPUTS.astype("float32"), MASK) for each in (loaded, model)]
    for received, expected in zip(*map(keras.tree.flatten, results), strict=True):
        close(received, to_numpy(expected), atol=EXACT)


# === Errors ===


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"levels": ()}, ValueError, r"`levels` must be one or more different names.*Received: \(\)"),
        ({"levels": "word"}, ValueError, "`levels` must be one or more different names.*Received: 'word'"),
        ({"levels": ("word", "word")}, ValueError, r"different names.*Received: \('word', 'word'\)"),
        ({"levels": ("word", "two words")}, ValueError, r"letters A to Z.*Received: \('word', 'two words'\)"),
        ({"levels": ("Wörter",)}, ValueError, r"letters A to Z.*Received: \('Wörter',\)"),
        ({"encoders": [None]}, ValueError, r"one value for each of the 2 levels \('word', 'sentence'\). Received 1"),
        ({"encoders": {"words": None}}, ValueError, r"dictionary by their names. Received: the keys \['words'\]"),
        (
            {"encoders": ["gru", None]},
            TypeError,
            "encoder of the level 'word' must be a layer.*Received: 'gru' of type str",
        ),
        ({"encoders": 2 * [keras.layers.Dense(3)]}, ValueError, "an encoder of its own.*the same layer twice"),
        ({"units": 0}, ValueError, "`units` must be a positive integer. Received: 0"),
        ({"dropout": 1.5}, ValueError, r"`dropout` must be a number in \[0, 1\). Received: 1.5"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        HierarchicalAttention(**arguments)


@pytest.mark.parametrize(
    ("encoder", "received"),
    [
        (lambda: keras.layers.GRU(7), r"shape \(None, 7\)"),
        (lambda: keras.layers.Conv1D(7, 3), r"shape \(None, 3, 7\)"),
        (
            lambda: keras.layers.GRU(7, return_sequences=True, return_state=True),
            r"shape \(\(None, 5, 7\), \(None, 7\)\)",
        ),
    ],
    ids=["one_vector", "fewer_positions", "several_outputs"],
)
def test_an_encoder_must_keep_the_positions(encoder, received):
    message = f"encoder of the level 'word' must make one vector for each position.*Received {received}"
    with pytest.raises(ValueError, match=message):
        HierarchicalAttention(encoders={"word": encoder()})(INPUTS)


@pytest.mark.parametrize(
    ("shape", "mask", "message"),
    [
        ((B, W, D), None, r"at least 4 axes, `\(B, sentences, words, D\)`. Received shape \(2, 5, 7\)"),
        ((B, L, W, D), (B, L), r"`mask` must have one entry for each position, shape \(2, 3, 5\).*shape \(2, 3\)"),
    ],
)
def test_shapes_that_do_not_fit(shape, mask, message):
    with pytest.raises(ValueError, match=message):
        HierarchicalAttention()(np.ones(shape, "float32"), mask=None if mask is None else np.ones(mask, bool))


# === Units left out in training ===


@pytest.mark.parametrize(("level", "kept"), [("word", 0.7), ("sentence", 0.4)])
def test_a_fraction_of_the_units_is_taken_for_padding_in_training(level, kept):
    layer = HierarchicalAttention(unit_dropout={level: 1.0 - kept}, seed=3)
    inputs, mask = normal(29, 31, 37, 2).astype("float32"), np.ones((29, 31, 37), bool)
    mask[:, -1] = False
    layer.build(inputs.shape)
    _, weights = to_numpy(compiled(with_weights, layer, training=True)(inputs, mask))
    is_used = weights[level][:, :-1] > 0
    assert abs(is_used.mean() - kept) < 0.05
    assert not (is_used == is_used[0]).all()
    assert not (weights[level][:, -1] > 0).any()


def test_no_unit_is_left_out_at_inference():
    layer = HierarchicalAttention(unit_dropout=0.9, seed=3)
    plain = HierarchicalAttention()
    output = call(layer, INPUTS, MASK)[0]
    plain.build(INPUTS.shape)
    plain.set_weights([to_numpy(weight) for weight in layer.trainable_variables])
    close(call(plain, INPUTS, MASK)[0], to_numpy(output))


def test_what_is_left_out_has_no_influence_and_what_is_kept_sums_to_one():
    layer = HierarchicalAttention(unit_dropout=[0.5, 0.0], seed=3)
    layer.build(INPUTS.shape)
    _, weights = to_numpy(compiled(with_weights, layer, training=True)(INPUTS.astype("float32"), MASK))
    sums = weights["word"].sum(-1)
    np.testing.assert_allclose(sums[sums > 0], 1.0, atol=FLOAT32)
    np.testing.assert_array_equal(weights["sentence"] > 0, sums > 0)


def test_a_rate_of_units_outside_its_range_is_an_error():
    with pytest.raises(ValueError, match=r"`unit_dropout` must be a number in \[0, 1\). Received: 1.0"):
        HierarchicalAttention(unit_dropout={"word": 1.0})
    with pytest.raises(ValueError, match="`unit_dropout` must have one value for each of the 2 levels"):
        HierarchicalAttention(unit_dropout=[0.5])
