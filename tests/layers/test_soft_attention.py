import keras
import numpy as np
import pytest
from keras import ops
from reference import attention
from reference.arrays import normal, to_numpy
from reference.attention import PAIR_SCORES
from reference.gradients import gradient
from tolerances import EXACT, FLOAT32

from keras_attention.layers import SoftAttention
from keras_attention.scores import AdditiveScore

B, T, S, D, E, U, N = 2, 3, 5, 7, 11, 13, 17


@pytest.fixture
def query():
    return normal(B, T, D, seed=1)


@pytest.fixture
def value():
    return normal(B, S, E, seed=2)


@pytest.fixture
def key():
    return normal(B, S, D, seed=3)


def attend(layer, *arguments, **options):
    """Context and weights, after checking that the context alone is the same."""
    context, weights = to_numpy(layer(*arguments, **options, return_attention_scores=True))
    np.testing.assert_allclose(layer(*arguments, **options), context, atol=EXACT)
    return context, weights


# === The formula ===


def test_attention_by_hand():
    query, key = np.array([[[1.0]]], "float32"), np.array([[[1.0], [2.0], [3.0]]], "float32")
    value = np.array([[[10.0], [20.0], [99.0]]], "float32")
    mask = np.array([[True, True, False]])
    context, weights = attend(SoftAttention(score="dot"), query, value, key, value_mask=mask)
    np.testing.assert_allclose(np.round(weights, 4), [[[0.2689, 0.7311, 0.0]]], atol=FLOAT32)
    np.testing.assert_allclose(np.round(context, 3), [[[17.311]]], atol=FLOAT32)


@pytest.mark.parametrize("score", PAIR_SCORES)
def test_every_score_equals_the_loop(score, query, value, key):
    layer = SoftAttention(score=score)
    mask = normal(B, T, S) > -0.5
    context, weights = attend(layer, query, value, key, attention_mask=mask)
    expected = attention.attention(query, key, value, mask, PAIR_SCORES[score], *layer.get_weights())
    np.testing.assert_allclose(context, expected[0], atol=FLOAT32)
    np.testing.assert_allclose(weights, expected[1], atol=FLOAT32)


def test_left_out_the_key_is_the_value(query):
    memory = normal(B, S, D)
    expected = attention.attention(query, memory, memory)
    np.testing.assert_allclose(attend(SoftAttention(), query, memory)[0], expected[0], atol=FLOAT32)


@pytest.mark.parametrize("score", PAIR_SCORES)
def test_permuting_keys_and_values_together_changes_nothing_but_the_order_of_the_weights(score, query, value, key):
    layer, order, mask = SoftAttention(score=score), np.array([3, 0, 4, 2, 1]), normal(B, S) > -0.5
    context, weights = attend(layer, query, value, key, value_mask=mask)
    permuted = attend(layer, query, value[:, order], key[:, order], value_mask=mask[:, order])
    np.testing.assert_allclose(permuted[0], context, atol=FLOAT32)
    np.testing.assert_allclose(permuted[1], weights[..., order], atol=FLOAT32)


def test_a_score_object_keeps_its_own_arguments(query, value, key):
    layer = SoftAttention(score=AdditiveScore(units=U))
    layer(query, value, key)
    assert [tuple(weight.shape) for weight in layer.weights] == [(D, U), (D, U), (U,)]


# === Leading axes (D09) ===


@pytest.mark.parametrize("score", ["scaled_dot", "additive"])
def test_every_axis_left_of_the_last_two_is_batch(score):
    query, value, key = normal(B, N, T, D), normal(B, N, S, E, seed=1), normal(B, N, S, D, seed=2)
    masks = {"query_mask": normal(B, N, T) > -1, "value_mask": normal(B, N, S, seed=1) > -0.5}
    layer = SoftAttention(score=score)
    context, weights = attend(layer, query, value, key, **masks, use_causal_mask=True)
    assert (context.shape, weights.shape) == ((B, N, T, E), (B, N, T, S))
    for n in range(N):
        slice_masks = {name: mask[:, n] for name, mask in masks.items()}
        expected = attend(layer, query[:, n], value[:, n], key[:, n], **slice_masks, use_causal_mask=True)
        np.testing.assert_allclose(context[:, n], expected[0], atol=FLOAT32)
        np.testing.assert_allclose(weights[:, n], expected[1], atol=FLOAT32)


