import keras
import numpy as np
import pytest
from keras import ops
from reference import attention
from reference.arrays import normal, to_numpy
from reference.attention import PAIR_SCORES
from reference.gradients import gradient
from tolerances import FLOAT32, HALF

from keras_attention.layers import MultiHeadAttention, Pointer, SoftAttention
from keras_attention.layers.pointer import check_clipping, clip_scores
from keras_attention.ops.softmax import LOWEST
from keras_attention.scores import AdditiveScore
from keras_attention.training import SmoothedCrossentropy

B, T, S, D, E, U, N = 2, 3, 5, 7, 11, 13, 17


@pytest.fixture
def query():
    return normal(B, T, D, seed=1)


@pytest.fixture
def value():
    return normal(B, S, E, seed=2)


def close(received, expected, atol=FLOAT32):
    np.testing.assert_allclose(to_numpy(received), expected, atol=atol)


# === The formula ===


@pytest.mark.parametrize("score", PAIR_SCORES)
def test_logits_are_the_scores_of_the_loop(score, query):
    value = normal(B, S, D, seed=2)  # a dot product needs one width
    pointer = Pointer(score)
    logits = pointer(query, value)
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"
    close(logits, attention.scores(query, value, PAIR_SCORES[score], *pointer.get_weights()))


def test_the_score_is_additive_unless_told_otherwise(query, value):
    pointer = Pointer()
    close(pointer(query, value), attention.scores(query, value, attention.additive, *pointer.get_weights()))


def test_clipped_logits_by_hand():
    query, value = np.array([[[1.0]]], "float32"), np.array([[[0.0], [0.5], [-1000.0]]], "float32")
    close(Pointer("dot", tanh_clipping=10)(query, value), [[[0.0, 4.6211716, -10.0]]])  # 10 · tanh(0.5)


def test_clipping_keeps_the_order_of_the_scores():
    clipped = to_numpy(clip_scores(ops.linspace(-3.0, 3.0, 11), 5.0))
    assert (np.diff(clipped) > 0).all() and (abs(clipped) < 5).all()


def test_the_context_of_the_glimpse_takes_the_place_of_the_query(query, value):
    pointer = Pointer(tanh_clipping=3.0, glimpse=SoftAttention("additive"))
    logits = pointer(query, value)
    glimpse = pointer.glimpse.get_weights()
    context, _ = attention.attention(query, value, value, None, attention.additive, *glimpse)
    assert [weight.shape for weight in glimpse] == [(D, E), (E, E), (E,)]
    scores = attention.scores(context, value, attention.additive, *pointer.score.get_weights())
    close(logits, 3.0 * np.tanh(scores))


@pytest.mark.parametrize(
    "make", [MultiHeadAttention, keras.layers.MultiHeadAttention], ids=["keras_attention", "keras"]
)
def test_heads_may_glimpse(make, query, value):
    pointer = Pointer(glimpse=make(num_heads=3, key_dim=5))
    mask = np.array([[True, True, False, True, True], [True] * S])
    logits = to_numpy(pointer(query, value, value_mask=mask))
    context = pointer.glimpse(query, np.where(mask[..., None], value, 0.0), value_mask=mask)
    close(logits, np.where(mask[:, None], to_numpy(pointer.score(context, ops.convert_to_tensor(value))), LOWEST))


class Sevens(SoftAttention):
    def call(self, query, value, key=None, **options):
        return ops.zeros_like(super().call(query, value, key, **options)) + 7.0


class SevensOfHeads(MultiHeadAttention):
    def call(self, query, value, key=None, **options):
        return ops.zeros_like(super().call(query, value, key, **options)) + 7.0


@pytest.mark.parametrize("make", [Sevens, lambda: SevensOfHeads(2, 3)], ids=["soft", "heads"])
def test_a_glimpse_may_be_a_subclass_with_another_call(make, query, value):
    logits = Pointer("dot", glimpse=make())(query[..., :5], value[..., :5])
    expected = np.repeat(7 * to_numpy(value)[:, None, :, :5].sum(axis=-1), query.shape[1], axis=1)
    np.testing.assert_allclose(to_numpy(logits), expected, rtol=FLOAT32, atol=FLOAT32)


