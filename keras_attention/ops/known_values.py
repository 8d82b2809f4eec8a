"""What is known of a tensor while Python runs: eagerly its values, inside a graph or a trace only shape and type.

Keras infers shapes, and builds a user's subclassed model again from its file, by calling layers on placeholders. These
are of float32, whatever the real inputs were, and on torch they hold ones. Nothing may be raised there for a type or a value:
Keras swallows the error and leaves unbuilt what comes after it.
"""

import keras
import numpy as np


def infers_shapes():
    """True while Keras calls layers on placeholders."""
    with keras.SymbolicScope() as scope:
        return scope.original_scope is not None


def may_hold_integers(tensor):
    """True for a tensor of integers, and for any tensor while Keras infers shapes."""
    return "int" in keras.backend.standardize_dtype(tensor.dtype) or infers_shapes()


def known_values(tensor):
    """The values of a tensor, list or array as a NumPy array; `None` where they are not known.

    Example:
        >>> known_values(keras.ops.array([2, 3])), known_values(keras.KerasTensor((2,)))
        (array([2, 3], dtype=int32), None)
    """
    if isinstance(tensor, keras.KerasTensor) or infers_shapes():
        return None
    if not keras.ops.is_tensor(tensor):
        return np.asarray(tensor)
    is_known = {"tensorflow": _known_to_tensorflow, "jax": _known_to_jax, "torch": _known_to_torch}
    return keras.ops.convert_to_numpy(tensor) if is_known[keras.backend.backend()](tensor) else None


def _known_to_tensorflow(tensor):
    return hasattr(tensor, "numpy")


def _known_to_jax(tensor):
    import jax

    return not isinstance(tensor, jax.core.Tracer) and tensor.is_fully_addressable


def _known_to_torch(tensor):
    import torch

    return not (torch.compiler.is_compiling() or tensor.is_meta)
