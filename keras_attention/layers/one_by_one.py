"""The call of `keras.layers.Attention`, one list of tensors and one of masks, as the call with tensors one by one."""


def one_by_one(layer, query, value, key, options):
    """The call `[query, value]` or `[query, value, key]` as `(query, value, key)`, `options`.

    The list `mask` in `options` becomes `query_mask`, `value_mask` and `key_mask`. Another call stays as it is.
    """
    name = type(layer).__name__
    if not isinstance(query, list | tuple):
        if value is None:
            raise ValueError(f"{name} is called with `(query, value)` or `[query, value]`. Received a query alone.")
        return (query, value, key), options
    if value is not None or key is not None:
        raise ValueError(f"After a list of tensors {name} takes keywords only. Pass the list of masks as `mask=[...]`.")
    masks = options.get("mask")
    for what, values in (("tensors", query), ("masks", masks)):
        if values is not None and not (isinstance(values, list | tuple) and len(values) in (2, 3)):
            received = f"{len(values)}" if isinstance(values, list | tuple) else f"one of shape {tuple(values.shape)}"
            raise ValueError(
                f"{name} takes a list of two or three {what}, of query, value and key. Received {received}."
            )
    named = dict(zip(("query_mask", "value_mask", "key_mask"), masks or (), strict=False))
    if twice := sorted(set(named) & set(options)):
        raise ValueError(
            f"{name} received {', '.join(twice)} twice: alone and in the list `mask`. Pass one of the two."
        )
    options = {option: value for option, value in options.items() if option != "mask"}
    return (*query, None)[:3], {**named, **options}


def check_one_by_one(layer, query):
    """Raises for a list of tensors in place of the query."""
    if isinstance(query, list | tuple):
        raise ValueError(
            f"{type(layer).__name__} takes its tensors one by one, `(query, value, key=None)`, as "
            f"`keras.layers.MultiHeadAttention` does. Received a list of {len(query)}: call it with `*tensors`."
        )
