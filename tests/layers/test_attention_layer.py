"""The calls that all single-head layers share; the numbers are in the tests of each layer."""

import keras
import numpy as np
import pytest
from reference.arrays import normal, to_numpy
from tolerances import EXACT, FLOAT32

from keras_attention import alignments, layers, scores, training

B, T, S, D = 2, 3, 5, 7

KINDS = [
    layers.HardAttention,
    layers.KeyValueAttention,
    layers.KeyValueMemory,
    layers.SoftAttention,
    layers.StructuredAttention,
]

each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def tensors():
    return [normal(B, T, D, seed=1), normal(B, S, D, seed=2), normal(B, S, D, seed=3)]


@pytest.fixture
def masks():
    return [
        np.array([[True, True, False], [True] * T]),
        np.array([[True, False, True, True, True], [True] * S]),
        np.array([[True] * S, [True, True, True, False, False]]),
    ]


NAMES = ("query_mask", "value_mask", "key_mask")


# === One list of tensors, as Keras calls its own layers ===


@each_kind
@pytest.mark.parametrize("of", [list, tuple])
def test_a_list_of_query_value_and_key_with_a_list_of_masks_is_the_call_one_by_one(kind, of, tensors, masks):
    layer = kind()
    expected = layer(*tensors, **dict(zip(NAMES, masks, strict=True)))
    np.testing.assert_allclose(to_numpy(layer(of(tensors), mask=of(masks))), to_numpy(expected), atol=EXACT)


@each_kind
def test_a_list_of_query_and_value_takes_the_value_for_the_key(kind, tensors, masks):
    if kind is layers.KeyValueAttention:
        with pytest.raises(ValueError, match="KeyValueAttention needs a key for each value"):
            kind()(tensors[:2])
        return
    layer = kind()
    expected = layer(*tensors[:2], query_mask=masks[0], value_mask=masks[1])
    np.testing.assert_allclose(to_numpy(layer(tensors[:2], mask=masks[:2])), to_numpy(expected), atol=EXACT)


def test_a_list_gives_the_numbers_of_keras_attention(tensors, masks):
    theirs = keras.layers.Attention()(tensors, mask=masks[:2])
    ours = layers.SoftAttention("dot")(tensors, mask=masks[:2])
    np.testing.assert_allclose(to_numpy(ours), to_numpy(theirs), atol=FLOAT32)


def test_options_and_weights_go_with_a_list(tensors):
    layer = layers.SoftAttention()
    context, weights = layer(tensors, return_attention_scores=True, use_causal_mask=True, training=False)
    expected, expected_weights = layer(*tensors, return_attention_scores=True, use_causal_mask=True)
    np.testing.assert_allclose(to_numpy(context), to_numpy(expected), atol=EXACT)
    np.testing.assert_allclose(to_numpy(weights), to_numpy(expected_weights), atol=EXACT)


def test_a_mask_of_the_list_may_be_none_and_leaves_the_implicit_one(tensors, masks):
    masked = keras.layers.Masking(mask_value=0.0)
    query = masked(np.where(masks[0][..., None], tensors[0], 0.0))
    ours = layers.SoftAttention()([query, tensors[1]], mask=[None, masks[1]])
    expected = layers.SoftAttention()(query, tensors[1], query_mask=masks[0], value_mask=masks[1])
    np.testing.assert_allclose(to_numpy(ours), to_numpy(expected), atol=EXACT)


@each_kind
def test_a_functional_model_of_a_list_comes_back_from_its_file(kind, tensors, masks, tmp_path):
    query, value, key = (keras.Input((None, D)) for _ in range(3))
    query_mask, value_mask = (keras.Input((None,), dtype="bool") for _ in range(2))
    context = kind(name="attention")([query, value, key], mask=[query_mask, value_mask])
    model = keras.Model([query, value, key, query_mask, value_mask], context)
    inputs = [*tensors, *masks[:2]]
    expected = to_numpy(model(inputs))
    layer = model.get_layer("attention")
    np.testing.assert_allclose(to_numpy(layer(tensors, mask=masks[:2])), expected, atol=EXACT)
    model.save(tmp_path / "model.keras")
    np.testing.assert_allclose(
        to_numpy(keras.saving.load_model(tmp_path / "model.keras")(inputs)), expected, atol=EXACT
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda layer, x: layer(x), r"`\(query, value\)` or `\[query, value\]`. Received a query alone"),
        (lambda layer, x: layer([x]), "list of two or three tensors, of query, value and key. Received 1"),
        (lambda layer, x: layer([x] * 4), "list of two or three tensors, of query, value and key. Received 4"),
        (lambda layer, x: layer([x, x], x), "After a list of tensors SoftAttention takes keywords only"),
        (
            lambda layer, x: layer([x, x], mask=x[..., 0] > 0),
            r"list of two or three masks, of query, value and key. Received one of shape \(2, 3\)",
        ),
        (
            lambda layer, x: layer([x, x], mask=[None, x[..., 0] > 0], query_mask=x[..., 0] > 0),
            "SoftAttention received query_mask twice",
        ),
    ],
)
def test_lists_that_do_not_fit(call, message, tensors):
    with pytest.raises(ValueError, match=message):
        call(layers.SoftAttention(), tensors[0])


def test_multi_head_attention_takes_its_tensors_one_by_one_as_in_keras(tensors):
    layer = layers.MultiHeadAttention(num_heads=2, key_dim=5)
    with pytest.raises(
        ValueError, match=r"takes its tensors one by one.* Received a list of 3: call it with `\*tensors`"
    ):
        layer(tensors)
    assert layer(*tensors).shape == (B, T, D)


# === Arguments that a class sets itself ===


@pytest.mark.parametrize(
    "make",
    [
        scores.DotScore,
        alignments.Categorical,
        training.MovingAverage,
        lambda **options: layers.GlimpseSensor(size=2, **options),
    ],
)
def test_autocast_is_refused_where_it_is_off(make):
    with pytest.raises(TypeError, match=r"takes no argument `autocast`. Received: True\. .* it is always off"):
        make(autocast=True)
