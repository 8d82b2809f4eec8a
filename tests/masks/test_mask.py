import itertools
import operator

import keras
import numpy as np
import pytest
from keras import ops
from reference import masks as reference
from reference.arrays import normal, to_numpy

from keras_attention.layers import MultiHeadAttention, SoftAttention
from keras_attention.masks import Causal, Mask, Padding, Prefix, Raster, Segments, Window

S = 7

# Each mask, and the same as a rule of row and slots.
MASKS = {
    "causal": (Causal(), reference.causal),
    "window": (Window(2), reference.window),
    "padding": (Padding(reference.REAL), reference.padding),
    "prefix": (Prefix(reference.LENGTHS), reference.prefix),
    "segments": (Segments(reference.SEGMENT_IDS), reference.segments),
    "raster": (Raster((3, reference.WIDTH), neighborhood=(1, 1)), reference.raster),
}

each_pair = pytest.mark.parametrize(("first", "second"), [*itertools.combinations(MASKS, 2)])


def assert_mask(mask, expected):
    mask = to_numpy(mask)
    assert mask.dtype == "bool"
    np.testing.assert_array_equal(np.broadcast_to(mask, (len(expected), *mask.shape[1:])), expected)


def empty(mask, size):
    """The blocks of `mask (B, T, S)` in which nothing is True."""
    B, T, S = mask.shape
    starts = [range(0, T, size), range(0, S, size)]
    blocks = [~mask[:, t : t + size, s : s + size].any(axis=(1, 2)) for t, s in itertools.product(*starts)]
    return np.reshape(blocks, (*map(len, starts), B)).transpose(2, 0, 1)


# === Every mask and every combination of two ===


@pytest.mark.parametrize("T", [7, 3])
@pytest.mark.parametrize("name", MASKS)
def test_a_mask_is_its_rule_with_the_last_query_at_the_last_key(name, T):
    mask, rule = MASKS[name]
    assert_mask(mask.mask(T, S), reference.by_loops(rule, T, S))
    assert_mask((~mask).mask(T, S), ~reference.by_loops(rule, T, S))


@each_pair
def test_two_masks_combine_as_their_rules_do(first, second):
    (first, first_rule), (second, second_rule) = MASKS[first], MASKS[second]
    for T in (7, 3):
        one, other = reference.by_loops(first_rule, T, S), reference.by_loops(second_rule, T, S)
        assert_mask((first & second).mask(T, S), one & other)
        assert_mask((second | first).mask(T, S), one | other)
        assert_mask((first & ~second).mask(T, S), one & ~other)
        assert_mask((~(first | second)).mask(T, S), ~(one | other))


@each_pair
def test_a_block_is_empty_where_the_whole_mask_has_nothing_in_it(first, second):
    first, second = MASKS[first][0], MASKS[second][0]
    for mask, T, size in ((first & second, 7, 3), (~(first & second), 7, 3), (first | second, 3, 2), (~first, 3, 2)):
        blocks = mask.empty_blocks(T, S, block_size=size)
        assert_mask(blocks, empty(to_numpy(mask.mask(T, S)), size))


@pytest.mark.parametrize("name", MASKS)
def test_a_block_of_slots_is_a_part_of_the_mask(name):
    mask, _ = MASKS[name]
    block = mask.allowed(ops.array([[2], [5]]), ops.array([[1, 4, 6]]))
    whole = np.broadcast_to(to_numpy(mask.mask(S)), (2, S, S))
    assert_mask(np.broadcast_to(to_numpy(block), (2, 2, 3)), whole[:, [2, 5]][:, :, [1, 4, 6]])


def test_more_queries_than_keys_start_together():
    assert_mask(Causal().mask(5, 3), reference.by_loops(reference.causal, 5, 3, B=1))


@pytest.mark.parametrize(("T", "S", "blocks"), [(0, 5, (1, 0, 3)), (3, 0, (1, 2, 0)), (0, 0, (1, 0, 0))])
def test_no_query_and_no_key_give_no_entry_and_no_block(T, S, blocks):
    mask = Causal() | Prefix(2)
    assert mask.mask(T, S).shape == (1, T, S)
    assert mask.empty_blocks(T, S, block_size=2).shape == blocks