# === Masks ===


@pytest.mark.parametrize("shape", [(T, S), (1, S), (T, 1), (B, T, S), (1, T, S), (B, 1, S)])
def test_an_attention_mask_of_any_rank_broadcasts(shape, query, value, key):
    mask = normal(*shape) > -0.5
    context, weights = attend(SoftAttention(), query, value, key, attention_mask=mask)
    expected = attention.attention(query, key, value, mask)
    np.testing.assert_allclose(context, expected[0], atol=FLOAT32)
    np.testing.assert_allclose(weights, expected[1], atol=FLOAT32)


@pytest.mark.parametrize("shape", [(T, S), (B, T, S), (B, N, T, S)])
def test_an_attention_mask_on_inputs_of_rank_four(shape):
    query, value = normal(B, N, T, D), normal(B, N, S, D, seed=1)
    mask = normal(*shape) > -0.5
    full = mask[:, None] if len(shape) == 3 else mask
    expected = attention.attention(query, value, value, full)
    np.testing.assert_allclose(attend(SoftAttention(), query, value, attention_mask=mask)[1], expected[1], atol=FLOAT32)


def test_all_masks_are_merged(query, value, key):
    masks = {
        "query_mask": np.array([[True, True, False], [True, True, True]]),
        "value_mask": np.array([[True, True, False, True, True]] * B),
        "key_mask": np.array([[True, True, True, False, True], [True] * S]),
        "attention_mask": normal(B, T, S) > -1,
    }
    merged = masks["attention_mask"] & masks["query_mask"][..., None] & attention.causal(T, S)
    merged = merged & (masks["value_mask"] & masks["key_mask"])[:, None]
    context, weights = attend(SoftAttention(), query, value, key, **masks, use_causal_mask=True)
    expected = attention.attention(query, key, value, merged)
    np.testing.assert_allclose(context, expected[0], atol=FLOAT32)
    np.testing.assert_allclose(weights, expected[1], atol=FLOAT32)


@pytest.mark.parametrize(("T", "S"), [(2, 5), (5, 2), (3, 3), (1, 5)])
def test_a_causal_mask_stands_at_the_end_of_the_keys_when_there_are_fewer_queries(T, S):
    query, value = normal(B, T, D), normal(B, S, D, seed=1)
    context, weights = attend(SoftAttention(), query, value, use_causal_mask=True)
    np.testing.assert_array_equal(weights > 0, np.broadcast_to(attention.causal(T, S), (B, T, S)))
    np.testing.assert_allclose(
        context, attention.attention(query, value, value, attention.causal(T, S))[0], atol=FLOAT32
    )


def test_the_implicit_masks_of_query_value_and_key_are_honoured():
    embedding = keras.layers.Embedding(11, D, mask_zero=True)
    ids = {"query": [[4, 5, 0], [4, 0, 0]], "value": [[6, 7, 8, 0, 0], [9, 0, 0, 0, 0]], "key": [[6, 0, 8, 9, 9]] * 2}
    tensors = {name: embedding(np.array(rows)) for name, rows in ids.items()}
    context, weights = attend(SoftAttention(), **tensors)
    real = {name: np.array(rows) != 0 for name, rows in ids.items()}
    mask = real["query"][..., None] & (real["value"] & real["key"])[:, None]
    arrays = {name: to_numpy(tensor) for name, tensor in tensors.items()}
    expected = attention.attention(arrays["query"], arrays["key"], arrays["value"], mask)
    np.testing.assert_allclose(context, expected[0], atol=FLOAT32)
    np.testing.assert_allclose(weights, expected[1], atol=FLOAT32)


def test_the_mask_of_the_query_travels_to_the_context(value):
    query = keras.layers.Embedding(11, E, mask_zero=True)(np.array([[4, 5, 0], [4, 0, 0]]))
    context = SoftAttention()(query, value)
    np.testing.assert_array_equal(to_numpy(context._keras_mask), [[True, True, False], [True, False, False]])