def test_the_activity_of_a_glimpse_is_regularized(query, value):
    glimpse = SoftAttention("additive", activity_regularizer="l1")
    pointer = Pointer("additive", glimpse=glimpse)
    pointer(query, value)
    (loss,) = pointer.losses
    glimpse(query, value)
    np.testing.assert_allclose(*map(to_numpy, (loss, glimpse.losses[-1])), rtol=FLOAT32)


def test_a_score_object_keeps_its_own_arguments(query, value):
    pointer = Pointer(AdditiveScore(units=U))
    pointer(query, value)
    assert [tuple(weight.shape) for weight in pointer.weights] == [(D, U), (E, U), (U,)]


def test_permuting_what_is_pointed_at_permutes_the_logits(query, value):
    pointer, order = Pointer(glimpse=SoftAttention("concat")), np.array([3, 0, 4, 2, 1])
    close(pointer(query, value[:, order]), to_numpy(pointer(query, value))[..., order])


def test_every_axis_left_of_the_last_two_is_batch():
    query, value = normal(B, N, T, D), normal(B, N, S, E, seed=1)
    masks = {"query_mask": normal(B, N, T) > -1, "value_mask": normal(B, N, S, seed=1) > -0.5}
    pointer = Pointer(glimpse=SoftAttention("concat"))
    logits = pointer(query, value, **masks)
    assert tuple(logits.shape) == (B, N, T, S)
    for n in (0, N - 1):
        close(logits[:, n], to_numpy(pointer(query[:, n], value[:, n], **{k: m[:, n] for k, m in masks.items()})))


# === Masks ===

GLIMPSES = {"plain": lambda: None, "glimpse": lambda: SoftAttention("additive")}


@pytest.fixture(params=GLIMPSES)
def pointer(request):
    return Pointer(tanh_clipping=10.0, glimpse=GLIMPSES[request.param]())


def test_what_any_mask_forbids_has_exactly_the_lowest_logit(pointer, query, value):
    masks = {
        "query_mask": np.array([[True, True, False], [True] * T]),
        "value_mask": np.array([[True, False, True, True, True], [True, True, True, True, False]]),
        "attention_mask": np.array([[True] * S, [False, True, True, True, True], [False, True, False, True, True]]),
    }
    allowed = masks["query_mask"][..., None] & masks["value_mask"][:, None] & masks["attention_mask"]
    logits = to_numpy(pointer(query, value, **masks))
    assert (logits[~allowed] == np.float32(LOWEST)).all()
    assert (abs(logits[allowed]) < 10).all()


def test_masks_of_the_choices_change_no_other_logit(query, value):
    pointer, mask = Pointer(), normal(B, T, S) > 0
    close(pointer(query, value, attention_mask=mask), np.where(mask, to_numpy(pointer(query, value)), LOWEST))


def test_a_glimpse_sees_only_what_may_be_chosen(query, value):
    pointer, mask = Pointer(glimpse=SoftAttention("additive")), np.arange(S) != 3
    logits = to_numpy(pointer(query, value, attention_mask=np.tile(mask, (T, 1))))
    close(logits[..., mask], to_numpy(pointer(query, value[:, mask])))


def test_the_implicit_masks_of_query_and_value_are_honoured(pointer):
    embedding = keras.layers.Embedding(11, D, mask_zero=True)
    query, value = embedding(np.array([[4, 5, 0], [4, 0, 0]])), embedding(np.array([[6, 7, 8, 0, 0], [9, 1, 2, 3, 0]]))
    logits = pointer(query, value)
    forbidden = to_numpy(logits) == np.float32(LOWEST)
    np.testing.assert_array_equal(forbidden.sum(-1), [[2, 2, 5], [1, 5, 5]])
    np.testing.assert_array_equal(to_numpy(logits._keras_mask), [[True, True, False], [True, False, False]])


