"""Whole calls, compiled on JAX, where an eager call compiles each operation for each shape."""

import functools

import keras


@functools.cache
def compiled(function, layer, **options):
    """`function(layer, *tensors, **options)` of a layer that is built, as a function of the tensors.

    JAX compiles it once for each structure and shape; the other backends run it eagerly.
    """
    if keras.backend.backend() != "jax":
        return functools.partial(function, layer, **options)
    import jax

    @jax.jit
    def pure(values, tensors):
        with keras.StatelessScope(state_mapping=zip(layer.variables, values, strict=True)) as scope:
            outputs = function(layer, *tensors, **options)
        return outputs, [scope.get_current_value(variable) for variable in layer.non_trainable_variables]

    def call(*tensors):
        outputs, state = pure([variable.value for variable in layer.variables], tensors)
        for variable, value in zip(layer.non_trainable_variables, state, strict=True):
            variable.assign(value)
        return outputs

    return call


def method(layer, tensors, masks, name, **options):
    return getattr(layer, name)(*tensors, **masks, **options)


class Whole:
    """A layer whose methods are compiled: tensors by position, or as `mask`; all other options are constants."""

    def __init__(self, layer):
        self.layer = layer

    def __getattr__(self, name):
        def call(*tensors, mask=None, **options):
            if not self.layer.built:
                self.layer.build(tensors[0].shape)
            masks = {} if mask is None else {"mask": mask}
            return compiled(method, self.layer, name=name, **options)(tensors, masks)

        attribute = getattr(self.layer, name)
        return call if callable(attribute) else attribute

    def __call__(self, *tensors, **options):
        return self.__getattr__("__call__")(*tensors, **options)


def whole(layer):
    """The layer, whose calls and methods JAX compiles as a whole; make it once for all tests."""
    return Whole(layer) if keras.backend.backend() == "jax" else layer


@functools.cache
def jitted(function, **options):
    """The same of `function(*tensors, **options)`, which needs no layer."""
    function = functools.partial(function, **options) if options else function
    if keras.backend.backend() != "jax":
        return function
    import jax

    return jax.jit(function)