# === D01: nothing to attend ===


@pytest.mark.parametrize("score", PAIR_SCORES)
def test_a_query_with_nothing_to_attend_gets_zero_weights_and_a_zero_context(score, query, value, key):
    mask = np.array([[False] * S, [True, True, False, True, True]])
    layer = SoftAttention(score=score)
    context, weights = attend(layer, query, value, key, value_mask=mask)
    assert not context[0].any()
    assert not weights[0].any()
    expected = attend(layer, query[1:], value[1:], key[1:], value_mask=mask[1:])
    np.testing.assert_allclose(context[1:], expected[0], atol=FLOAT32)


@pytest.mark.parametrize("argument", ["query", "value", "key"])
def test_gradients_of_a_query_with_nothing_to_attend_are_finite(argument, query, value, key):
    arrays, factors = {"query": query, "value": value, "key": key}, normal(B, T, E)
    mask = np.array([[False] * S, [True, True, False, True, True]])
    layer = SoftAttention(score=AdditiveScore(units=U))
    layer(query, value, key)
    found = gradient(
        lambda tensor: ops.sum(layer(**{**arrays, argument: tensor}, value_mask=mask) * factors), arrays[argument]
    )
    assert np.isfinite(found).all()
    assert not found[0].any()
    assert found[1].any()


# === D02: half precision ===


@pytest.mark.parametrize("dtype", ["float16", "mixed_float16"])
@pytest.mark.parametrize(
    ("mask", "expected"), [([False, False, False], [0.0, 0.0, 0.0]), ([True, True, False], [0.5, 0.5, 0.0])]
)
def test_very_negative_half_precision_scores_do_not_meet_the_mask(dtype, mask, expected):
    query, key = np.full((1, 1, 4), -20.0, "float32"), np.full((1, 3, 4), 20.0, "float32")
    _, weights = attend(SoftAttention(score="dot", dtype=dtype), query, key, value_mask=np.array([mask]))
    assert weights.dtype == "float16"
    assert weights.tolist() == [[expected]]


def test_scores_beyond_half_precision_stay_finite():
    query = np.full((1, 2, 64), 60.0, "float32")
    context, _ = attend(SoftAttention(score="dot", dtype="float16"), query, query)
    assert context.tolist() == [[[60.0] * 64] * 2]


# === D05: causal on every path ===


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_a_causal_context_does_not_change_with_the_future(dropout):
    inputs = normal(1, 4, 8)
    changed = inputs.copy()
    changed[:, 3] = 100.0
    layer = SoftAttention(dropout=dropout)
    context, weights = attend(layer, inputs, inputs, use_causal_mask=True, training=False)
    np.testing.assert_allclose(layer(changed, changed, use_causal_mask=True)[:, :3], context[:, :3], atol=EXACT)
    assert not np.triu(weights[0], 1).any()
    assert weights[0, 0].tolist() == [1.0, 0.0, 0.0, 0.0]


def test_causal_with_left_padding_gives_the_first_row_nothing():
    inputs = normal(1, 4, 8)
    mask = np.array([[False, True, True, True]])
    _, weights = attend(SoftAttention(), inputs, inputs, value_mask=mask, use_causal_mask=True)
    assert weights[0, 0].tolist() == [0.0, 0.0, 0.0, 0.0]
    assert weights[0, 1].tolist() == [0.0, 1.0, 0.0, 0.0]


# === D06: garbage in padding ===


@pytest.mark.parametrize("garbage", [np.nan, np.inf, 1e30])
@pytest.mark.parametrize("score", PAIR_SCORES)
def test_masked_values_have_no_influence_whatever_they_hold(score, garbage):
    query, value = normal(1, 3, 8), normal(1, 4, 8, seed=1)
    value[:, 3] = garbage
    mask = np.array([[True, True, True, False]])
    layer = SoftAttention(score=score)
    context, weights = attend(layer, query, value, value_mask=mask)
    cut = attend(layer, query, value[:, :3])
    np.testing.assert_allclose(context, cut[0], atol=1e-6)
    np.testing.assert_allclose(weights[..., :3], cut[1], atol=1e-6)
    factors = normal(1, 3, 8, seed=2)
    found = gradient(lambda value: ops.sum(layer(query, value, value_mask=mask) * factors), value)
    assert np.isfinite(found).all()
    assert not found[:, 3].any()


