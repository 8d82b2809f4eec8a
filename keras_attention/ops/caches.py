"""The slots of a key/value cache: which are filled, and what a call may write into them."""

import numbers

from keras import ops

from keras_attention.checks.shapes import sizes_differ


def mask_of_slots(name, mask, T, cache, cache_index):
    """Mask `(B, slots)` from one of the new positions `(B, T)`, with True for all other slots of the cache.

    A mask that has an entry for every slot stays as it is; with T = slots both mean the same. Where a length is known only
    while a graph runs, it is decided there.
    """
    if mask is None:
        return None
    if sizes_differ(mask.shape[-1], T) and sizes_differ(mask.shape[-1], cache["key"].shape[-2]):
        raise ValueError(
            f"`{name}` must have one entry for each of the {cache['key'].shape[-2]} slots of the cache, or for each of the "
            f"{T} new positions (True = attend). Received shape {tuple(mask.shape)}."
        )
    length, slots = ops.shape(mask)[-1], ops.shape(cache["key"])[-2]
    first = ops.where(ops.equal(length, slots), 0, ops.cast(cache_index, "int32"))
    entries = ops.arange(slots, dtype="int32") - first
    is_given = ops.logical_and(entries >= 0, entries < length)
    mask = ops.concatenate([mask, ops.ones((ops.shape(mask)[0], 1), "bool")], axis=-1)  # the last stands for the others
    return ops.take(mask, ops.where(is_given, entries, length), axis=-1)


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
        shape, fitting = tuple(cache[name].shape), (query_shape[0], num_heads, None, width)
        if len(shape) != 4 or any(map(sizes_differ, shape, fitting)):
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
