"""Calls of a case on any backend: plain, inside a functional model, and for its gradients."""

import functools
import inspect

import keras
import numpy as np
from contract.cases import UNKNOWN_SIZES, Case, shape_of


def call(layer, arguments, **options):
    """Models take one dictionary, masks in it, or one tensor; layers take arguments."""
    if isinstance(layer, keras.Model) and not isinstance(layer.input, dict):
        return layer(*arguments.values(), **options)
    if isinstance(layer, keras.Model):
        missing = {name: arguments[Case.argument_of(name)] for name in set(layer.input) - set(arguments)}
        full = {name: keras.ops.ones(keras.ops.shape(tensor)[:-1], "bool") for name, tensor in missing.items()}
        return layer({**arguments, **full}, **options)
    return layer(**arguments, **options)


def arrays_of(outputs):
    return keras.tree.map_structure(keras.ops.convert_to_numpy, outputs)


def results(layer, arguments, **options):
    """The outputs of an eager call, as NumPy arrays."""
    tensors = {name: keras.ops.convert_to_tensor(array) for name, array in arguments.items()}
    return arrays_of(call(layer, tensors, **options))


@functools.cache
def built(case, **options):
    """The layer of a case, called once; made once for all tests, which must not change its weights."""
    layer = case.make(**options)
    results(layer, case.arrays())
    return layer


def accepts(layer, argument):
    return argument in inspect.signature(layer.call).parameters


def symbolic_arguments(case, sizes):
    """A `keras.Input` for each argument; axes whose size is None stay unknown."""
    batch, *_ = shape_of("B", sizes)
    arguments = {}
    for name, axes in case.inputs.items():
        dtype = "int32" if name in case.vocabularies else "float32"
        arguments[name] = keras.Input(shape_of(axes[1:], sizes), batch_size=batch, dtype=dtype, name=name)
    for name, axes in case.masks.items():
        if name not in case.vocabularies:
            arguments[name] = keras.Input(shape_of(axes, sizes), batch_size=batch, dtype="bool", name=name)
    return arguments


def functional(case, layer):
    """A functional model around the layer with one list of outputs, the weights among them where there are any."""
    arguments = symbolic_arguments(case, UNKNOWN_SIZES)
    options = {"return_attention_scores": True} if case.weights else {}
    return keras.Model(arguments, keras.tree.flatten(call(layer, arguments, **options)))


def random_loss(case, real=True):
    """Sum of the outputs at `real` positions, each times its own number: normalized outputs add up to a constant."""
    factors = np.random.default_rng(11).normal(size=shape_of(case.output)).astype("float32")
    return lambda output: keras.ops.sum(keras.ops.where(real, output * keras.ops.convert_to_tensor(factors), 0.0))


def gradients(layer, arguments, loss, **options):
    """Gradients of `loss(outputs)`, as NumPy arrays: `({float argument: gradient}, [gradient of each trainable weight])`.

    The gradient of what the loss does not depend on is zero.
    """
    tensors = {name: keras.ops.convert_to_tensor(array) for name, array in arguments.items()}
    floats = {name: tensor for name, tensor in tensors.items() if keras.backend.is_float_dtype(tensor.dtype)}
    others = {name: tensor for name, tensor in tensors.items() if name not in floats}
    of_backend = {"tensorflow": _tensorflow_gradients, "jax": _jax_gradients, "torch": _torch_gradients}
    found = of_backend[keras.backend.backend()](layer, floats, others, loss, options)
    return keras.tree.map_structure(np.asarray, found)


def _tensorflow_gradients(layer, floats, others, loss, options):
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(floats)
        value = loss(call(layer, {**floats, **others}, **options))
    sources = (floats, [weight.value for weight in layer.trainable_weights])

    def gradient(of, source):  # `unconnected_gradients` of TensorFlow does not know variables
        return np.zeros(source.shape, "float32") if of is None else tf.convert_to_tensor(of).numpy()

    return keras.tree.map_structure_up_to(sources, gradient, tape.gradient(value, sources), sources)


def _jax_gradients(layer, floats, others, loss, options):
    import jax

    state = [weight.value for weight in layer.non_trainable_variables]

    def value(floats, weights):
        tensors = {**floats, **others}
        if isinstance(layer, keras.Model):
            inputs = tensors if isinstance(layer.input, dict) else next(iter(tensors.values()))
            outputs, _ = layer.stateless_call(weights, state, inputs, **options)
        else:
            outputs, _ = layer.stateless_call(weights, state, **tensors, **options)
        return loss(outputs)

    return jax.grad(value, argnums=(0, 1))(floats, [weight.value for weight in layer.trainable_variables])


def _torch_gradients(layer, floats, others, loss, options):
    for tensor in floats.values():
        tensor.requires_grad_()
    layer.zero_grad()
    loss(call(layer, {**floats, **others}, **options)).backward()

    def of(tensor):
        return np.zeros(tensor.shape, "float32") if tensor.grad is None else tensor.grad.cpu().numpy()

    weights = [of(weight.value) for weight in layer.trainable_weights]
    return {name: of(tensor) for name, tensor in floats.items()}, weights
