"""The slots of a key/value cache: which are filled, and what a call may write into them."""

import numbers

from keras import ops

from keras_attention.ops.shapes import sizes_differ


def mask_of_slots(name, mask, T, slots, cache_index):
    """Mask `(B, slots)` from one of the new positions `(B, T)`, with True for all other slots.

    A mask that has an entry for every slot stays as it is; with T = slots both mean the same.
    """
    if mask is None or mask.shape[-1] == slots:
        return mask
    if sizes_differ(mask.shape[-1], T):
        raise ValueError(
            f"`{name}` must have one entry for each of the {slots} slots of the cache, or for each of the {T} new "
            f"positions (True = attend). Received shape {tuple(mask.shape)}."
        )
    everything = ops.ones((ops.shape(mask)[0], slots), dtype="bool")
    return ops.slice_update(everything, (0, cache_index), ops.cast(mask, "bool"))


def check_cache(query_shape, value_shape, axes, cache, cache_index, num_heads, key_dim, value_dim):
    """Raises unless the cache `{"key": (B, N, slots, H), ...}` fits the query and takes T new values at `cache_index`."""
    if cache is None:
        if cache_index is None:
            return
        raise ValueError(
            f"`cache_index` is a slot of `cache`. Received cache_index={cache_index} without a cache. "
            "Pass `cache=layer.empty_cache(batch_size, length)`."
        )
    if len(query_shape) != 3 or len(axes) != 1:
        raise ValueError(
            f"A cache needs inputs of shape (B, T, D). Received query of shape {tuple(query_shape)} "
            f"with attention along its axes {axes}."
        )
    if not isinstance(cache, dict) or set(cache) != {"key", "value"}:
        raise ValueError(
            '`cache` must be a dictionary of "key" and "value", as `empty_cache` and `project` make it. '
            f"Received: {sorted(cache) if isinstance(cache, dict) else type(cache).__name__}."
        )
    for name, width in (("key", key_dim), ("value", value_dim)):
        shape = tuple(cache[name].shape)
        if len(shape) != 4 or sizes_differ(shape[0], query_shape[0]) or shape[1] != num_heads or shape[3] != width:
            raise ValueError(
                f'The "{name}" of `cache` must have shape (B, {num_heads}, slots, {width}) with the batch B of the query. '
                f"Received a cache of shape {shape} and query of shape {tuple(query_shape)}."
            )
    T = value_shape[1]
    is_checkable = isinstance(cache_index, numbers.Integral) and None not in (shape[2], T)
    if is_checkable and not 0 <= cache_index <= shape[2] - T:
        raise ValueError(
            f"The keys and values must fit into the slots of the cache, 0 to {shape[2] - 1}. Received {T} of them "
            f"for cache_index={cache_index}. Make a longer cache with `empty_cache`."
        )
