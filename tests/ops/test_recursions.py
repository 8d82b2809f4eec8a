import keras
import numpy as np
import pytest
from keras import ops
from reference.arrays import normal, to_numpy
from reference.gradients import gradient
from tolerances import FLOAT32

from keras_attention.ops.recursions import scan

L, D = 5, 7


def states(inputs):
    """`state · tanh(input) + input`, one step after the other."""
    return scan(lambda state, entry: state * ops.tanh(entry) + entry, ops.ones(ops.shape(inputs)[1:]), inputs)


def loop(inputs):
    state, found = np.ones(inputs.shape[1:]), []
    for entry in inputs.astype("float64"):
        state = state * np.tanh(entry) + entry
        found.append(state)
    return np.array(found)


def test_states_equal_the_loop():
    np.testing.assert_allclose(states(normal(L, D)), loop(normal(L, D)), atol=FLOAT32)


def test_gradients_equal_finite_differences():
    inputs, factors = normal(L, D), normal(L, D, seed=1)
    found = gradient(lambda inputs: ops.sum(states(inputs) * ops.array(factors)), inputs)
    direction = normal(L, D, seed=2).astype("float64")
    ends = [(factors * loop(inputs + step * direction)).sum() for step in (1e-6, -1e-6)]
    np.testing.assert_allclose((found * direction).sum(), (ends[0] - ends[1]) / 2e-6, rtol=FLOAT32)


@pytest.mark.parametrize("shape", [(L, 0), (L, D, 0)])
def test_empty_states_stay_empty(shape):
    assert to_numpy(states(ops.zeros(shape))).shape == shape


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="the loop is TensorFlow's")
@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("shape", [(L, D), (None, D), (None, None)])
def test_gradients_compile_also_where_lengths_are_unknown(jit_compile, shape):
    import tensorflow as tf

    def slopes(inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            total = ops.sum(states(inputs))
        return tape.gradient(total, inputs)

    compiled = tf.function(slopes, jit_compile=jit_compile, input_signature=[tf.TensorSpec(shape)])
    inputs = tf.constant(normal(L, D))
    np.testing.assert_allclose(compiled(inputs), slopes(inputs), atol=FLOAT32)
