"""Checks of arguments. NumPy's numbers count, booleans are no numbers and numbers no booleans.

In constructors of layers and models a wrong type is a `ValueError`, as in Keras; `check_at_least`, for functions and data
sets, raises `TypeError`.
"""

import math
import numbers

import numpy as np


def is_integer(value):
    """True for integers of Python and NumPy, without booleans."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def check_at_least(name, value, least):
    """`value` as an `int`, after checking that it is an integer of `least` or more."""
    if not is_integer(value):
        raise TypeError(
            f"`{name}` must be an integer. Received {name}={value!r} of type {type(value).__name__}. Pass an `int`."
        )
    if value < least:
        raise ValueError(f"`{name}` must be at least {least}. Received {name}={value}.")
    return int(value)


def check_integer(name, value, words, holds):
    """`value` as an `int`, after checking that it is an integer for which `holds` is true; `words` say which those are."""
    if not is_integer(value):
        raise ValueError(f"`{name}` must be {words}. Received: {value!r} of type {type(value).__name__}.")
    if not holds(value):
        raise ValueError(f"`{name}` must be {words}. Received: {value!r}.")
    return int(value)


def check_number(name, value, words, holds=lambda value: True):
    """`value` as a `float`, after checking that it is a finite number for which `holds` is true."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ValueError(f"`{name}` must be {words}. Received: {value!r} of type {type(value).__name__}.")
    if not (math.isfinite(value) and holds(value)):
        raise ValueError(f"`{name}` must be {words}. Received: {value!r}.")
    return float(value)


def check_positive_integer(name, value):
    """`value` as an `int`, after checking that it is an integer above zero."""
    return check_integer(name, value, "a positive integer", lambda value: value > 0)


def check_positive(name, value):
    """`value` as a `float`, after checking that it is a finite number above zero."""
    return check_number(name, value, "a positive number", lambda value: value > 0)


def check_rate(name, value):
    """`value` as a `float`, after checking that it is a number in [0, 1)."""
    return check_number(name, value, "a number in [0, 1)", lambda value: 0 <= value < 1)


def check_boolean(name, value):
    """`value` as a `bool`, after checking that it is `True` or `False`."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"`{name}` must be `True` or `False`. Received: {value!r} of type {type(value).__name__}.")
    return bool(value)


def check_same_number(advice, **columns):
    """Raises unless the first column has an entry, and the others as many; `advice` ends the message."""
    first, *others = columns
    if not len(columns[first]) or len(set(map(len, columns.values()))) > 1:
        *received, last = [f"{len(column)} {name}" for name, column in columns.items()]
        raise ValueError(
            f"There must be {first}, and as many {' and '.join(others)}. Received {', '.join(received)} and {last}. {advice}"
        )


def refuse_arguments(owner, given, **reasons):
    """Raises where `given`, keyword arguments, has one that the class of `owner` sets itself; `reasons` by argument."""
    for name, reason in reasons.items():
        if name in given:
            raise TypeError(f"{type(owner).__name__} takes no argument `{name}`. Received: {given[name]!r}. {reason}")


def refuse_autocast(owner, given):
    """Raises for the argument `autocast` of a Keras layer, which the class of `owner` switches off."""
    refuse_arguments(owner, given, autocast="Cast to half precision its numbers would be wrong: it is always off.")


def check_seed(seed):
    """`seed` as an `int`, after checking that it is an integer of 0 or more; `None` stays."""
    words = "an integer of 0 or more, or `None`"
    return None if seed is None else check_integer("seed", seed, words, lambda seed: seed >= 0)


def tuple_of_integers(name, value, least=None):
    """`value` as a tuple of one or more integers, `least` or larger: an integer stands for a tuple of one; `None` stays."""
    if value is None:
        return None
    values = value if isinstance(value, list | tuple) else (value,)
    if not values or not all(map(is_integer, values)) or (least is not None and min(values) < least):
        one = "an integer" if least is None else f"an integer of {least} or more"
        raise ValueError(f"`{name}` must be {one}, a list or tuple of such integers, or `None`. Received: {value!r}.")
    return tuple(map(int, values))
