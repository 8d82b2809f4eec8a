"""Calls of a case on any backend: plain, inside a functional model, and for its gradients."""

import functools
import inspect

import keras
import numpy as np
from compiled import compiled
from contract.cases import SIZES, UNKNOWN_SIZES, Case, shape_of

BACKEND = keras.backend.backend()


class MaskReader(keras.layers.Layer):
    """Returns the mask that arrives with its inputs, as ones and zeros; minus one where there is none."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, inputs, mask=None):
        shape = keras.ops.shape(inputs)[:-1]
        return -keras.ops.ones(shape) if mask is None else keras.ops.cast(mask, "float32")


def call(layer, arguments, masking=None, read_mask=False, **options):
    """Models take one dictionary, masks in it, or one tensor; layers take arguments.

    The argument called `masking` brings a mask of its own, where it is zero. With `read_mask` the mask of the output is
    returned, as by `MaskReader`.
    """
    if masking:
        arguments = {**arguments, masking: keras.layers.Masking()(arguments[masking])}
    outputs = _call(layer, arguments, **options)
    return MaskReader()(outputs) if read_mask else outputs


def _call(layer, arguments, **options):
    if isinstance(layer, keras.Model) and not isinstance(layer.input, dict):
        return layer(*arguments.values(), **options)
    if isinstance(layer, keras.Model):
        missing = {name: arguments[Case.argument_of(name)] for name in set(layer.input) - set(arguments)}
        full = {name: keras.ops.ones(keras.ops.shape(tensor)[:-1], "bool") for name, tensor in missing.items()}
        return layer({**arguments, **full}, **options)
    return layer(**arguments, **options)


def arrays_of(outputs):
    return keras.tree.map_structure(keras.ops.convert_to_numpy, outputs)


def tensors_of(arguments):
    return {name: keras.ops.convert_to_tensor(array) for name, array in arguments.items()}


def eager_results(layer, arguments, **options):
    """The outputs of an eager call, as NumPy arrays."""
    return arrays_of(call(layer, tensors_of(arguments), **options))


def results(layer, arguments, **options):
    """The outputs of a call, as NumPy arrays: eager, but compiled on JAX, which compiles an eager call op by op."""
    if BACKEND == "jax" and not layer.built:
        symbols = {name: keras.KerasTensor(array.shape, array.dtype.name) for name, array in arguments.items()}
        call(layer, symbols, **options)
    return arrays_of(compiled(call, layer, **options)(tensors_of(arguments)))


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


def random_factors(case, real=True, sizes=SIZES):
    """A number for each output at `real` positions, else zero: normalized outputs add up to a constant."""
    return np.where(real, np.random.default_rng(11).normal(size=shape_of(case.output, sizes)), 0.0).astype("float32")


def gradients(layer, arguments, factors, **options):
    """Gradients of the sum of the outputs, each times its factor; an output whose factor is zero does not count.

    As NumPy arrays: `({float argument: gradient}, [gradient of each trainable weight])`. The gradient of what the sum does
    not depend on is zero.
    """
    tensors = tensors_of(arguments)
    floats = {name: tensor for name, tensor in tensors.items() if keras.backend.is_float_dtype(tensor.dtype)}
    others = {name: tensor for name, tensor in tensors.items() if name not in floats}
    of_backend = {"tensorflow": _tensorflow_gradients, "jax": _jax_gradients, "torch": _torch_gradients}
    found = of_backend[BACKEND](layer, floats, others, keras.ops.convert_to_tensor(factors), options)
    return keras.tree.map_structure(np.asarray, found)


def weighted_sum(outputs, factors):
    return keras.ops.sum(keras.ops.where(factors != 0, outputs * factors, 0.0))


def _tensorflow_gradients(layer, floats, others, factors, options):
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(floats)
        value = weighted_sum(call(layer, {**floats, **others}, **options), factors)
    sources = (floats, [weight.value for weight in layer.trainable_weights])

    def gradient(of, source):  # `unconnected_gradients` of TensorFlow does not know variables
        return np.zeros(source.shape, "float32") if of is None else tf.convert_to_tensor(of).numpy()

    return keras.tree.map_structure_up_to(sources, gradient, tape.gradient(value, sources), sources)


@functools.cache
def _jax_gradient(layer, **options):
    import jax

    def function(floats, weights, others, factors):
        with keras.StatelessScope(state_mapping=zip(layer.trainable_variables, weights, strict=True)):
            return weighted_sum(call(layer, {**floats, **others}, **options), factors)

    return jax.jit(jax.grad(function, argnums=(0, 1)))


def _jax_gradients(layer, floats, others, factors, options):
    weights = [weight.value for weight in layer.trainable_variables]
    return _jax_gradient(layer, **options)(floats, weights, others, factors)


def _torch_gradients(layer, floats, others, factors, options):
    for tensor in floats.values():
        tensor.requires_grad_()
    layer.zero_grad()
    weighted_sum(call(layer, {**floats, **others}, **options), factors).backward()

    def of(tensor):
        return np.zeros(tensor.shape, "float32") if tensor.grad is None else tensor.grad.cpu().numpy()

    weights = [of(weight.value) for weight in layer.trainable_weights]
    return {name: of(tensor) for name, tensor in floats.items()}, weights
