import keras
import numpy as np
import pytest
from keras import ops

from keras_attention.ops.known_values import infers_shapes, known_values


class Asked(keras.layers.Layer):
    """What is known of the inputs of a call, by `asked`."""

    def call(self, inputs):
        self.answers.append((known_values(inputs), infers_shapes()))
        return inputs


@pytest.fixture
def layer():
    layer = Asked()
    object.__setattr__(layer, "answers", [])
    return layer


@pytest.mark.parametrize("kind", [list, np.array, ops.array], ids=["list", "numpy", "tensor"])
def test_the_values_of_what_stands_outside_a_graph_are_known(kind):
    np.testing.assert_array_equal(known_values(kind([2, 3])), [2, 3])


def test_an_eager_call_knows_its_values(layer):
    layer(ops.array([2, 3]))
    ((values, infers),) = layer.answers
    np.testing.assert_array_equal(values, [2, 3])
    assert not infers


def test_a_symbolic_call_knows_nothing(layer):
    layer(keras.Input((3,)))
    assert {(values is None, infers) for values, infers in layer.answers} == {(True, True)}


@pytest.mark.skipif(keras.backend.backend() == "torch", reason="torch runs every call eagerly")
def test_a_compiled_call_knows_no_values_and_is_no_inference_of_shapes(layer):
    model = keras.Sequential([layer])
    model.build((2, 3))
    layer.answers.clear()
    model.predict(np.ones((2, 3)), verbose=0)
    assert {(values is None, infers) for values, infers in layer.answers} == {(True, False)}
