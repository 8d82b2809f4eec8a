"""What every public class must hold: it has a line, its shapes agree, its config comes back, its gradients are finite."""

import inspect
import json

import keras
import numpy as np
import pytest
from contract.calls import built, call, gradients, random_factors, results, symbolic_arguments
from contract.cases import (
    CASES,
    DROPOUT_CASES,
    INTERFACES,
    LAYER_CASES,
    ONE_OF_EACH,
    OTHER_SIZES,
    PACKAGES,
    SIZES,
    UNKNOWN_SIZES,
    WEIGHTS_CASES,
    WRAPPERS,
    each,
    shape_of,
)
from tolerances import EXACT, FLOAT32


def sizes_test():
    return pytest.mark.parametrize("sizes", [SIZES, OTHER_SIZES, UNKNOWN_SIZES], ids=["fixed", "other", "unknown"])


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_public_class_has_a_line(package):
    public = {getattr(package, name) for name in package.__all__ if inspect.isclass(getattr(package, name))}
    callbacks = {kind for kind in public if issubclass(kind, keras.callbacks.Callback)}  # Keras gives them no config
    missing = public - {case.kind for case in CASES} - INTERFACES - WRAPPERS - callbacks
    assert not missing, f"Add a line to tests/contract/cases.py for {sorted(kind.__name__ for kind in missing)}."


# === Shapes and types ===


@each(LAYER_CASES)
@sizes_test()
def test_symbolic_shape_is_the_shape_of_the_tensor(case, sizes):
    layer = case.make()
    symbolic = call(layer, symbolic_arguments(case, sizes))
    assert symbolic.shape == shape_of(case.output, sizes)
    if sizes is SIZES:
        output = results(layer, case.masked(case.arrays(sizes), case.padding_masks(sizes)))
        assert output.shape == symbolic.shape
        assert keras.backend.standardize_dtype(symbolic.dtype) == output.dtype.name


@each(WEIGHTS_CASES)
@sizes_test()
def test_symbolic_shape_of_the_weights_is_the_shape_of_the_tensor(case, sizes):
    layer = case.make()
    symbolic = call(layer, symbolic_arguments(case, sizes), return_attention_scores=True)
    shapes = shape_of(case.output, sizes), keras.tree.map_structure(lambda axes: shape_of(axes, sizes), case.weights)
    assert keras.tree.map_structure(lambda leaf: leaf.shape, symbolic) == shapes
    if sizes is SIZES:
        arguments = case.masked(case.arrays(sizes), case.padding_masks(sizes))
        outputs = results(layer, arguments, return_attention_scores=True)
        keras.tree.assert_same_structure(outputs, symbolic)
        for array, leaf in zip(keras.tree.flatten(outputs), keras.tree.flatten(symbolic), strict=True):
            assert array.shape == leaf.shape
            assert keras.backend.standardize_dtype(leaf.dtype) == array.dtype.name


@each(LAYER_CASES)
@sizes_test()
def test_compute_output_shape_is_the_shape_of_the_tensor(case, sizes):
    shapes = {name: shape_of(axes, sizes) for name, axes in case.inputs.items()}
    layer = case.make()
    if isinstance(layer, keras.Model):
        shapes |= {name: shape_of("B" + axes, sizes) for name, axes in case.masks.items()}
        shapes = shapes if isinstance(layer.input, dict) else next(iter(shapes.values()))
        assert layer.compute_output_shape(shapes) == shape_of(case.output, sizes)
    else:
        assert layer.compute_output_shape(*shapes.values()) == shape_of(case.output, sizes)


def outcome(function, *arguments):
    """The shape of the output, or the error."""
    try:
        return tuple(function(*arguments).shape)
    except ValueError as error:
        return error


@each([case for case in ONE_OF_EACH if not issubclass(case.kind, keras.Model)])
@pytest.mark.parametrize("change", [lambda array: array[0], lambda array: array[:, None]], ids=["fewer", "more"])
def test_other_axes_are_taken_or_refused_eagerly_and_symbolically_alike(case, change):
    arrays = {name: change(array) for name, array in case.arrays().items()}
    symbols = {name: keras.Input(batch_shape=array.shape, dtype=str(array.dtype)) for name, array in arrays.items()}
    eager = outcome(results, built(case), arrays)
    symbolic = outcome(call, built(case), symbols)
    if isinstance(eager, tuple):
        assert symbolic == eager
    else:
        for error in (eager, symbolic):
            assert "axes" in str(error)
            assert any(str(array.shape) in str(error).split("Arguments received")[0] for array in arrays.values())