@pytest.mark.parametrize("garbage", [np.nan, np.inf])
@pytest.mark.parametrize("mask_name", ["causal", "attention_mask"])
def test_values_that_only_masked_queries_would_see_have_no_influence(mask_name, garbage):
    query, value = normal(1, 4, 8), normal(1, 4, 8, seed=1)
    value[:, 3] = garbage
    options = {"use_causal_mask": True} if mask_name == "causal" else {"attention_mask": attention.causal(4, 4)}
    context, _ = attend(SoftAttention(), query, value, query_mask=np.array([[True, True, True, False]]), **options)
    expected = attention.attention(query[:, :3], value[:, :3], value[:, :3], attention.causal(3, 3))
    np.testing.assert_allclose(context[:, :3], expected[0], atol=FLOAT32)


def test_finite_garbage_masked_for_some_queries_has_no_influence_on_those():
    query, value = normal(1, 3, 8), normal(1, 4, 8, seed=1)
    value[:, 3] = 1e30
    mask = attention.causal(3, 4)
    context, _ = attend(SoftAttention(), query, value, attention_mask=mask)
    expected = attention.attention(query[:, :2], value[:, :3], value[:, :3], mask[:2, :3])
    np.testing.assert_allclose(context[:, :2], expected[0], atol=FLOAT32)


# === D12: symbolic calls ===


def test_symbolic_context_and_weights():
    query, key = keras.Input((3, 5)), keras.Input((7, 5))
    context, weights = SoftAttention()(query, key, return_attention_scores=True)
    assert (context.shape, weights.shape) == ((None, 3, 5), (None, 3, 7))
    context, weights = SoftAttention(dtype="mixed_float16")(query, key, return_attention_scores=True)
    assert (context.dtype, weights.dtype) == ("float16", "float16")


# === D13: dropout ===


def test_weights_are_those_before_dropout_and_the_context_the_one_after(query, value, key):
    layer = SoftAttention(dropout=0.5, seed=1)
    context, weights = to_numpy(layer(query, value, key, return_attention_scores=True, training=True))
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0, atol=FLOAT32)
    assert np.abs(context - attention.combine(weights, value)).max() > 0.1
    np.testing.assert_allclose(weights, attend(layer, query, value, key)[1], atol=FLOAT32)


def test_the_mean_of_contexts_under_dropout_is_the_context():
    query, value = np.zeros((1, 4000, 2), "float32"), normal(1, 3, 2)
    context = to_numpy(SoftAttention(dropout=0.5, seed=1)(query, value, training=True))
    # Three values of weight 1/3, each doubled or dropped: variance sum of (value / 3)².
    deviation = np.sqrt((value**2).sum(axis=1) / 9 / 4000)
    assert (np.abs(context.mean(axis=1) - value.mean(axis=1)) < 5 * deviation).all()


# === D17: symbolic masks, ragged inputs ===


def test_a_mask_made_from_symbolic_ids_works_in_a_functional_model():
    ids = keras.Input((None,), dtype="int32")
    vectors = keras.layers.Embedding(11, D)(ids)
    context = SoftAttention()(vectors, vectors, value_mask=ids != 0, query_mask=ops.not_equal(ids, 0))
    model = keras.Model(ids, [vectors, context])
    rows = np.array([[4, 5, 0, 0, 6], [0, 0, 0, 0, 0]], "int32")
    vectors, context = to_numpy(model(rows))
    real = rows != 0
    expected = attention.attention(vectors, vectors, vectors, real[:, None] & real[..., None])
    np.testing.assert_allclose(context, expected[0], atol=FLOAT32)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="only TensorFlow has ragged tensors")
