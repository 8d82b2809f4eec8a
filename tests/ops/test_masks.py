import keras
import numpy as np
import pytest
from keras import ops
from reference import attention
from reference.arrays import normal, to_numpy

from keras_attention.layers import SoftAttention
from keras_attention.ops.masks import (
    aligned_slots,
    as_mask,
    causal_mask,
    check_masks,
    merge_masks,
    padding_mask,
    query_and_key_positions,
    window_mask,
    zero_masked,
)

B, T, S, D, N = 2, 3, 5, 7, 17


def rows(mask):
    """`["1000", "1100"]` of a boolean matrix."""
    return ["".join(str(int(entry)) for entry in row) for row in to_numpy(mask)]


def random_mask(*shape):
    return normal(*shape) > -0.5


# === Masks ===


def test_padding_mask_is_true_at_real_tokens():
    assert rows(padding_mask(np.array([[4, 1, 0, 0], [0, 2, 3, 0]]))) == ["1100", "0110"]
    assert rows(padding_mask(np.array([[4, 1, 0, 9]]), pad=9)) == ["1110"]


def test_slots_of_queries_start_at_the_first_and_those_of_keys_at_zero():
    query_slots, key_slots = aligned_slots(2, 3, first=5)
    assert to_numpy(query_slots).tolist() == [[5], [6]]
    assert to_numpy(key_slots).tolist() == [[0, 1, 2]]


@pytest.mark.parametrize(("T", "S", "first"), [(3, 5, 2), (5, 5, 0), (5, 3, 0)])
def test_with_fewer_queries_than_keys_the_last_query_stands_at_the_last_key(T, S, first):
    assert to_numpy(aligned_slots(T, S)[0])[0, 0] == first


@pytest.mark.parametrize(
    ("T", "S", "expected"),
    [
        (4, 4, ["1000", "1100", "1110", "1111"]),
        (2, 4, ["1110", "1111"]),
        (4, 2, ["10", "11", "11", "11"]),
        (1, 3, ["111"]),
    ],
)
def test_causal_mask_shows_the_own_and_earlier_positions(T, S, expected):
    mask = causal_mask(*aligned_slots(T, S))
    assert rows(mask) == expected
    np.testing.assert_array_equal(to_numpy(mask), attention.causal(T, S))


def test_causal_mask_at_an_index_speaks_of_slots():
    assert rows(causal_mask(*aligned_slots(2, 6, first=1))) == ["110000", "111000"]


def test_window_mask_is_a_band_of_both_sides():
    assert rows(window_mask(np.arange(4), np.arange(5), width=1)) == ["10000", "01000", "00100", "00010"]
    assert rows(window_mask(np.arange(4), np.arange(5), width=2)) == ["11000", "11100", "01110", "00111"]
    assert rows(window_mask(np.array([3, 4]), np.arange(5), width=2)) == ["00111", "00011"]


LEFT, HOLE, EVERY = np.array([[False, True, True]]), np.array([[True, False, True]]), np.array([[True] * 3])


@pytest.mark.parametrize(
    ("T", "S", "arguments", "queries", "keys"),
    [
        (2, 5, {}, [3, 4], [0, 1, 2, 3, 4]),
        (3, 2, {}, [0, 1, 2], [0, 1]),
        (3, 3, {"query_mask": LEFT, "value_mask": LEFT}, [0, 0, 1], [0, 0, 1]),
        (3, 3, {"value_mask": HOLE, "key_mask": EVERY}, [0, 0, 1], [0, 0, 1]),  # one mask of one sequence
        (3, 3, {"query_mask": HOLE}, [0, 0, 1], [0, 0, 1]),
        (3, 3, {"query_mask": EVERY, "value_mask": HOLE}, [0, 1, 2], [0, 0, 1]),  # two sequences
        (3, 3, {"query_mask": HOLE, "key_mask": EVERY}, [1, 1, 2], [0, 1, 2]),
        (1, 3, {"value_mask": LEFT}, [1], [0, 0, 1]),  # the last real ones stand together
        (2, 3, {"value_mask": HOLE, "first": 1}, [0, 1], [0, 0, 1]),  # in the slots of a cache
    ],
)
def test_a_window_goes_by_positions_of_real_tokens(T, S, arguments, queries, keys):
    found = [to_numpy(positions)[0].tolist() for positions in query_and_key_positions(T, S, **arguments)]
    assert found == [queries, keys]


