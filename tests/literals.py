"""Values as documentation prints them: what docstrings and pages show is compared with what their code gives."""

import ast

import numpy as np
from keras import ops


def plain(value):
    """Shapes as tuples and tensors as nested lists, rounded as documentation prints them."""
    if isinstance(value, tuple) or type(value).__name__ in ("TensorShape", "Size"):
        return tuple(plain(item) for item in value)
    if hasattr(value, "shape"):
        array = ops.convert_to_numpy(value)
        return (array if array.dtype == "bool" else np.round(array.astype("float64"), 4)).tolist()
    return value


def literal(text):
    """The value that documentation shows, or None where it is not a literal."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return None
