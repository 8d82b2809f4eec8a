"""One behaviour: eager, compiled with and without XLA, trained by `fit`, exported and loaded."""

import keras
import numpy as np
import pytest
from contract.calls import arrays_of, eager_results, functional
from contract.cases import ONE_OF_EACH, OTHER_SIZES, SIZES, each
from tolerances import FLOAT32

from keras_attention import training

BACKEND = keras.backend.backend()


def eager_outputs(case, layer, arguments):
    options = {"return_attention_scores": True} if case.weights else {}
    return keras.tree.flatten(eager_results(layer, arguments, **options))


def assert_agree(outputs, expected):
    for output, reference in zip(keras.tree.flatten(outputs), expected, strict=True):
        np.testing.assert_allclose(output, reference, atol=FLOAT32)


def square_mean(y_true, y_pred):
    """The square of what may not be chosen, LOWEST, would overflow."""
    return keras.ops.mean(keras.ops.square(keras.ops.clip(y_pred - y_true, -100.0, 100.0)), axis=-1)


def check_predictions(case, jit_compile):
    """The compiled model of a case, its inputs, and the outputs of an eager call, which its predictions equal."""
    layer = case.make()
    # Random choices learn in a `ReinforceModel` only.
    model = layer if isinstance(layer, training.ReinforceModel) else functional(case, layer)
    arguments = case.masked(case.arrays(), case.padding_masks())
    expected = eager_outputs(case, layer, arguments)
    model.compile(keras.optimizers.SGD(0.1), [square_mean] * len(expected), jit_compile=jit_compile)
    arguments = arguments if isinstance(model.input, dict) else next(iter(arguments.values()))
    assert_agree(model.predict_on_batch(arguments), expected)
    return model, arguments, expected


@each(ONE_OF_EACH)
@pytest.mark.skipif(BACKEND != "tensorflow", reason="TensorFlow alone has graphs without a compiler")
def test_model_in_a_graph_predicts_as_eager(case):
    check_predictions(case, jit_compile=False)


@each(ONE_OF_EACH)
def test_compiled_model_predicts_as_eager_and_trains_one_step(case):
    model, arguments, expected = check_predictions(case, jit_compile=BACKEND != "torch")  # there it takes minutes
    if model.trainable_weights:  # else there is nothing to fit
        before = model.get_weights()
        history = model.fit(arguments, [np.zeros_like(output) for output in expected], batch_size=2, verbose=0)
        assert np.isfinite(history.history["loss"]).all()
        assert any((old != new).any() for old, new in zip(before, model.get_weights(), strict=True))


@each(ONE_OF_EACH)
@pytest.mark.skipif(BACKEND != "tensorflow", reason="a SavedModel is written by TensorFlow")
def test_exported_model_serves_two_lengths_and_batches_as_eager(case, tmp_path):
    import tensorflow as tf

    layer = case.make()
    functional(case, layer).export(tmp_path, verbose=False)
    served = tf.saved_model.load(tmp_path)

    def serve(arguments):
        tensors = {name: tf.constant(array) for name, array in arguments.items()}
        return arrays_of(keras.tree.flatten(served.serve(tensors)))

    for sizes in (SIZES, OTHER_SIZES):
        arguments = case.masked(case.arrays(sizes), case.padding_masks(sizes))
        outputs = serve(arguments)
        assert_agree(outputs, eager_outputs(case, layer, arguments))
    without_rows = serve({name: array[:0] for name, array in arguments.items()})
    assert [output.shape for output in without_rows] == [(0, *output.shape[1:]) for output in outputs]