@each(WEIGHTS_CASES)
def test_output_is_the_same_whether_or_not_the_weights_are_asked_for(case):
    layer = built(case)
    arguments = case.masked(case.arrays(), case.padding_masks())
    output, _ = results(layer, arguments, return_attention_scores=True)
    np.testing.assert_allclose(results(layer, arguments), output, atol=FLOAT32)


@pytest.mark.parametrize(
    ("case", "axis"),
    [(case, axis) for case in ONE_OF_EACH for axis in "BTS" if axis in "".join(case.inputs.values())],
    ids=str,
)
def test_empty_input_gives_empty_or_zero_results(case, axis):
    sizes = {**SIZES, axis: 0}
    output = results(built(case), case.masked(case.arrays(sizes), case.full_masks(sizes)))
    assert output.shape == shape_of(case.output, sizes)
    assert np.isfinite(output).all()
    if case.is_context:
        assert not output.any()


# === Gradients ===


@each(LAYER_CASES)
def test_gradients_are_finite_and_reach_every_trainable_weight(case):
    layer = built(case)
    arguments = case.masked(case.arrays(), case.padding_masks())
    inputs, weights = gradients(layer, arguments, random_factors(case), **case.learning)
    for name, gradient in inputs.items():
        assert np.isfinite(gradient).all() and gradient.any() == (name not in case.without_gradient), name
    for weight, gradient in zip(layer.trainable_weights, weights, strict=True):
        is_reached = not any(part in weight.path for part in case.without_gradient)
        assert np.isfinite(gradient).all() and gradient.any() == is_reached, weight.path


# === Rows of a batch ===


@each(LAYER_CASES)
def test_rows_of_a_batch_do_not_influence_each_other(case):
    layer = built(case)
    arguments = case.masked(case.arrays(), case.padding_masks())
    together = results(layer, arguments)
    for row in range(SIZES["B"]):
        alone = results(layer, {name: array[row : row + 1] for name, array in arguments.items()})
        np.testing.assert_allclose(alone[0], together[row], atol=FLOAT32)


# === Dropout ===


@each(DROPOUT_CASES)
def test_dropout_is_reproducible_by_its_seed_and_off_at_inference(case):
    arguments = case.arrays()
    first, second, other = (case.make(dropout=0.5, seed=seed) for seed in (3, 3, 4))
    for layer in (first, second, other):
        results(layer, arguments, training=True)
    for layer in (second, other):
        layer.set_weights(first.get_weights())
    calls = [[results(layer, arguments, training=True) for _ in range(2)] for layer in (first, second, other)]
    np.testing.assert_allclose(calls[0], calls[1], atol=EXACT)
    assert np.abs(calls[0][0] - calls[0][1]).max() > FLOAT32, "the second call repeats the first"
    assert np.abs(calls[0][0] - calls[2][0]).max() > FLOAT32, "another seed gives the same numbers"
    np.testing.assert_allclose(*(results(first, arguments, training=False) for _ in range(2)), atol=EXACT)


@each(WEIGHTS_CASES)
@pytest.mark.parametrize("training", [True, False])
def test_returned_weights_are_those_before_dropout(case, training):
    layer = built(case, dropout=0.5, seed=3)
    _, weights = results(layer, case.arrays(), return_attention_scores=True, training=training)
    for array in keras.tree.flatten(weights):
        np.testing.assert_allclose(array.sum(axis=-1), 1.0, atol=FLOAT32)


# === Config ===


@each(CASES)
def test_config_survives_json(case):
    made = case.make()
    config = json.loads(json.dumps(made.get_config()))
    assert json.loads(json.dumps(case.kind.from_config(config).get_config())) == config


@each(LAYER_CASES)
def test_config_stays_the_same_when_the_layer_is_built(case):
    layer = case.make()
    config = layer.get_config()
    call(layer, symbolic_arguments(case, SIZES))
    assert layer.get_config() == config


@each(CASES)
def test_config_holds_every_argument_of_the_constructor(case):
    arguments = set(inspect.signature(case.kind).parameters) - {"kwargs"}
    config = case.make(name="given").get_config() if case.inputs else case.make().get_config()
    assert arguments <= set(config)
    for name, value in case.options.items():
        if not isinstance(config[name], dict):
            assert keras.tree.flatten(config[name]) == keras.tree.flatten(value)


@each(LAYER_CASES)
def test_config_holds_name_and_dtype(case):
    layer = case.kind.from_config(case.make(name="given", dtype="mixed_bfloat16").get_config())
    assert layer.name == "given"
    layers = layer.layers if isinstance(layer, keras.Model) else [layer]
    assert "mixed_bfloat16" in {each.dtype_policy.name for each in layers}