def test_an_empty_batch_gives_an_empty_mask():
    mask = Causal() & Segments(np.zeros((0, S), "int32"))
    assert mask.mask(3, S).shape == (0, 3, S)
    assert mask.empty_blocks(3, S, block_size=2).shape == (0, 2, 4)


# === In graphs ===


def every_mask(segment_ids, real, lengths):
    return (Causal() | Prefix(lengths)) & Segments(segment_ids) & ~(~Padding(real) | ~Window(3))


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="lengths that change are TensorFlow's")
def test_a_graph_takes_tensors_and_lengths_that_are_known_only_when_it_runs(jit_compile):
    import tensorflow as tf

    @tf.function(jit_compile=jit_compile)
    def masks(segment_ids, real, lengths):
        mask = every_mask(segment_ids, real, lengths)
        S = ops.shape(segment_ids)[1]
        return mask.mask(S - 2, S), mask.empty_blocks(S - 2, S, block_size=2)

    specs = [
        tf.TensorSpec((None, None), tf.int32),
        tf.TensorSpec((None, None), tf.bool),
        tf.TensorSpec((None,), tf.int32),
    ]
    graph = masks if jit_compile else masks.get_concrete_function(*specs)  # XLA compiles each length
    for length in (7, 5):
        arrays = (
            reference.SEGMENT_IDS[:, :length].astype("int32"),
            reference.REAL[:, :length],
            reference.LENGTHS.astype("int32"),
        )
        mask = every_mask(*arrays)
        found, blocks = graph(*map(tf.constant, arrays))
        assert_mask(found, to_numpy(mask.mask(length - 2, length)))
        assert_mask(blocks, to_numpy(mask.empty_blocks(length - 2, length, block_size=2)))


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="the compiler of JAX")
def test_jax_compiles_a_mask():
    import jax

    arrays = reference.SEGMENT_IDS, reference.REAL, reference.LENGTHS
    mask = every_mask(*arrays)
    found, blocks = jax.jit(
        lambda *arrays: (every_mask(*arrays).mask(S), every_mask(*arrays).empty_blocks(S, block_size=2))
    )(*arrays)
    assert_mask(found, to_numpy(mask.mask(S)))
    assert_mask(blocks, to_numpy(mask.empty_blocks(S, block_size=2)))


def test_a_functional_model_of_known_length_makes_a_mask_of_its_inputs(tmp_path):
    segment_ids, lengths = keras.Input((S,), dtype="int32"), keras.Input((), dtype="int32")
    mask = (Causal() | Prefix(lengths)) & Segments(segment_ids) & ~Padding(segment_ids > 3)
    model = keras.Model([segment_ids, lengths], [mask.mask(S), mask.empty_blocks(S, block_size=2)])
    assert [tuple(output.shape) for output in model.outputs] == [(None, S, S), (None, 4, 4)]
    model.save(tmp_path / "masks.keras")
    ids = reference.SEGMENT_IDS
    expected = (Causal() | Prefix(reference.LENGTHS)) & Segments(ids) & ~Padding(ids > 3)
    for each in (model, keras.saving.load_model(tmp_path / "masks.keras")):
        found, blocks = each([ids.astype("int32"), reference.LENGTHS.astype("int32")])
        assert_mask(found, to_numpy(expected.mask(S)))
        assert_mask(blocks, to_numpy(expected.empty_blocks(S, block_size=2)))


def test_a_layer_makes_a_mask_of_an_unknown_length():
    @keras.saving.register_keras_serializable(package="test_mask")
    class Packed(keras.layers.Layer):
        def call(self, segment_ids):
            return (Causal() & Segments(segment_ids)).mask(ops.shape(segment_ids)[1])

    segment_ids = keras.Input((None,), dtype="int32")
    model = keras.Model(segment_ids, Packed()(segment_ids))
    assert model.output.shape == (None, None, None)
    expected = Causal() & Segments(reference.SEGMENT_IDS)
    assert_mask(model(reference.SEGMENT_IDS.astype("int32")), to_numpy(expected.mask(S)))


