"""What every search shares: checks of its arguments, and one checked call of the step function."""

import numbers

import keras
from keras import ops

from keras_attention.ops.shapes import sizes_differ


def check_start(start):
    """`start` as an int32 tensor `(B,)`."""
    start = ops.convert_to_tensor(start)
    dtype = keras.backend.standardize_dtype(start.dtype)
    if len(start.shape) != 1:
        raise ValueError(
            f"`start` must have shape `(B,)`, one start id for each sequence. Received shape {tuple(start.shape)}. "
            "For a single sequence pass a batch of one."
        )
    if "int" not in dtype:
        raise TypeError(f"`start` must hold integer ids. Received dtype {dtype}. Cast it to int32.")
    return ops.cast(start, "int32")


def check_max_length(max_length):
    """`max_length` as a Python integer, or as an int32 scalar where it is a tensor."""
    if isinstance(max_length, numbers.Integral):
        if max_length < 0:
            raise ValueError(f"`max_length` must not be negative. Received: {max_length}.")
        return int(max_length)
    is_scalar_tensor = hasattr(max_length, "dtype") and tuple(max_length.shape) == ()
    if not is_scalar_tensor or "int" not in keras.backend.standardize_dtype(max_length.dtype):
        raise TypeError(f"`max_length` must be an integer or an integer scalar tensor. Received: {max_length!r}.")
    return ops.cast(max_length, "int32")


def check_batch_first(state, start):
    """Raises unless every tensor of `state` that is no scalar has a row for each sequence."""
    for leaf in keras.tree.flatten(state):
        if len(leaf.shape) > 0 and sizes_differ(leaf.shape[0], start.shape[0]):
            raise ValueError(
                "Each tensor of `state` must have the batch as first axis, so that its rows follow their hypotheses. "
                f"Received shape {tuple(leaf.shape)} for {start.shape[0]} start symbols. Let `step` hold what all rows "
                "have in common, instead of the state."
            )


def next_log_probabilities(step, tokens, state):
    """Calls `step(tokens, state)` and checks what it returns.

    Args:
        step: Function `(tokens (B,), state) -> (logits (B, V), state)`.
        tokens: int32 tensor `(B,)`.
        state: Nest of tensors.

    Returns:
        `(log_probabilities, state)`: float32 `(B, V)` and the next state, which fits a loop that holds this one.
    """
    result = step(tokens, state)
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise TypeError(f"`step` must return a pair `(logits, state)`. Received: {result!r}.")
    logits, next_state = result
    logits_shape = tuple(logits.shape)
    if len(logits_shape) != 2 or sizes_differ(logits_shape[0], tokens.shape[0]):
        raise ValueError(
            "`step` must return logits of shape `(B, V)`, a row for each token. Received logits of shape "
            f"{logits_shape} for tokens of shape {tuple(tokens.shape)}. Drop the length axis, as in `logits[:, 0]`."
        )
    try:
        keras.tree.assert_same_structure(state, next_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "`step` must return the state in the structure in which it came. Received: "
            f"{_structure(state)}, returned: {_structure(next_state)}."
        ) from error
    logits = _fix_shape(ops.cast(logits, "float32"), (ops.shape(tokens)[0], ops.shape(logits)[1]))
    return ops.log_softmax(logits, axis=-1), keras.tree.map_structure(_same_form, state, next_state)


def _structure(state):
    return keras.tree.map_structure(lambda leaf: "*", state)


def _same_form(before, after):
    """`after` with the static shape of `before`."""
    after = ops.convert_to_tensor(after)
    shapes = tuple(before.shape), tuple(after.shape)
    dtypes = tuple(keras.backend.standardize_dtype(leaf.dtype) for leaf in (before, after))
    if len(shapes[0]) != len(shapes[1]) or any(map(sizes_differ, *shapes)) or dtypes[0] != dtypes[1]:
        raise ValueError(
            "`step` must return each tensor of the state in the shape and dtype in which it came. Received shape "
            f"{shapes[0]} of {dtypes[0]}, returned shape {shapes[1]} of {dtypes[1]}. Write into a tensor of the full "
            "length that is made before the search, instead of growing one."
        )
    return _fix_shape(after, ops.shape(before))


def _fix_shape(tensor, shape):
    """`tensor` with the static sizes of `shape`: a size that became unknown on the way does not fit TensorFlow's loop."""
    return ops.reshape(tensor, shape) if None in tuple(tensor.shape) else tensor
