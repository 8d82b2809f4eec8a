import keras
import numpy as np
import pytest
from reference import transformer
from reference.arrays import normal, to_numpy
from tolerances import FLOAT32

from keras_attention.layers import FeedForward

B, T, D, HIDDEN = 2, 3, 7, 13


def test_output_by_hand():
    layer = FeedForward(intermediate_dim=2)
    layer.build((1, 1))
    layer.set_weights([np.array(weight) for weight in ([[1.0, -1.0]], [0.5, 0.5], [[2.0], [3.0]], [0.25])])
    # relu(2 + 0.5) · 2 + relu(-2 + 0.5) · 3 + 0.25
    assert to_numpy(layer(np.array([[2.0]], "float32"))).tolist() == [[5.25]]


@pytest.mark.parametrize("leading", [(B,), (B, T), (B, 5, T)])
def test_output_equals_the_formula_for_any_leading_axes(leading):
    layer, inputs = FeedForward(HIDDEN), normal(*leading, D)
    output = layer(inputs)
    np.testing.assert_allclose(output, transformer.feed_forward(inputs, *layer.get_weights()), atol=FLOAT32)


def test_weights_are_two_kernels_and_two_biases():
    layer = FeedForward(HIDDEN)
    layer.build((B, T, D))
    assert [weight.shape for weight in layer.weights] == [(D, HIDDEN), (HIDDEN,), (HIDDEN, D), (D,)]


def test_another_activation_takes_the_place_of_relu():
    layer, inputs = FeedForward(HIDDEN, activation="gelu"), normal(B, T, D)
    output = to_numpy(layer(inputs))
    hidden_kernel, hidden_bias, output_kernel, output_bias = layer.get_weights()
    hidden = to_numpy(keras.activations.gelu(inputs @ hidden_kernel + hidden_bias))
    np.testing.assert_allclose(output, hidden @ output_kernel + output_bias, atol=FLOAT32)


def test_dropout_falls_on_the_hidden_layer_in_training_only():
    layer, inputs = FeedForward(1, dropout=0.5, seed=1), np.ones((1, 1000, 1), "float32")
    layer.build(inputs.shape)
    layer.set_weights([np.array(weight) for weight in ([[1.0]], [0.0], [[1.0]], [0.25])])
    assert set(np.unique(layer(inputs, training=True))) == {0.25, 2.25}
    assert set(np.unique(layer(inputs))) == {1.25}


def test_positions_do_not_see_each_other():
    layer, inputs = FeedForward(HIDDEN), normal(B, T, D)
    output = to_numpy(layer(inputs))
    np.testing.assert_allclose(layer(inputs[:, 1:2]), output[:, 1:2], atol=FLOAT32)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"intermediate_dim": 0}, ValueError, r"`intermediate_dim` must be a positive integer. Received: 0\."),
        ({"intermediate_dim": 2.0}, ValueError, r"`intermediate_dim` must be .* Received: 2.0 of type float\."),
        ({"intermediate_dim": 3, "dropout": 2}, ValueError, r"`dropout` must be a number in \[0, 1\). Received: 2\."),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        FeedForward(**arguments)


def test_the_width_must_be_known():
    with pytest.raises(ValueError, match=r"`inputs` must have a known last axis.* \(None, 3, None\)"):
        FeedForward(HIDDEN)(keras.Input((3, None)))


def test_the_initializers_are_those_of_both_dense_layers():
    layer = FeedForward(HIDDEN, "linear", kernel_initializer="ones", bias_initializer=keras.initializers.Constant(0.5))
    inputs = normal(B, T, D)
    expected = (inputs.sum(axis=-1, keepdims=True) + 0.5) * HIDDEN + 0.5
    np.testing.assert_allclose(layer(inputs), np.broadcast_to(expected, inputs.shape), rtol=FLOAT32, atol=10 * FLOAT32)
    assert FeedForward.from_config(layer.get_config()).get_config()["kernel_initializer"] == "ones"
