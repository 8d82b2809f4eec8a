"""Shared by the searches: checks of the length and the state, and one checked call of the step function."""

import keras
from keras import ops

from keras_attention.checks.arguments import is_integer
from keras_attention.checks.shapes import sizes_differ
from keras_attention.ops.known_values import known_values, may_hold_integers


def check_max_length(max_length):
    """`max_length` as a Python integer, or as an int32 scalar where it is a tensor."""
    is_known = is_integer(max_length)
    is_scalar_tensor = hasattr(max_length, "dtype") and tuple(max_length.shape) == ()
    if not is_known and not (is_scalar_tensor and may_hold_integers(max_length)):
        raise TypeError(f"`max_length` must be an integer or an integer scalar tensor. Received: {max_length!r}.")
    value = max_length if is_known else known_values(max_length)
    if value is not None and value < 0:
        raise ValueError(f"`max_length` must not be negative. Received: {value}.")
    return int(max_length) if is_known else ops.cast(max_length, "int32")


def check_batch_first(state, start):
    """Raises unless every tensor of `state`, scalars aside, has a row for each sequence."""
    for leaf in keras.tree.flatten(state):
        if len(leaf.shape) > 0 and sizes_differ(leaf.shape[0], start.shape[0]):
            raise ValueError(
                "Each tensor of `state` must have the batch as first axis, so that its rows follow their hypotheses. "
                f"Received shape {tuple(leaf.shape)} for {start.shape[0]} start symbols. Let `step` hold what all rows "
                "have in common, instead of the state."
            )


def next_log_probabilities(step, tokens, state, symbols):
    """Calls `step(tokens, state)` and checks what it returns.

    Args:
        step: Function `(tokens (B,), state) -> (logits (B, V), state)`.
        tokens: int32 tensor `(B,)`.
        state: Nest of tensors.
        symbols: `Symbols`.

    Returns:
        `(log_probabilities, is_broken, state)`: float32 `(B, V)`, LOWEST for padding unless it ends a sequence; boolean
        `(B,)`, the rows whose logits are no distribution; and the next state, which fits a loop that holds this one.
    """
    result = step(tokens, state)
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise TypeError(f"`step` must return a pair `(logits, state)`. Received: {result!r}.")
    logits, next_state = result
    logits_shape = tuple(logits.shape)
    if len(logits_shape) != 2 or sizes_differ(logits_shape[0], tokens.shape[0]) or logits_shape[1] == 0:
        raise ValueError(
            "`step` must return logits of shape `(B, V)`, a row for each token, V not 0. Received logits of shape "
            f"{logits_shape} for tokens of shape {tuple(tokens.shape)}. Drop the length axis, as in `logits[:, 0]`."
        )
    symbols.check_vocabulary(logits_shape[1])
    try:
        keras.tree.assert_same_structure(state, next_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "`step` must return the state in the structure in which it came. Received: "
            f"{_structure(state)}, returned: {_structure(next_state)}."
        ) from error
    logits = _fix_shape(ops.cast(logits, "float32"), (ops.shape(tokens)[0], ops.shape(logits)[1]))
    log_probabilities = ops.log_softmax(logits, axis=-1)
    # One NaN or +inf among the logits makes the whole row NaN, and so do logits of -inf alone.
    is_broken = ops.isnan(log_probabilities[:, 0])
    next_state = keras.tree.map_structure(_same_form, state, next_state)
    return symbols.without_padding(log_probabilities), is_broken, next_state


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
