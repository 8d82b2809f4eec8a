"""Checks of shapes, whose messages show the received shape and what to do.

Unknown sizes (`None`) are never an error: a symbolic shape is checked as far as it is known.
"""


def sizes_differ(first, second):
    """True when both sizes are known and not equal."""
    return isinstance(first, int) and isinstance(second, int) and first != second


def check_not_ragged(**tensors):
    """Raises for a ragged tensor of TensorFlow, whose rows have lengths of their own."""
    for name, tensor in tensors.items():
        if hasattr(tensor, "row_lengths"):
            raise TypeError(
                f"`{name}` must be a dense tensor. Received a ragged one of shape {tuple(tensor.shape)}. Pass "
                f"`{name}.to_tensor()` and, as its mask, `tf.sequence_mask({name}.row_lengths())`."
            )


def check_rank(name, shape, minimum, axes):
    """Raises unless `shape` has at least `minimum` axes; `axes` shows the expected form, such as `(..., T, D)`."""
    if len(shape) < minimum:
        raise ValueError(
            f"`{name}` must have at least {minimum} axes, `{axes}`. Received shape {tuple(shape)}. "
            "Add the missing axes, for example a batch axis with `keras.ops.expand_dims(tensor, 0)`."
        )


def check_exact_rank(name, shape, rank, axes):
    """Raises unless `shape` has `rank` axes; `axes` shows the expected form, such as `(B, T, D)`."""
    if len(shape) != rank:
        raise ValueError(
            f"`{name}` must have {rank} axes, `{axes}`. Received shape {tuple(shape)}. Add the missing axes, or fold further "
            "ones into the batch, with `keras.ops.reshape`."
        )


def check_same_rank(query_shape, value_shape, key_shape):
    """Raises unless query, value and key have as many axes as each other."""
    if not len(query_shape) == len(value_shape) == len(key_shape):
        raise ValueError(
            "`query`, `value` and `key` must have the same number of axes. Received query of shape "
            f"{tuple(query_shape)}, value of shape {tuple(value_shape)} and key of shape {tuple(key_shape)}. "
            "Add the missing axes, for example a length of one with `keras.ops.expand_dims(query, -2)`."
        )


def check_same_batch(query_shape, value_shape):
    """Raises unless the axes left of the last two agree in query and value."""
    for query_size, value_size in zip(query_shape[:-2], value_shape[:-2], strict=True):
        if sizes_differ(query_size, value_size):
            raise ValueError(
                "`query` and `value` must agree in every axis left of the last two (batch axes). Received query of "
                f"shape {tuple(query_shape)} and value of shape {tuple(value_shape)}. "
                "Pass one memory for each query of the batch."
            )


def check_same_length(value_shape, key_shape, axes=(-2,)):
    """Raises unless key and value have one length S along each of `axes`."""
    for axis in axes:
        key_length, value_length = key_shape[axis], value_shape[axis]
        if sizes_differ(key_length, value_length):
            raise ValueError(
                f"`key` and `value` must have the same length S. Received key of shape {tuple(key_shape)} "
                f"(S={key_length}) and value of shape {tuple(value_shape)} (S={value_length}). "
                "Pass one key for each value, or leave `key` out to use `value` as key."
            )


def check_same_width(query_shape, key_shape, score_name):
    """Raises unless query and key have the same number of features D."""
    if sizes_differ(query_shape[-1], key_shape[-1]):
        raise ValueError(
            f"{score_name} needs query and key of the same width D. Received query of shape {tuple(query_shape)} "
            f"(D={query_shape[-1]}) and key of shape {tuple(key_shape)} (D={key_shape[-1]}). "
            'Use a score with weights, such as "bilinear" or "additive", or project one of the two.'
        )


def check_attention_shapes(query_shape, value_shape, key_shape):
    """Raises unless the three shapes are `(B, ..., T, D)`, `(B, ..., S, E)` and `(B, ..., S, D)`."""
    for name, shape in (("query", query_shape), ("value", value_shape), ("key", key_shape)):
        check_rank(name, shape, 3, "(B, ..., length, features)")
    check_same_rank(query_shape, value_shape, key_shape)
    check_same_batch(query_shape, value_shape)
    check_same_length(value_shape, key_shape)


def check_returned(part, what, received, expected):
    """Raises unless a part of an attention layer, such as a user's score, returned the shape that is expected."""
    received, expected = tuple(received), tuple(expected)
    if len(received) != len(expected) or any(map(sizes_differ, received, expected)):
        raise ValueError(
            f"{type(part).__name__} must return {what}, here {expected}. Received shape {received}. Look at its `call`: "
            "the last two axes are queries and keys, all axes left of them batch."
        )


def check_known_width(name, shape):
    """Raises unless the number of features, the last axis, is known."""
    if shape[-1] is None:
        raise ValueError(
            f"`{name}` must have a known last axis, its features. Received shape {tuple(shape)}. "
            "Give the size in `keras.Input(shape=(None, D))`."
        )