@pytest.mark.parametrize("junk", [np.nan, np.inf, 1e30])
def test_what_stands_in_the_padding_changes_nothing(junk, pointer, query, value):
    masks = {"query_mask": np.array([[True, True, False]] * B), "value_mask": np.arange(S) < np.array([[3], [4]])}
    expected = to_numpy(pointer(query, value, **masks))
    query = np.where(masks["query_mask"][..., None], query, np.float32(junk))
    value = np.where(masks["value_mask"][..., None], value, np.float32(junk))
    close(pointer(query, value, **masks), expected, atol=0)
    factors = np.where(expected > LOWEST, normal(B, T, S), 0.0).astype("float32")
    found = gradient(lambda tensor: ops.sum(ops.multiply(pointer(query, tensor, **masks), factors)), value)
    assert np.isfinite(found).all()
    assert not found[~masks["value_mask"]].any() and found[masks["value_mask"]].any()


def test_a_query_with_nothing_to_point_at_has_the_lowest_logits_and_no_gradient(pointer, query, value):
    mask = np.array([[False] * S, [True] * S])
    logits = to_numpy(pointer(query, value, value_mask=mask))
    assert (logits[0] == np.float32(LOWEST)).all() and (logits[1] > LOWEST).all()
    factors = normal(B, T, S)
    found = gradient(lambda tensor: ops.sum(ops.multiply(pointer(tensor, value, value_mask=mask), factors)), query)
    assert not found[0].any() and np.isfinite(found).all() and found[1].any()


def test_there_may_be_no_query_and_nothing_to_point_at(pointer, query, value):
    pointer(query, value)
    assert tuple(pointer(query[:, :0], value).shape) == (B, 0, S)
    assert tuple(pointer(query, value[:, :0]).shape) == (B, T, 0)
    assert tuple(pointer(query[:0], value[:0]).shape) == (0, T, S)


# === Half precision ===


@pytest.mark.parametrize("dtype", HALF)
def test_logits_are_float32_under_mixed_precision(dtype, query, value):
    mask = np.arange(S) < np.array([[3], [4]])
    pointer, reference = Pointer(tanh_clipping=10.0, dtype=dtype), Pointer(tanh_clipping=10.0)
    expected = to_numpy(reference(query, value, value_mask=mask))
    pointer.build(query.shape, value.shape)
    pointer.set_weights(reference.get_weights())
    logits = pointer(query, value, value_mask=mask)
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"
    lowest = np.float32(np.finfo("float16").min if dtype == "mixed_float16" else LOWEST)
    assert (to_numpy(logits)[expected == np.float32(LOWEST)] == lowest).all()
    close(logits, np.where(expected == np.float32(LOWEST), lowest, expected), atol=HALF[dtype])


@pytest.mark.parametrize("scale", [1.0, 1e4])  # the second gives scores beyond float16
@pytest.mark.parametrize(
    ("dtype", "following"),
    [(dtype, following) for dtype in HALF for following in ("float32", dtype)] + [("mixed_float16", "mixed_bfloat16")],
)
def test_a_softmax_of_any_type_after_a_pointer_of_half_precision_gives_zero_where_it_is_masked(
    dtype, following, scale, query
):
    mask = np.array([[True, False, True, True, False], [False] * S])  # the second row may point at nothing
    logits = Pointer("dot", dtype=dtype)(query, scale * normal(B, S, D, seed=2), value_mask=mask)
    weights = to_numpy(ops.cast(keras.layers.Softmax(dtype=following)(logits), "float32"))
    assert np.isfinite(weights).all()
    assert not weights[0][:, ~mask[0]].any()


def test_what_a_pointer_of_float16_says_for_never_is_masked_to_the_loss(query, value):
    mask = np.array([[True, True, False, False, False]] * B)
    logits, targets = Pointer(dtype="mixed_float16")(query, value, value_mask=mask), np.zeros((B, T), "int32")
    loss = SmoothedCrossentropy(0.1)
    np.testing.assert_allclose(to_numpy(loss(targets, logits)), to_numpy(loss(targets, logits[..., :2])), atol=FLOAT32)


# === D22: the loss over masked logits ===


