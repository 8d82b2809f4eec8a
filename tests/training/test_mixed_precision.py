"""Loss scaling reaches `SmoothedCrossentropy` through a plain `fit`."""

import keras
import numpy as np
import pytest

from keras_attention.training import SmoothedCrossentropy


def movement(policy):
    """How far one step moves the weights where their gradient, about 1e-8, is zero in float16."""
    layer = keras.layers.Dense(2, use_bias=False, kernel_initializer="zeros", dtype=policy)
    model = keras.Sequential([keras.Input((1,)), layer])
    model.compile(optimizer=keras.optimizers.SGD(1e6), loss=SmoothedCrossentropy(0.0))
    model.fit(np.array([[1e-4]]), np.array([1]), sample_weight=np.array([2e-4]), verbose=0)
    return layer.get_weights()[0]


def test_mixed_float16_moves_the_weights_as_far_as_float32():
    exact = 1e6 * 1e-4 * 2e-4 * 0.5  # rate · input · sample weight · (softmax - target)
    np.testing.assert_allclose(movement("float32"), [[-exact, exact]], rtol=1e-5)
    keras.config.set_dtype_policy("mixed_float16")
    try:
        np.testing.assert_allclose(movement("mixed_float16"), movement("float32"), rtol=0.02)
    finally:
        keras.config.set_dtype_policy("float32")


def test_the_gradient_of_this_test_needs_scaling():
    assert np.float16(1e-4) * np.float16(2e-4 * 0.5) == 0
    assert pytest.approx(1e-8) == 1e-4 * 2e-4 * 0.5
