"""A user's subclassed model that holds a layer of ours: Keras builds it again by calling it on float32 placeholders."""

import keras
import numpy as np
from contract.calls import arrays_of, call
from contract.cases import ONE_OF_EACH, each
from tolerances import EXACT

from keras_attention import decoding, layers

KINDS = {str(case): case for case in ONE_OF_EACH}


@keras.saving.register_keras_serializable(package="tests")
class Holder(keras.Model):
    """The layer of a case, made in `__init__` and built by the first call, as users write their models."""

    def __init__(self, case, **kwargs):
        super().__init__(**kwargs)
        self.case = case
        self.layer = KINDS[case].make()

    def call(self, inputs):
        return call(self.layer, inputs)

    def get_config(self):
        return {**super().get_config(), "case": self.case}


def outputs_of(model, inputs):
    """On JAX, which compiles each model for a second, the weights of a model that is built stand for its outputs."""
    if keras.backend.backend() == "jax":
        model(keras.tree.map_structure(lambda array: keras.KerasTensor(array.shape, array.dtype.name), inputs))
        return model.get_weights()
    return keras.tree.flatten(arrays_of(model(keras.tree.map_structure(keras.ops.convert_to_tensor, inputs))))


def assert_same(model, inputs, outputs):
    for output, expected in zip(outputs_of(model, inputs), outputs, strict=True):
        np.testing.assert_allclose(output, expected, atol=EXACT)


@each(ONE_OF_EACH)
def test_a_subclassed_model_comes_back_from_its_file_with_the_same_outputs(case, tmp_path):
    model = Holder(str(case))
    inputs = case.masked(case.arrays(), case.padding_masks())
    outputs = outputs_of(model, inputs)
    model.save(tmp_path / "model.keras")
    assert_same(keras.saving.load_model(tmp_path / "model.keras"), inputs, outputs)


@each([case for case in ONE_OF_EACH if case.kind in (layers.TokenEmbedding, layers.HierarchicalAttention)])
def test_a_subclassed_model_built_for_any_batch_takes_its_weights(case, tmp_path):
    model = Holder(str(case))
    inputs = case.masked(case.arrays(), case.padding_masks())
    outputs = outputs_of(model, inputs)
    model.save_weights(tmp_path / "model.weights.h5")
    loaded = Holder(str(case))
    loaded.build_from_config({"input_shape": {name: (None, *array.shape[1:]) for name, array in inputs.items()}})
    loaded.built = True  # as Keras' reader of `.keras` files does
    loaded.load_weights(tmp_path / "model.weights.h5")
    assert_same(loaded, inputs, outputs)


@keras.saving.register_keras_serializable(package="tests")
class Writer(keras.Model):
    """Writes by greedy search from start ids that are its inputs."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.embedding = layers.TokenEmbedding(19, 7)
        self.dense = keras.layers.Dense(19)

    def call(self, start):
        return decoding.greedy_search(lambda ids, state: (self.dense(self.embedding(ids)), state), (), start, 3)[1]


def test_a_subclassed_model_that_searches_comes_back_from_its_file_with_the_same_scores(tmp_path):
    model, start = Writer(), np.array([1, 5])
    scores = outputs_of(model, start)
    model.save(tmp_path / "model.keras")
    assert_same(keras.saving.load_model(tmp_path / "model.keras"), start, scores)