def masked_logits():
    """Logits [1, 2, masked] of a `Pointer`."""
    values = np.array([[[1.0], [2.0], [99.0]]], "float32")
    return Pointer("dot")(np.ones((1, 1, 1), "float32"), values, value_mask=np.array([[True, True, False]]))


@pytest.mark.parametrize(("label_smoothing", "expected"), [(0.0, 1.3133), (0.1, 1.2633)])
def test_the_loss_spreads_over_the_allowed_positions(label_smoothing, expected):
    loss = SmoothedCrossentropy(label_smoothing)(np.array([[0]]), masked_logits())
    assert float(loss) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("label_smoothing", "expected"), [(0.0, [-0.7311, 0.7311, 0.0]), (0.1, [-0.6811, 0.6811, 0.0])]
)
def test_the_gradient_of_the_loss_is_zero_where_it_is_masked(label_smoothing, expected):
    loss = SmoothedCrossentropy(label_smoothing)
    found = gradient(lambda logits: loss(np.array([[0]]), logits), to_numpy(masked_logits()))
    close(found[0, 0], expected, atol=1e-4)


# === Mistakes ===


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"score": "adittive"}, ValueError, r'Unknown score: "adittive".*Did you mean "additive"'),
        (
            {"tanh_clipping": 0},
            ValueError,
            "`tanh_clipping` must be a finite number above 0, or .* Received: 0",
        ),
        ({"tanh_clipping": -3.0}, ValueError, "or `None` for no clipping. Received: -3.0"),
        ({"tanh_clipping": np.inf}, ValueError, "or `None` for no clipping. Received: inf"),
        ({"tanh_clipping": np.nan}, ValueError, "or `None` for no clipping. Received: nan"),
        ({"tanh_clipping": "10"}, ValueError, "or `None` for no clipping. Received: '10' of type str"),
        ({"tanh_clipping": True}, ValueError, "or `None` for no clipping. Received: True of type bool"),
        ({"glimpse": "additive"}, TypeError, "`glimpse` must be an attention layer, or `None`. Received: 'additive'"),
        ({"glimpse": SoftAttention}, TypeError, "`glimpse` must be an attention layer.* of type type"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        Pointer(**arguments)


def test_a_clipping_may_come_from_numpy():
    assert check_clipping(np.float32(10)) == 10.0
    assert Pointer(tanh_clipping=np.int64(10)).get_config()["tanh_clipping"] == 10.0


@pytest.mark.parametrize(
    ("shapes", "masks", "message"),
    [
        (((B, D), (B, S, E)), {}, r"`query` must have at least 3 axes.* Received shape \(2, 7\)"),
        (((B, T, D), (3, S, E)), {}, r"must agree in every axis left of the last two.* \(3, 5, 11\)"),
        (
            ((B, T, D), (B, S, E)),
            {"value_mask": (B, T)},
            r"`value_mask` must .*shape \(2, 5\).* Received shape \(2, 3\)",
        ),
        (
            ((B, T, D), (B, S, E)),
            {"query_mask": (B, S)},
            r"`query_mask` must .*shape \(2, 3\).* Received shape \(2, 5\)",
        ),
        (((B, T, D), (B, S, E)), {"attention_mask": (S, T)}, r"`attention_mask` must .* Received shape \(5, 3\)"),
        (((B, T, D), (B, S, E)), {"attention_mask": (S,)}, r"Pass a padding mask \(B, S\) as `value_mask`"),
    ],
)
def test_shapes_that_do_not_fit(shapes, masks, message):
    arrays = [np.ones(shape, "float32") for shape in shapes]
    with pytest.raises(ValueError, match=message):
        Pointer()(*arrays, **{name: np.ones(shape, bool) for name, shape in masks.items()})


def test_a_dot_product_needs_one_width(query, value):
    with pytest.raises(ValueError, match=r"DotScore needs query and key of the same width D.*D=7.*D=11"):
        Pointer("dot")(query, value)


def test_two_pointers_do_not_share_a_score(query, value):
    score = AdditiveScore()
    Pointer(score)(query, value)
    with pytest.raises(ValueError, match="A score, alignment or position scheme belongs to one attention layer"):
        Pointer(score)(query, value)