# === Merging ===


def test_no_mask_at_all_stays_none():
    assert merge_masks(3) is None


def test_each_mask_stands_on_its_own_axis():
    query_mask, value_mask, key_mask = random_mask(B, T), random_mask(B, S), random_mask(B, S)[::-1]
    attention_mask, position_mask = random_mask(B, T, S), random_mask(T, S)
    merged = merge_masks(
        3,
        query_mask=query_mask,
        value_mask=value_mask,
        key_mask=key_mask,
        attention_mask=attention_mask,
        position_masks=[position_mask],
    )
    expected = np.zeros((B, T, S), bool)
    for b, t, s in np.ndindex(B, T, S):
        expected[b, t, s] = (
            query_mask[b, t] and value_mask[b, s] and key_mask[b, s] and attention_mask[b, t, s] and position_mask[t, s]
        )
    np.testing.assert_array_equal(to_numpy(merged), expected)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((T, S), (T, S)),
        ((B, T, S), (B, 1, T, S)),
        ((B, 1, S), (B, 1, 1, S)),
        ((B, N, T, S), (B, N, T, S)),
        ((B, 1, T, S), (B, 1, T, S)),
    ],
)
def test_the_axis_of_the_heads_is_inserted_before_the_last_two(shape, expected):
    mask = random_mask(*shape)
    merged = to_numpy(merge_masks(4, attention_mask=mask))
    assert merged.shape == expected
    np.testing.assert_array_equal(merged.reshape(shape), mask)


def test_padding_masks_get_the_axis_of_the_heads_too():
    assert merge_masks(4, query_mask=random_mask(B, T)).shape == (B, 1, T, 1)
    assert merge_masks(4, value_mask=random_mask(B, S)).shape == (B, 1, 1, S)
    assert merge_masks(5, query_mask=random_mask(B, 11, T), value_mask=random_mask(B, 11, S)).shape == (B, 11, 1, T, S)


# === What a mask may hold ===

ADDITIVE = np.array([[0.0, -np.inf]], "float32")
NO_FLOATS = (
    r"`value_mask` must be boolean, True = attend, or integers 0 and 1\. Received dtype float32 and shape \(1, 2\)\."
)


@pytest.mark.parametrize("mask", [[[True, False]], [[1, 0]], np.array([[1, 0]], "uint8"), np.array([[True, False]])])
def test_booleans_and_integers_of_0_and_1_are_masks(mask):
    assert to_numpy(as_mask(mask)).tolist() == [[True, False]]


@pytest.mark.parametrize("mask", [ADDITIVE, np.array([[1.0, 0.0]], "float32")])
def test_floats_are_refused_with_the_words_to_convert_them(mask):
    with pytest.raises(TypeError, match=NO_FLOATS) as error:
        as_mask(ops.convert_to_tensor(mask), "value_mask")
    assert "`mask == 0`" in str(error.value) and '`keras.Input(..., dtype="bool")`' in str(error.value)


def test_what_a_message_says_converts_an_additive_mask():
    assert to_numpy(as_mask(ADDITIVE == 0)).tolist() == [[True, False]]


def test_a_symbol_of_floats_is_refused_and_one_of_integers_is_not():
    with pytest.raises(TypeError, match=r"Received dtype float32 and shape \(None, 3\)"):
        as_mask(keras.Input((3,)))
    assert as_mask(keras.Input((3,), dtype="int32")).dtype == "bool"


def test_integers_other_than_0_and_1_are_refused_where_they_are_known():
    message = r"`mask` must be boolean.* Received -10000 among integers of shape \(1, 2\)"
    with pytest.raises(ValueError, match=message):
        as_mask(np.array([[0, -10000]]))


@pytest.mark.skipif(keras.backend.backend() == "torch", reason="torch has no graph here")
def test_a_graph_refuses_floats_and_takes_integers():
    def mask_of(dtype):
        mask = ops.cast(np.array([[1, 0]]), dtype)
        if keras.backend.backend() == "jax":
            import jax

            return jax.jit(as_mask)(mask)
        import tensorflow as tf

        return tf.function(as_mask)(mask)

    assert to_numpy(mask_of("int32")).tolist() == [[True, False]]
    with pytest.raises(TypeError, match="must be boolean, True = attend"):
        mask_of("float32")


