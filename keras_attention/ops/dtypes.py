"""Types of numbers."""

import keras
from keras import ops

from keras_attention.ops.known_values import infers_shapes


def as_floats(tensor, dtype):
    """`tensor`, in `dtype` where it has integers or booleans.

    Keras casts floats to the compute dtype of a layer and leaves integers alone. In their type all weights would be rounded
    to zero.
    """
    if hasattr(tensor, "row_lengths"):  # ragged, which the checks of shapes refuse
        return tensor
    return tensor if keras.backend.is_float_dtype(tensor.dtype) else ops.cast(tensor, dtype)


def as_integers(name, tensor):
    """A tensor of integers, lists included, in the type that it has.

    Raises:
        TypeError: If it holds something else. Keras' placeholders do, whatever the real ones hold.
    """
    tensor = tensor if hasattr(tensor, "dtype") else ops.convert_to_tensor(tensor)
    dtype = keras.backend.standardize_dtype(tensor.dtype)
    if not (keras.backend.is_int_dtype(dtype) or infers_shapes()):
        raise TypeError(f"`{name}` must be integers. Received dtype {dtype}. Cast them to int32.")
    return tensor


def float32_or_better(*dtypes):
    """ "float64" where one of the types is, else "float32". Keras' `result_type` knows no float64 on torch and JAX."""
    return "float64" if "float64" in map(keras.backend.standardize_dtype, dtypes) else "float32"


def times(rows, weights):
    """`rows (..., D)` times `weights (D,)` or `(D, E)`: `ops.matmul`, but for float64, which it does not know on torch."""
    if float32_or_better(rows.dtype) == "float32":
        return ops.matmul(rows, weights)
    outer = "y"[: len(weights.shape) - 1]
    return ops.einsum(f"...x,x{outer}->...{outer}", rows, weights)


def at_least(tensor, bound):
    """The greater of each number and `bound`, in the type of the tensor; NaN stays.

    `ops.maximum` makes float32 of float64 on torch.
    """
    return ops.where(tensor < bound, bound, tensor)
