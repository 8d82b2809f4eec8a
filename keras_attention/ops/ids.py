"""Ids of a vocabulary. A bad one is an error where its value is known; inside a graph it becomes an id that no table has."""

import keras
import numpy as np
from keras import ops

from keras_attention.checks.shapes import check_not_ragged
from keras_attention.ops.known_values import known_values

# Floats below these powers of two are whole numbers apart: 300 and 301 are one number in bfloat16.
EXACT_BITS = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}

BAD = -1


def check_ids(name, ids, count):
    """Raises where `ids` of known values are not whole numbers in [0, count) that their type can tell apart.

    Inside a graph no value is known; there `as_ids` marks the same ids. Raises also for a `keras.Input` of floats that cannot
    tell `count` ids apart.
    """
    if isinstance(ids, keras.KerasTensor) and limit(ids.dtype, count) < count:
        raise TypeError(
            f"`{name}` must be able to hold {count} ids. Received dtype {ids.dtype}, which tells apart the first "
            f'{limit(ids.dtype, count)}, and shape {ids.shape}. Declare integers: `keras.Input((None,), dtype="int32")`.'
        )
    values = known_values(ids)
    if values is None:
        return
    dtype = keras.backend.standardize_dtype(values.dtype)
    good = (values >= 0) & (values < limit(dtype, count))
    if dtype in EXACT_BITS:
        good &= values == np.floor(values)
    if not good.all():
        raise ValueError(
            f"`{name}` must be whole numbers in [0, {count}), below {limit(dtype, count)} in {dtype}. Received "
            f"{values[~good][0]} among {dtype} ids of shape {values.shape}. Tokenise with the tokeniser that the model is made "
            'for, and keep ids integers: `keras.Input((None,), dtype="int32")`.'
        )


def checked_ids(name, ids, count):
    """`ids` after `check_ids`; floats as int32, before Keras casts them to a type that rounds them to other ids."""
    check_not_ragged(**{name: ids})
    check_ids(name, ids, count)
    is_symbolic = isinstance(ids, keras.KerasTensor)  # its values come later, by the same way
    is_float = hasattr(ids, "dtype") and keras.backend.is_float_dtype(ids.dtype)
    return as_ids(ids, count) if is_float and not is_symbolic else ids


def limit(dtype, count):
    """How many of `count` ids a type can tell apart."""
    return min(count, 2 ** EXACT_BITS[dtype]) if dtype in EXACT_BITS else count


def as_ids(ids, count):
    """`ids` of any type as int32, with `BAD` in place of those that `check_ids` refuses."""
    dtype = keras.backend.standardize_dtype(ids.dtype)
    if dtype in ("bool", "int8", "uint8", "int16", "uint16"):
        ids = ops.cast(ids, "int32")
    good = ops.logical_and(ids >= 0, ids < limit(dtype, count))
    if dtype in EXACT_BITS:
        good = ops.logical_and(good, ops.equal(ids, ops.floor(ids)))
    return ops.where(good, ops.cast(ids, "int32"), BAD)


def rows_of_ids(table, ids, count, scale=1.0):
    """`scale · table(ids)` of shape `(..., D)`, a row of NaN for every id that `check_ids` refuses.

    Args:
        table: Function of int32 ids in [0, count), such as an `Embedding`, that returns their rows.
    """
    ids = as_ids(ids, count)
    is_known = ids >= 0
    rows = table(ops.where(is_known, ids, 0))
    factors = ops.where(is_known, scale, float("nan"))
    return rows * ops.cast(factors, rows.dtype)[..., None]
