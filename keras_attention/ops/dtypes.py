"""Types of numbers."""

import keras
from keras import ops


def as_floats(tensor, dtype):
    """`tensor`, in `dtype` where it has integers or booleans.

    Keras casts floats to the compute dtype of a layer and leaves integers alone, in whose type all weights would be
    rounded to zero.
    """
    if hasattr(tensor, "row_lengths"):  # ragged, which the checks of shapes refuse
        return tensor
    return tensor if keras.backend.is_float_dtype(tensor.dtype) else ops.cast(tensor, dtype)