def test_ragged_tensors_are_rejected_with_the_way_out():
    import tensorflow as tf

    ragged = tf.RaggedTensor.from_row_lengths(normal(8, D), [3, 5])
    with pytest.raises(TypeError, match=r"[Rr]agged.*to_tensor\(\).*mask"):
        SoftAttention()(ragged, ragged)


# === Empty ===


@pytest.mark.parametrize(("B", "T", "S"), [(0, 3, 5), (2, 0, 5), (2, 3, 0), (0, 0, 0)])
@pytest.mark.parametrize("causal", [False, True])
def test_empty_batches_and_lengths_give_empty_or_zero_contexts(B, T, S, causal):
    context, weights = SoftAttention(score="additive")(
        normal(B, T, D), normal(B, S, E), use_causal_mask=causal, return_attention_scores=True
    )
    assert (context.shape, weights.shape) == ((B, T, E), (B, T, S))
    assert not to_numpy(context).any()


# === Errors ===


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (
            ((D,), (S, D)),
            r"`query` must have at least 3 axes, `\(B, \.\.\., length, features\)`. Received shape \(7,\)",
        ),
        (((T, D), (S, D)), r"`query` must have at least 3 axes.* Received shape \(3, 7\)"),
        (((B, T, D), (B, N, S, D)), r"the same number of axes.* \(2, 3, 7\).* \(2, 17, 5, 7\)"),
        (((B, T, D), (3, S, D)), r"agree in every axis left of the last two.* \(2, 3, 7\).* \(3, 5, 7\)"),
        (((B, T, D), (B, S, E), (B, 4, D)), r"the same length S.* \(2, 4, 7\) \(S=4\).* \(2, 5, 11\) \(S=5\)"),
        (((B, T, D), (B, S, E)), r"ScaledDotScore needs .* same width.*\(D=7\).*\(D=11\)"),
    ],
)
def test_shapes_that_do_not_fit(shapes, message):
    with pytest.raises(ValueError, match=message):
        SoftAttention()(*(normal(*shape) for shape in shapes))


def test_a_later_call_is_checked_too(query, value, key):
    layer = SoftAttention()
    layer(query, value, key)
    with pytest.raises(ValueError, match=r"the same length S.*\(S=5\).*\(S=4\)"):
        layer(query, value[:, :4], key)


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        (
            {"query_mask": (B, S)},
            r"`query_mask` must have one entry for each position, shape \(2, 3\).* shape \(2, 5\)",
        ),
        (
            {"value_mask": (B, T)},
            r"`value_mask` must have one entry for each position, shape \(2, 5\).* shape \(2, 3\)",
        ),
        ({"key_mask": (B, 1, S)}, r"`key_mask` must have one entry for each position, shape \(2, 5\).* \(2, 1, 5\)"),
        ({"attention_mask": (B, S)}, r"`attention_mask` must .* with T=3 and S=5 .* shape \(2, 5\).* as `value_mask`"),
    ],
)
def test_masks_that_do_not_fit(masks, message, query, value, key):
    with pytest.raises(ValueError, match=message):
        SoftAttention()(query, value, key, **{name: np.ones(shape, bool) for name, shape in masks.items()})


@pytest.mark.parametrize("shape", [(3, T, S), (B, N, T, S), (B, 1, T, S), (1, 1, 1, T, S)])
def test_the_leading_axes_of_an_attention_mask_must_fit(shape, query, value, key):
    with pytest.raises(ValueError, match=r"`attention_mask` must .*Received shape \("):
        SoftAttention()(query, value, key, attention_mask=np.ones(shape, bool))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"score": "adittive"}, ValueError, r'Unknown score: "adittive".*Did you mean "additive"'),
        ({"alignment": "sofmax"}, ValueError, r'Unknown alignment: "sofmax".*Did you mean "softmax"'),
        ({"score": 3}, TypeError, r"`score` must be one of .* Received: 3 of type int"),
        ({"dropout": 1.0}, ValueError, r"`dropout` must be a number in \[0, 1\). Received: 1.0"),
        ({"dropout": "0.1"}, ValueError, r"`dropout` must be a number in \[0, 1\). Received: '0.1' of type str"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        SoftAttention(**arguments)