def test_a_placeholder_of_floats_by_which_keras_infers_shapes_is_no_mistake():
    class Attending(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.attention = SoftAttention("additive")

        def call(self, value, mask):
            return self.attention(value, value, value_mask=mask)

    layer = Attending()
    assert layer(keras.Input((S, D)), keras.Input((S,))).shape == (None, S, D)
    assert len(layer.attention.weights) == 3


# === Applying ===


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_zero_masked_removes_whatever_stood_there_and_keeps_the_type(dtype):
    tensor = ops.cast(np.array([[[1.0, 2.0], [np.nan, 3.0], [np.inf, 6e4]]], "float32"), dtype)
    zeroed = zero_masked(tensor, np.array([[[True, False, False]]]))
    assert zeroed.dtype == tensor.dtype
    assert to_numpy(ops.cast(zeroed, "float32")).tolist() == [[[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]]]


def test_zero_masked_without_a_mask_returns_the_tensor():
    tensor = ops.ones((B, S, D))
    assert zero_masked(tensor, None) is tensor


@pytest.mark.parametrize("shape", [(T, S), (1, T, S), (B, T, S), (B, 1, S), (B, 1, T, S), (B, N, T, S)])
def test_a_position_is_zeroed_where_no_query_of_any_head_uses_it(shape):
    mask = normal(*shape) > 1.0
    full = np.broadcast_to(mask[:, None] if mask.ndim == 3 else mask, (B, N, T, S))
    keys = to_numpy(zero_masked(np.ones((B, S, D), "float32"), mask))
    np.testing.assert_array_equal(keys[..., 0] > 0, full.any(axis=(1, 2)))
    queries = to_numpy(zero_masked(np.ones((B, T, D), "float32"), mask, axis=-1))
    np.testing.assert_array_equal(queries[..., 0] > 0, full.any(axis=(1, 3)))


# === Checks ===

QUERY, VALUE, SCORES = (B, T, D), (B, S, 11), (B, N, T, S)


@pytest.mark.parametrize(
    "masks",
    [
        {"query_mask": (B, T), "value_mask": (B, S), "key_mask": (B, S)},
        {"query_mask": (1, T), "value_mask": (1, S)},
        {"value_mask": (None, None)},
        {"attention_mask": (T, S)},
        {"attention_mask": (1, S)},
        {"attention_mask": (B, T, S)},
        {"attention_mask": (B, None, None)},
        {"attention_mask": (B, N, T, S)},
    ],
)
def test_masks_that_fit_pass(masks):
    check_masks(QUERY, VALUE, SCORES, **{name: Symbolic(shape) for name, shape in masks.items()})


@pytest.mark.parametrize(
    ("name", "shape", "expected"),
    [
        ("query_mask", (B, S), r"\(2, 3\)"),
        ("query_mask", (T,), r"\(2, 3\)"),
        ("value_mask", (B, T), r"\(2, 5\)"),
        ("value_mask", (B, 1, S), r"\(2, 5\)"),
        ("key_mask", (3, S), r"\(2, 5\)"),
    ],
)
def test_a_padding_mask_needs_one_entry_for_each_position(name, shape, expected):
    message = rf"`{name}` must have one entry for each position, shape {expected} \(True = attend\)\. Received shape "
    with pytest.raises(ValueError, match=message) as error:
        check_masks(QUERY, VALUE, SCORES, **{name: Symbolic(shape)})
    assert str(error.value).endswith(f"Received shape {shape}.")


@pytest.mark.parametrize(
    "shape", [(S,), (B, S), (B, S, T), (B, T, 4), (B, N, 2, S), (3, T, S), (B, 2, T, S), (1, B, N, T, S)]
)
def test_an_attention_mask_must_broadcast_to_the_scores(shape):
    message = r"`attention_mask` must have two to four axes .* with T=3 and S=5 .* Pass a padding mask \(B, S\) as `value_mask`"
    with pytest.raises(ValueError, match=message) as error:
        check_masks(QUERY, VALUE, SCORES, attention_mask=Symbolic(shape))
    assert f"Received shape {shape}." in str(error.value)


class Symbolic:
    """Something that has a shape."""

    def __init__(self, shape):
        self.shape = shape
