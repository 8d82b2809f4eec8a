import keras
import numpy as np
import pytest
from keras import ops
from reference.arrays import normal, to_numpy
from reference.gradients import gradient
from reference.hierarchical_attention import pooling as loop
from tolerances import EXACT, FLOAT32

from keras_attention.alignments import Sparsemax
from keras_attention.layers import AttentionPooling

B, L, S, D, U = 2, 3, 5, 7, 13
MASK = np.array([[True, True, False, True, False], [False, True, True, True, True]])


@pytest.fixture
def inputs():
    return normal(B, S, D)


def close(received, expected, atol=FLOAT32):
    np.testing.assert_allclose(to_numpy(received), expected, atol=atol)


def with_weights(layer, *weights):
    layer.build((None, None, np.shape(weights[0])[0]))
    layer.set_weights([np.array(weight, "float32") for weight in weights])
    return layer


def random_weights(layer):
    layer.build((None, None, D))
    layer.set_weights([normal(*weight.shape, seed=index) for index, weight in enumerate(layer.get_weights())])
    return layer


# === The formula ===


def test_pooling_by_hand():
    layer = with_weights(AttentionPooling(), [[1.0]], [0.0], [1.0])
    output, weights = layer(np.array([[[0.0], [1.0]]], "float32"), return_attention_scores=True)
    close(weights, [[0.318300, 0.681700]])  # the softmax of (0, tanh 1) = (0, 0.76159)
    close(output, [[0.681700]])


def test_output_and_weights_are_those_of_the_loop_at_any_number_of_leading_axes():
    layer = random_weights(AttentionPooling(units=U))
    inputs = normal(B, L, S, D, seed=2)
    mask = np.random.default_rng(3).random((B, L, S)) > 0.4
    mask[1, 2] = False
    output, weights = to_numpy(layer(inputs, mask=mask, return_attention_scores=True))
    for index in np.ndindex(B, L):
        real = mask[index]
        expected, expected_weights = (
            loop(inputs[index][real], *layer.get_weights()) if real.any() else (np.zeros(D), [])
        )
        close(output[index], expected)
        close(weights[index][real], expected_weights)
        assert not weights[index][~real].any()


def test_the_hidden_layer_is_as_wide_as_the_inputs_unless_told_otherwise(inputs):
    for units, width in ((None, D), (U, U)):
        layer = AttentionPooling(units)
        layer(inputs)
        assert [tuple(weight.shape) for weight in layer.weights] == [(D, width), (width,), (width,)]


def test_the_weights_are_those_of_the_alignment(inputs):
    layer = random_weights(AttentionPooling(alignment="sparsemax"))
    kernel, bias, vector = layer.get_weights()
    scores = np.tanh(inputs @ kernel + bias) @ vector
    _, weights = layer(inputs, mask=MASK, return_attention_scores=True)
    close(weights, to_numpy(Sparsemax()(ops.convert_to_tensor(scores), mask=MASK)))
    assert (to_numpy(weights)[MASK] == 0).any()


def test_the_order_of_the_positions_does_not_matter(inputs):
    layer, order = AttentionPooling(), np.array([3, 0, 4, 2, 1])
    close(layer(inputs[:, order], mask=MASK[:, order]), to_numpy(layer(inputs, mask=MASK)))


def test_the_gradient_is_that_of_finite_differences(inputs):
    layer = random_weights(AttentionPooling(units=U))
    weights = [weight.astype("float64") for weight in layer.get_weights()]
    factors, step = normal(D, seed=5), 1e-5
    received = gradient(lambda tensor: ops.sum(layer(tensor) * factors), inputs[:1])
    for s, d in ((0, 0), (2, 3), (S - 1, D - 1)):
        moved = [inputs[0].astype("float64") for _ in range(2)]
        moved[0][s, d] -= step
        moved[1][s, d] += step
        below, above = (loop(each, *weights)[0] @ factors for each in moved)
        np.testing.assert_allclose(received[0, s, d], (above - below) / (2 * step), atol=FLOAT32)


# === Masks ===


