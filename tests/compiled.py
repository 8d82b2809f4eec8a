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


def jitted(function, **options):
    """The same of `function(*tensors, **options)`, which needs no layer."""
    function = functools.partial(function, **options) if options else function
    if keras.backend.backend() != "jax":
        return function
    import jax

    return jax.jit(function)
