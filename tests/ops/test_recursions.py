import keras
import numpy as np
import pytest
from keras import ops
from reference.arrays import normal, to_numpy
from reference.gradients import gradient
from tolerances import FLOAT32

from keras_attention.ops.recursions import portable_scan, scan

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


@pytest.mark.parametrize("shape", [(L,), (L, D)])
def test_states_equal_the_loop(shape):
    np.testing.assert_allclose(states(normal(*shape)), loop(normal(*shape)), atol=FLOAT32)


def test_gradients_equal_finite_differences():
    inputs, factors = normal(L, D), normal(L, D, seed=1)
    found = gradient(lambda inputs: ops.sum(states(inputs) * ops.array(factors)), inputs)
    direction = normal(L, D, seed=2).astype("float64")
    ends = [(factors * loop(inputs + step * direction)).sum() for step in (1e-6, -1e-6)]
    np.testing.assert_allclose((found * direction).sum(), (ends[0] - ends[1]) / 2e-6, rtol=FLOAT32)


@pytest.mark.parametrize("shape", [(L, 0), (L, D, 0)])
def test_empty_states_stay_empty(shape):
    assert to_numpy(states(ops.zeros(shape))).shape == shape


# === TensorFlow has a loop of its own ===

ON_TENSORFLOW = pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="the loop is TensorFlow's")


def mixed_states(scan, inputs, mixing):
    """A step that reads a tensor from outside of the loop, which has a gradient too."""
    return scan(lambda state, entry: ops.tanh(ops.matmul(state, mixing)) * entry + entry, ops.ones((D,)), inputs)


def derivatives(scan):
    """Function of `(inputs, mixing)` that returns states, slopes and slopes of the slopes."""
    import tensorflow as tf

    def function(*arguments):
        with tf.GradientTape() as outer:
            outer.watch(arguments)
            with tf.GradientTape() as inner:
                inner.watch(arguments)
                found = mixed_states(scan, *arguments)
                total = tf.reduce_sum(found**2)
            slopes = inner.gradient(total, arguments, unconnected_gradients="zero")
            total = sum(tf.reduce_sum(tf.sin(slope)) for slope in slopes)
        return found, *slopes, *outer.gradient(total, arguments, unconnected_gradients="zero")

    return function


@ON_TENSORFLOW
@pytest.mark.parametrize("jit_compile", [None, False, True], ids=["eager", "graph", "XLA"])
def test_first_and_second_derivatives_are_those_of_the_portable_scan_at_unknown_length(jit_compile):
    import tensorflow as tf

    function = derivatives(scan)
    if jit_compile is not None:
        signature = [tf.TensorSpec((None, D)), tf.TensorSpec((D, D))]
        function = tf.function(function, jit_compile=jit_compile, input_signature=signature)
    arguments = tf.constant(0.5 * normal(L, D)), tf.constant(normal(D, D, seed=1))
    for found, expected in zip(function(*arguments), derivatives(portable_scan)(*arguments), strict=True):
        np.testing.assert_allclose(found, expected, atol=FLOAT32, rtol=1e-4)
    found, *slopes = function(tf.zeros((0, D)), arguments[1])
    assert found.shape == (0, D) and not np.any(slopes[1])


@ON_TENSORFLOW
@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("shape", [(L, D), (None, None)])
def test_gradients_compile_also_where_sizes_are_unknown(jit_compile, shape):
    import tensorflow as tf

    def slopes(inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            total = ops.sum(states(inputs))
        return tape.gradient(total, inputs)

    compiled = tf.function(slopes, jit_compile=jit_compile, input_signature=[tf.TensorSpec(shape)])
    inputs = tf.constant(normal(L, D))
    np.testing.assert_allclose(compiled(inputs), slopes(inputs), atol=FLOAT32)