def test_the_implicit_mask_is_used_and_the_explicit_one_comes_first(inputs):
    layer = AttentionPooling()
    masked = keras.layers.Masking()(np.where(MASK[..., None], inputs, 0.0).astype("float32"))
    close(layer(masked), to_numpy(layer(inputs, mask=MASK)))
    close(layer(masked, mask=np.ones((B, S), bool)), to_numpy(layer(np.where(MASK[..., None], inputs, 0.0))))


def test_padding_of_an_embedding_has_no_weight():
    ids = np.array([[1, 2, 0, 0]], "int32")
    layer, embedding = AttentionPooling(), keras.layers.Embedding(11, D, mask_zero=True)
    _, weights = layer(embedding(ids), return_attention_scores=True)
    assert (to_numpy(weights)[0, :2] > 0).all() and not to_numpy(weights)[0, 2:].any()


@pytest.mark.parametrize("form", [lambda mask: mask, lambda mask: mask.astype("int32"), lambda mask: mask.tolist()])
def test_a_mask_may_have_any_type(inputs, form):
    layer = AttentionPooling()
    close(layer(inputs, mask=form(MASK)), to_numpy(layer(inputs, mask=MASK)), atol=EXACT)


def test_a_functional_model_may_pass_the_mask_by_position_and_ask_for_the_weights(inputs):
    symbols = keras.Input((None, D)), keras.Input((None,), dtype="bool")
    layer = AttentionPooling()
    model = keras.Model(symbols, layer(symbols[0], symbols[1], return_attention_scores=True))
    assert [output.shape for output in model.outputs] == [(None, D), (None, None)]
    for received, expected in zip(
        model([inputs, MASK]), layer(inputs, MASK, return_attention_scores=True), strict=True
    ):
        close(received, to_numpy(expected))


# === Around it ===


def test_it_works_inside_time_distributed():
    inputs, layer = normal(B, L, S, D), AttentionPooling()
    output = to_numpy(keras.layers.TimeDistributed(layer)(inputs))
    for index in range(L):
        close(output[:, index], to_numpy(layer(inputs[:, index])))
    close(output, to_numpy(layer(inputs)))


def test_two_kernels_of_an_unseeded_initializer_differ(inputs):
    layers = [AttentionPooling(kernel_initializer="normal") for _ in range(2)]
    for layer in layers:
        layer(inputs)
    assert (layers[0].get_weights()[0] != layers[1].get_weights()[0]).all()


# === Errors ===


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"units": 0}, ValueError, "`units` must be a positive integer. Received: 0"),
        ({"units": 2.5}, ValueError, "`units` must be a positive integer. Received: 2.5"),
        ({"dropout": 1.0}, ValueError, r"`dropout` must be a number in \[0, 1\). Received: 1.0"),
        ({"alignment": "softmac"}, ValueError, 'Unknown alignment: "softmac".*Did you mean "softmax"'),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        AttentionPooling(**arguments)


@pytest.mark.parametrize(
    ("shape", "mask", "message"),
    [
        ((S, D), None, r"`inputs` must have at least 3 axes, `\(B, ..., S, D\)`. Received shape \(5, 7\)"),
        ((B, S, D), (B, 4), r"`mask` must have one entry for each position, shape \(2, 5\).*Received shape \(2, 4\)"),
        ((B, L, S, D), (B, S), r"`mask` must have one entry for each position, shape \(2, 3, 5\).*shape \(2, 5\)"),
    ],
)
def test_shapes_that_do_not_fit(shape, mask, message):
    with pytest.raises(ValueError, match=message):
        AttentionPooling()(np.ones(shape, "float32"), mask=None if mask is None else np.ones(mask, bool))


def test_an_alignment_over_all_queries_is_refused():
    with pytest.raises(ValueError, match=r"DependencyTree needs all queries at once.* for one query alone, as pooling"):
        AttentionPooling(alignment="dependency_tree")


def test_an_unknown_width_is_refused():
    with pytest.raises(ValueError, match=r"`inputs` must have a known last axis.*Received shape \(None, 5, None\)"):
        AttentionPooling()(keras.Input((S, None)))
