"""The inputs of an attention, checked: tensors in one type, and one mask made of all."""

import math

import keras
from keras import ops

from keras_attention.checks.shapes import check_not_ragged, sizes_differ
from keras_attention.ops.dtypes import as_floats, as_integers
from keras_attention.ops.masks import (
    aligned_slots,
    as_mask,
    broadcasts_to_scores,
    causal_mask,
    check_masks,
    check_padding_mask,
    insert_head_axes,
    merge_masks,
)


def as_inputs(dtype, **tensors):
    """The tensors in `dtype`, the compute dtype of a layer, after checking that they are dense."""
    check_not_ragged(**tensors)
    tensors = (tensor if hasattr(tensor, "dtype") else ops.convert_to_tensor(tensor) for tensor in tensors.values())
    return tuple(ops.cast(as_floats(tensor, dtype), dtype) for tensor in tensors)


def as_positions(name, positions, shape):
    """Positions `(B or 1, T)` or `(B, ..., T)` of a tensor of `shape (B, ..., T, D)` as int32; `None` stays.

    Raises:
        TypeError: If they are not integers.
        ValueError: If there is not one for each slot.
    """
    if positions is None:
        return None
    positions = as_integers(name, positions)
    received = tuple(positions.shape)
    sizes = zip(received[:-1], shape, strict=False)
    wrong_rank = len(received) not in (2, len(shape) - 1)
    if (
        wrong_rank
        or sizes_differ(received[-1], shape[-2])
        or any(size != 1 and sizes_differ(size, expected) for size, expected in sizes)
    ):
        raise ValueError(
            f"`{name}` must have shape (1, {shape[-2]}), or ({shape[0]}, {shape[-2]}) for each row its own. Received shape "
            f"{received}."
        )
    return ops.cast(positions, "int32")


def as_bias(bias, scores_shape):
    """What a caller adds to scores of this shape, finite, and the mask of what it allows: all but -inf. `None` stays.

    A query that is allowed nothing gets zero weights by a mask, and would get NaN by -inf.

    Raises:
        TypeError: If it does not hold floats.
        ValueError: If it does not broadcast to the scores.
    """
    if bias is None:
        return None, None
    bias = bias if hasattr(bias, "dtype") else ops.convert_to_tensor(bias)
    dtype = keras.backend.standardize_dtype(bias.dtype)
    if not keras.backend.is_float_dtype(dtype):
        raise TypeError(
            f"`attention_bias` must hold floats, which are added to the scores. Received dtype {dtype}. Pass a boolean "
            "mask as `attention_mask`."
        )
    if not broadcasts_to_scores(bias.shape, scores_shape):
        raise ValueError(
            f"`attention_bias` must have at least two axes and broadcast to the scores, here {tuple(scores_shape)}. "
            f"Received shape {tuple(bias.shape)}."
        )
    bias = insert_head_axes(bias, len(scores_shape))
    allowed = ops.not_equal(bias, -math.inf)  # a NaN is no mask
    return ops.where(allowed, bias, 0), allowed


def as_masks(**masks):
    """The masks as booleans; `None` stays."""
    return {name: as_mask(mask, name) for name, mask in masks.items()}


def zeroed_memory(mask, *tensors):
    """The boolean `mask (B, ..., S)`, or `None`, and tensors `(B, ..., S, D)` with zeros where it is False.

    A weight of zero does not silence NaN or inf, neither in the context nor in the gradient of a projection.
    """
    mask = as_mask(mask)
    check_padding_mask("mask", mask, tensors[0].shape)
    return mask, *(tensor if mask is None else ops.where(mask[..., None], tensor, 0) for tensor in tensors)


def one_mask(query_shape, value_shape, scores_shape, masks, lengths, *, causal=False, position_masks=(), first=None):
    """One mask that broadcasts to the scores, of all masks of a call; `None` where everything may be attended.

    Args:
        query_shape, value_shape, scores_shape: `(B, ..., T, D)`, `(B, ..., S, E)` and `(B, ..., T, S)`.
        masks: `query_mask`, `value_mask`, `key_mask` and `attention_mask` by name, boolean or `None`.
        lengths: T and S while a graph runs.
        causal: Boolean, whether a query sees its own slot and earlier ones only.
        position_masks: Masks `(..., T, S)` by positions.
        first: The slot of the first query in a cache; slots behind the last query are not filled.
    """
    check_masks(query_shape, value_shape, scores_shape, **masks)
    query_slots, key_slots = aligned_slots(*lengths, first)
    position_masks = list(position_masks)
    if causal:
        position_masks.append(causal_mask(query_slots, key_slots))
    elif first is not None:
        position_masks.append(causal_mask(query_slots[-1:], key_slots))
    return merge_masks(len(scores_shape), position_masks=position_masks, **masks)
