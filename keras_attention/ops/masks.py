"""Boolean masks, True = attend: padding, causal, window; merged into one mask and applied to the inputs here only."""

import keras
from keras import ops

from keras_attention.ops.known_values import infers_shapes, known_values
from keras_attention.ops.positions import number_of_real, real_positions


def as_mask(mask, name="mask"):
    """A mask as a boolean tensor, lists included; `None` stays. All masks of a caller go through it.

    Raises:
        TypeError: If it holds floats: an additive mask, 0 for "attend" and -inf for "masked", would be inverted. If it is an
            object of `keras_attention.masks`.
        ValueError: If it holds integers of known values other than 0 and 1.
    """
    if mask is None:
        return None
    if hasattr(mask, "empty_blocks"):
        raise TypeError(
            f"`{name}` must be a boolean tensor, True = attend. Received the mask {mask}. Pass the tensor that it makes, "
            "`mask.mask(query_length, key_length)`."
        )
    if not isinstance(mask, keras.KerasTensor):
        mask = ops.convert_to_tensor(mask)
    if keras.backend.standardize_dtype(mask.dtype) == "bool":
        return mask
    check_mask_types(**{name: mask})
    values = known_values(mask)
    wrong = () if values is None else values[(values != 0) & (values != 1)]
    if len(wrong):
        raise ValueError(
            f"`{name}` must be boolean, True = attend, or integers 0 and 1. Received {wrong[0]} among integers of shape "
            f"{tuple(mask.shape)}. {HOW_TO_CONVERT}"
        )
    return ops.cast(mask, "bool")


HOW_TO_CONVERT = (
    "Make a mask of an additive one, 0 = attend and -inf or a large negative number = masked, by `mask == 0`, and of "
    'other weights by `mask > 0`. Declare `keras.Input(..., dtype="bool")`; without a dtype it is float32.'
)


def check_mask_types(**masks):
    """Raises for masks, tensors, symbols or `None`, that hold floats. Keras' placeholders do, whatever the real masks hold."""
    for name, mask in masks.items():
        dtype = getattr(mask, "dtype", None)
        if dtype is not None and keras.backend.is_float_dtype(dtype) and not infers_shapes():
            raise TypeError(
                f"`{name}` must be boolean, True = attend, or integers 0 and 1. Received dtype "
                f"{keras.backend.standardize_dtype(dtype)} and shape {tuple(mask.shape)}. {HOW_TO_CONVERT}"
            )


def padding_mask(ids, pad=0):
    """Mask `(B, T)` of the real tokens of `ids (B, T)`: True where the id is not `pad`."""
    return ops.not_equal(ids, pad)


def aligned_slots(T, S, first=None):
    """Slots of the queries `(T, 1)`, from `first` on, and of the keys `(1, S)`, from 0 on.

    Without `first` the last of fewer queries than keys stands at the last key; otherwise both start at 0, as in Keras.
    """
    first = ops.maximum(S - T, 0) if first is None else first
    query_slots = ops.expand_dims(ops.arange(T, dtype="int32") + ops.cast(first, "int32"), -1)
    key_slots = ops.expand_dims(ops.arange(S, dtype="int32"), 0)
    return query_slots, key_slots


def causal_mask(query_slots, key_slots):
    """Mask `(T, S)`: a query attends to keys in its own and earlier slots."""
    return key_slots <= query_slots


def window_mask(query_positions, key_positions, width):
    """Mask `(..., T, S)`: a query at `(..., T)` attends to keys at `(..., S)` fewer than `width` positions away."""
    return ops.abs(ops.expand_dims(query_positions, -1) - ops.expand_dims(key_positions, -2)) < width


def query_and_key_positions(T, S, first=None, query_mask=None, value_mask=None, key_mask=None):
    """Positions `(..., T)` of the queries and `(..., S)` of the keys: real tokens are counted. A window goes by them.

    The last real query stands at the last real key; with more queries than keys the first ones stand together. Where
    T = S, a mask of one side alone is that of both. With `first`, the slot of the first query in a cache, the queries
    stand in slots of the keys.
    """
    if value_mask is not None and key_mask is not None:
        key_mask = ops.logical_and(value_mask, key_mask)
    key_mask = value_mask if key_mask is None else key_mask
    if first is not None:
        key_positions = real_positions(_mask_of_side(key_mask, None, S))
        return ops.take(key_positions, ops.arange(T, dtype="int32") + ops.cast(first, "int32"), axis=-1), key_positions
    query_mask = _mask_of_side(query_mask, key_mask, T)
    key_mask = _mask_of_side(key_mask, query_mask, S)
    start = ops.maximum(number_of_real(key_mask) - number_of_real(query_mask), 0)
    return real_positions(query_mask) + start, real_positions(key_mask)


def _mask_of_side(mask, other, length):
    """`mask`; where there is none, `other` if it has that `length`, or else True everywhere."""
    if mask is not None:
        return mask
    if other is None:
        return ops.ones((1, length), "bool")
    *batch, other_length = ops.shape(other)
    as_long = ops.concatenate([other, ops.ones((*batch, length), "bool")], axis=-1)[..., :length]
    return ops.logical_or(as_long, ops.not_equal(other_length, length))