# === In attention ===


def test_attention_reads_a_mask_as_the_tensor_by_hand():
    T = 3
    query, value = normal(2, T, 6, seed=1), normal(2, S, 6)
    mask = (Causal() | Prefix(reference.LENGTHS)) & Segments(reference.SEGMENT_IDS)
    causal, prefix, segments = (
        reference.by_loops(rule, T, S) for rule in (reference.causal, reference.prefix, reference.segments)
    )
    for layer in (SoftAttention(), MultiHeadAttention(num_heads=2, key_dim=3)):
        found = layer(query, value, attention_mask=mask.mask(T, S))
        expected = layer(query, value, attention_mask=(causal | prefix) & segments)
        np.testing.assert_array_equal(to_numpy(found), to_numpy(expected))
        found = layer(query, value, attention_mask=Causal().mask(T, S))
        np.testing.assert_array_equal(to_numpy(found), to_numpy(layer(query, value, use_causal_mask=True)))


# === Words ===


def test_a_mask_is_neither_true_nor_false_and_no_tensor():
    with pytest.raises(TypeError, match=r"neither true nor false. Received Causal\(\)\. Combine masks by `&`"):
        Causal() and Window(2)
    inputs = normal(2, S, 3)
    with pytest.raises(
        TypeError, match=r"`attention_mask` must be a boolean tensor.*the mask Causal\(\)\. Pass .* `mask\.mask"
    ):
        SoftAttention()(inputs, inputs, attention_mask=Causal())


def test_masks_of_different_batches_do_not_combine():
    mask = Padding(np.ones((3, S), bool)) & Causal() & Segments(np.ones((5, S), int))
    with pytest.raises(ValueError, match=r"of one batch\. Received .*Padding\(shape=\(3, 7\)\).*, of 3 and of 5 rows"):
        mask.mask(S)


def test_a_mask_says_what_it_is_made_of():
    mask = ~(Causal() & Window(3)) | ~Prefix(2) & Segments([[1, 2]])
    assert repr(mask) == "~(Causal() & Window(3)) | (~Prefix(2) & Segments(shape=(1, 2)))"


@pytest.mark.parametrize("other", [True, np.ones((2, 3), bool), None, "causal"])
def test_a_mask_combines_with_masks_only(other):
    for combine, symbol in ((operator.and_, "&"), (operator.or_, r"\|")):
        received = rf"Received Causal\(\) {symbol} an object of type {type(other).__name__}"
        with pytest.raises(TypeError, match=rf"`{symbol}` combines masks with masks\. {received}"):
            combine(Causal(), other)


@pytest.mark.parametrize(
    ("lengths", "error", "message"),
    [
        ((-1,), ValueError, r"`query_length` must be at least 0\. Received query_length=-1"),
        ((3, 2.5), TypeError, r"`key_length` must be an integer\. Received key_length=2\.5"),
        ((None,), TypeError, r"`query_length` must be .* Received query_length=None\. .* inside the `call` of a layer"),
    ],
)
def test_a_length_is_an_integer(lengths, error, message):
    for method in (Causal().mask, (~Causal()).empty_blocks):
        with pytest.raises(error, match=message):
            method(*lengths)


def test_a_block_has_a_size():
    with pytest.raises(ValueError, match=r"`block_size` must be a positive integer\. Received: 0"):
        Causal().empty_blocks(3, block_size=0)


def test_a_mask_that_allows_nothing_yet_says_what_is_missing():
    with pytest.raises(NotImplementedError, match="Mask must have a method `allowed"):
        Mask().mask(3)


def test_a_mask_of_ones_own_combines_with_the_others():
    class Even(Mask):
        def allowed(self, query_slots, key_slots):
            return key_slots % 2 == 0

    expected = reference.by_loops(lambda b, t, s: s % 2 == 0 and s <= t, 3, S, B=1)
    assert_mask((Even() & Causal()).mask(3, S), expected)
    assert_mask((Even() & Causal()).empty_blocks(3, S, block_size=1), ~expected)
    assert Even().mask(3, S).shape == (1, 3, S)
