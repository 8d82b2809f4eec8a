"""The cache of `MultiHeadAttention`, a memory that grows: its slots, what a call writes into them and reads."""

import functools
import numbers

import keras
from keras import ops

from keras_attention.checks.shapes import sizes_differ
from keras_attention.ops.masks import check_masks

OPTIONAL = ("mask", "positions", "alignment")  # as in `layers/flow.py`


def empty_slots(layer, batch_size, length):
    """`length` keys and values of zeros for each of their heads."""
    axes = (batch_size, layer.num_heads // layer.group, length)
    return {name: ops.zeros((*axes, slot.shape[-1]), slot.dtype) for name, slot in slot_of(layer).items()}


def with_state(layer, cache):
    """The cache with the state of the alignment, where it goes on from query to query, in the type of a call."""
    B, _, S, _ = ops.shape(cache["value"])
    state = layer.alignment.initial_state((B, layer.num_heads, S))
    return in_compute_dtype(layer, {**cache, "alignment": state} if keras.tree.flatten(state) else cache)


def in_compute_dtype(layer, cache):
    """The cache with floats in the compute dtype, to which Keras casts all that a layer is called with."""

    def cast(tensor):
        return ops.cast(tensor, layer.compute_dtype) if keras.backend.is_float_dtype(tensor.dtype) else tensor

    return keras.tree.map_structure(cast, cache)


def slot_of(layer):
    """One key, as the score prepares it, and one value, as symbols `(1, width)`."""
    key, value = (
        keras.KerasTensor((1, width), dtype=layer.compute_dtype) for width in (layer.key_dim, layer.value_dim)
    )
    return {"key": layer.score.prepare(key), "value": value}


def read_cache(layer, query, value, key, cache, cache_index, masks, options):
    """What a call with a cache returns: output, weights where asked for, and the cache after it.

    Args:
        layer: The `MultiHeadAttention`.
        query, value, key, cache, cache_index: Of the call. With an index, `value` and `key` are written before.
        masks: The boolean masks of the call by name, or `None`.
        options: The other arguments of the call.
    """
    if cache_index is not None:
        for name in ("value_mask", "key_mask"):
            masks[name] = mask_of_slots(name, masks[name], value.shape[1], cache, cache_index)
    of_keys = {name: masks[name] for name in ("value_mask", "key_mask")}
    check_masks(query.shape, layer.value_shape(cache), None, **of_keys)
    given = [mask for mask in (cache.get("mask"), *of_keys.values()) if mask is not None]
    mask = functools.reduce(ops.logical_and, given) if given else None
    if cache_index is not None:
        cache = write(layer, cache, cache_index, value, key, mask)
    memory = cache if mask is None else {**cache, "mask": mask}
    of_query = {name: masks[name] for name in ("query_mask", "attention_mask")}
    outputs = layer.read(query, memory, cache_index=cache_index, **of_query, **options)
    outputs = list(outputs) if isinstance(outputs, tuple) else [outputs]
    if "alignment" in cache:
        cache = {**cache, "alignment": outputs.pop()["alignment"]}
    return (*outputs, cache)


def write(layer, cache, cache_index, value, key, mask):
    """The cache with new keys and values in its slots from `cache_index` on; `mask (B, slots)` speaks of all slots."""
    written, positions = None, None
    if mask is not None:
        written = ops.slice(mask, (0, cache_index), (ops.shape(mask)[0], ops.shape(value)[1]))
    if layer.schemes:
        of_slots = cache.get("positions")
        positions, _ = layer.positions_of(value, cache["value"], of_slots, None, {"key_mask": mask}, cache_index)
    new = layer.prepare(value, key, written, positions)
    slots = {
        name: ops.slice_update(cache[name], (0, 0, cache_index, 0), ops.cast(new[name], cache[name].dtype))
        for name in ("key", "value")
    }
    return {**cache, **slots}


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


def check_counted(cache_index, query_positions, key_positions):
    """Raises where positions are given by hand beside a cache, whose slots are counted while it grows."""
    for name, given in (("query_positions", query_positions), ("key_positions", key_positions)):
        if given is not None and (cache_index is not None or name == "key_positions"):
            raise ValueError(
                f"With a cache positions are counted. Received `{name}` of shape {tuple(given.shape)}. Give positions by hand "
                "to `prepare(positions=...)` and `read(query_positions=...)`."
            )


def check_cache(layer, query_shape, value_shape, axes, cache, cache_index):
    """Raises unless the cache `{"key": (B, K, slots, H), ...}` fits the query and takes T new values at `cache_index`."""
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
    if not isinstance(cache, dict) or not {"key", "value"} <= set(cache) <= {"key", "value", *OPTIONAL}:
        raise ValueError(
            '`cache` must be a dictionary of "key" and "value", as `empty_cache` and `project` make it. '
            f"Received: {sorted(cache) if isinstance(cache, dict) else type(cache).__name__}."
        )
    state = layer.alignment.initial_state((1, 1))  # or the reason why it has none
    if cache_index is not None and keras.tree.flatten(state) and "alignment" not in cache:
        raise ValueError(
            f"The alignment {type(layer.alignment).__name__} goes on from query to query, by its state in the cache. Received "
            f'a cache without "alignment": {sorted(cache)}. Make it with `empty_cache`.'
        )
    K = layer.num_heads // layer.group
    for name, slot in slot_of(layer).items():
        width = slot.shape[-1]
        shape, fitting = tuple(cache[name].shape), (query_shape[0], K, None, width)
        if len(shape) != 4 or any(map(sizes_differ, shape, fitting)):
            raise ValueError(
                f'The "{name}" of `cache` must have shape (B, {K}, slots, {width}) with the batch B of the query. '
                f"Received a cache of shape {shape} and query of shape {tuple(query_shape)}."
            )
    T = value_shape[1]
    is_checkable = isinstance(cache_index, numbers.Integral) and None not in (shape[2], T)
    if is_checkable and not 0 <= cache_index <= shape[2] - T:
        raise ValueError(
            f"The keys and values must fit into the slots of the cache, 0 to {shape[2] - 1}. Received {T} of them "
            f"for cache_index={cache_index}. Make a longer cache with `empty_cache`."
        )
