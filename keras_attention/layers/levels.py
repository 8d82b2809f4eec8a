"""The levels of a document by their names, the innermost first, and what is given for each of them."""

import re

from keras_attention.checks.arguments import check_rate


def check_levels(levels):
    """`levels` as a tuple, after checking that they are different names."""
    names = tuple(levels) if isinstance(levels, list | tuple) else ()
    # Layers are named after them, and the operations of a graph after the layers.
    are_names = all(isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name) for name in names)
    if not names or not are_names or len(set(names)) < len(names):
        raise ValueError(
            "`levels` must be one or more different names, the innermost level first, of the letters A to Z, digits, "
            f'"_", "." and "-", such as ("word", "sentence"). Received: {levels!r}.'
        )
    return names


def by_level(name, values, levels):
    """`values` of a list, of a dictionary or `None`, as a dictionary with one value for each level."""
    if values is None:
        values = {}
    if isinstance(values, list | tuple):
        if len(values) != len(levels):
            raise ValueError(
                f"`{name}` must have one value for each of the {len(levels)} levels {levels}. Received {len(values)}: "
                f"{values!r}. Pass `None` for a level without one."
            )
        values = dict(zip(levels, values, strict=True))
    if not isinstance(values, dict) or not set(values) <= set(levels):
        received = f"the keys {sorted(map(str, values))}" if isinstance(values, dict) else repr(values)
        raise ValueError(
            f"`{name}` must be `None`, a list of one value for each of the levels {levels}, or a dictionary by their "
            f"names. Received: {received}."
        )
    return {level: values.get(level) for level in levels}


def rates_of_levels(name, rates, levels):
    """One rate for each level, of one for all of them or of one for each."""
    is_one = not isinstance(rates, list | tuple | dict | None)
    rates = dict.fromkeys(levels, rates) if is_one else by_level(name, rates, levels)
    return {level: 0.0 if rate is None else check_rate(name, rate) for level, rate in rates.items()}
