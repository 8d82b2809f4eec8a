"""The loop of the searches that keep one sequence for each row."""

import math

import keras
from keras import ops

from keras_attention.decoding.step import next_log_probabilities


def extend_until_end(step, choose, state, start, max_length, symbols):
    """Extends each sequence by the tokens that `choose` picks, until all have ended.

    One `keras.ops.while_loop` that writes into a preallocated tensor.

    Args:
        step: Function `(tokens (B,), state) -> (logits (B, V), state)`.
        choose: Function `(log_probabilities, index) -> tokens`, integers `(B,)`. It gets the model's log-probabilities
            `(B, V)`, in which padding has LOWEST unless it ends a sequence, and the int32 scalar position.
        state: Nest of tensors.
        start: int32 tensor `(B,)`.
        max_length: Integer or int32 scalar tensor, L.
        symbols: `Symbols`.

    Returns:
        `(tokens, scores)`: int32 `(B, L)`, and float32 `(B,)`, the sums of the log-probabilities of the tokens. A row
        whose logits were no distribution when it was extended is padding with the score NaN.
    """
    state = keras.tree.map_structure(ops.convert_to_tensor, state)
    positions = ops.arange(max_length, dtype="int32")

    def unfinished(index, tokens, live, output, scores, state):
        return ops.logical_and(index < max_length, ops.any(live))

    def extend(index, tokens, live, output, scores, state):
        log_probabilities, is_broken, state = next_log_probabilities(step, tokens, state, symbols)  # (B, V)
        chosen = ops.cast(choose(log_probabilities, index), "int32")
        gained = ops.take_along_axis(log_probabilities, chosen[:, None], axis=-1)[:, 0]
        scores = scores + ops.where(live, ops.where(is_broken, math.nan, gained), 0.0)
        output = ops.where(positions == index, ops.where(live, chosen, symbols.pad)[:, None], output)  # (B, L)
        tokens = ops.where(live, chosen, symbols.after_end)
        live = ops.logical_and(live, ops.logical_not(ops.logical_or(is_broken, symbols.ended(chosen))))
        return index + 1, tokens, live, output, scores, state

    batch = ops.shape(start)[0]
    _, _, _, output, scores, _ = ops.while_loop(
        unfinished,
        extend,
        (
            ops.convert_to_tensor(0, dtype="int32"),
            start,
            ops.ones((batch,), dtype="bool"),
            ops.full((batch, max_length), symbols.pad, dtype="int32"),
            ops.zeros((batch,), dtype="float32"),
            state,
        ),
    )
    return ops.where(ops.isnan(scores)[:, None], symbols.pad, output), scores
