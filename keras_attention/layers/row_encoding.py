"""An encoder of sequences on every row of a nested tensor, whatever is padding in it."""

import inspect
import math

from keras import ops

from keras_attention.ops.positions import order_real_first, places_real_first, reordered, right_padded


def encode_rows(encoder, inputs, mask, training=None):
    """`encoder` on every row of `inputs (B, ..., S, D)` under `mask (B, ..., S)`: `(B, ..., S, E)`.

    The leading axes are folded into the batch. The encoder reads the real positions of a row first, side by side, then
    zeros, gets the mask if its call takes one, and never meets what it could fail on: no row, no position, or a row whose
    mask is False everywhere, which is encoded as if its first position were real. What stands at padding in the result
    has no meaning.
    """
    inputs = ops.where(mask[..., None], inputs, 0)
    *leading, S, D = ops.shape(inputs)
    rows = math.prod(leading)
    inputs, mask = ops.reshape(inputs, (rows, S, D)), ops.reshape(mask, (rows, S))
    inputs, mask = (at_least_one(at_least_one(tensor, axis=0), axis=1) for tensor in (inputs, mask))
    mask = with_a_real_position(mask)
    encoded = call_encoder(encoder, reordered(inputs, order_real_first(mask)), right_padded(mask), training)
    encoded = reordered(encoded, places_real_first(mask))
    return ops.reshape(encoded[:rows, :S], (*leading, S, encoded.shape[-1]))


def call_encoder(encoder, inputs, mask, training):
    """The encoder with those of the options mask and training that its call takes."""
    options = {"mask": mask, "training": training}
    taken = inspect.signature(encoder.call).parameters
    return encoder(inputs, **{name: value for name, value in options.items() if name in taken})


def at_least_one(tensor, axis):
    """`tensor`, or a tensor of one zero where an axis, of a size known or not, has none."""
    sizes = list(ops.shape(tensor))
    is_unknown = not isinstance(sizes[axis], int) and not ops.is_tensor(sizes[axis])  # of JAX, to which it is 1 or more
    if is_unknown or (isinstance(sizes[axis], int) and sizes[axis] > 0):
        return tensor
    sizes[axis] = 1 if isinstance(sizes[axis], int) else ops.maximum(1 - sizes[axis], 0)
    return ops.concatenate([tensor, ops.zeros(sizes, tensor.dtype)], axis=axis)


def with_a_real_position(mask):
    """`mask (B, S)`, whose rows without any True get one at their first position."""
    is_first = ops.equal(ops.arange(ops.shape(mask)[-1]), 0)
    is_empty = ops.logical_not(ops.any(mask, axis=-1, keepdims=True))
    return ops.logical_or(mask, ops.logical_and(is_empty, is_first))