def insert_head_axes(mask, rank):
    """`mask (..., T, S)` with axes of size one inserted before the last two until it has `rank` axes."""
    missing = rank - len(mask.shape)
    if missing <= 0 or len(mask.shape) == 2:  # (T, S) broadcasts as it is
        return mask
    return ops.expand_dims(mask, tuple(range(-3, -3 - missing, -1)))


def merge_masks(rank, *, query_mask=None, value_mask=None, key_mask=None, attention_mask=None, position_masks=()):
    """One mask that broadcasts to scores with `rank` axes, or `None` when everything may be attended.

    Args:
        rank: Number of axes of the scores, `(B, ..., T, S)`.
        query_mask: `(B, ..., T)`; a query that is masked attends to nothing.
        value_mask, key_mask: `(B, ..., S)`.
        attention_mask: `(T, S)`, `(B, T, S)` or any shape up to `rank` axes that broadcasts to the scores; axes that
            are missing, such as the one of the heads, are inserted before the last two.
        position_masks: Masks `(..., T, S)` of slots and positions, such as the causal one.
    """
    masks = list(position_masks)
    if query_mask is not None:
        masks.append(ops.expand_dims(query_mask, -1))  # (B, ..., T, 1)
    for mask in (value_mask, key_mask):
        if mask is not None:
            masks.append(ops.expand_dims(mask, -2))  # (B, ..., 1, S)
    if attention_mask is not None:
        masks.append(attention_mask)
    merged = None
    for mask in masks:
        mask = insert_head_axes(mask, rank)
        merged = mask if merged is None else ops.logical_and(merged, mask)
    return merged


def used_keys(mask, rank):
    """Which keys any query may look at: `(B, ..., S)` with `rank` axes, from the one mask `(..., T, S)`; `None` stays."""
    if mask is None:
        return None
    used = ops.any(mask, axis=-2)
    while len(used.shape) > rank:
        used = ops.any(used, axis=-2)  # used by any head
    return ops.expand_dims(used, tuple(range(rank - len(used.shape)))) if len(used.shape) < rank else used


def check_padding_mask(name, mask, shape):
    """Raises unless `mask` is `None` or has one entry for each position of a tensor of `shape (B, ..., T, D)`."""
    if mask is not None and not (len(mask.shape) == len(shape) - 1 and _broadcasts(mask.shape, shape[:-1])):
        raise ValueError(
            f"`{name}` must have one entry for each position, shape {tuple(shape[:-1])} (True = attend). "
            f"Received shape {tuple(mask.shape)}."
        )


def check_masks(
    query_shape, value_shape, scores_shape, *, query_mask=None, value_mask=None, key_mask=None, attention_mask=None
):
    """Raises when a mask cannot belong to a query `(B, ..., T, D)`, a value `(B, ..., S, E)` or scores `(B, ..., T, S)`."""
    for name, mask, shape in (
        ("query_mask", query_mask, query_shape),
        ("value_mask", value_mask, value_shape),
        ("key_mask", key_mask, value_shape),
    ):
        check_padding_mask(name, mask, shape)
    if attention_mask is not None and not broadcasts_to_scores(attention_mask.shape, scores_shape):
        raise ValueError(
            "`attention_mask` must have two to four axes and broadcast to the scores, (B, T, S) or (B, heads, T, S) "
            f"with T={query_shape[-2]} and S={value_shape[-2]} (True = attend), here {tuple(scores_shape)}. Received shape "
            f"{tuple(attention_mask.shape)}. Pass a padding mask (B, S) as `value_mask`."
        )


def broadcasts_to_scores(shape, scores_shape):
    """Whether `(..., T, S)` broadcasts to the scores, after axes of heads are inserted before its last two."""
    shape = tuple(shape)
    inserted = (1,) * (len(scores_shape) - len(shape)) if len(shape) > 2 else ()
    return 2 <= len(shape) <= len(scores_shape) and _broadcasts((*shape[:-2], *inserted, *shape[-2:]), scores_shape)


def _broadcasts(shape, target):
    pairs = zip(reversed(tuple(shape)), reversed(tuple(target)), strict=False)
    return len(shape) <= len(target) and all(one is None or two is None or one in (1, two) for one, two in pairs)


def zero_masked(tensor, mask, axis=-2):
    """`tensor (B, ..., S, D)` with zeros, whatever stood there, at positions that `mask (..., T, S)` never uses.

    A weight of zero does not silence NaN or inf, neither in the context nor in the gradient of a projection.

    Args:
        mask: The merged mask, or `None`. Axes of heads, which the tensor does not have, are looked along too.
        axis: Axis of the mask to look along: -2 for keys and values, -1 for queries.
    """
    if mask is None:
        return tensor
    used = ops.any(mask, axis=axis)
    while len(used.shape) >= len(tensor.shape):
        used = ops.any(used, axis=-2)  # used by any head
    return ops.where(ops.expand_dims(used, -1), tensor, ops.zeros((), tensor.dtype))
