"""The flow of every attention, and the choice of the kernel that computes it.

    query, key ──score──▶ scores ──alignment──▶ weights ──combine with value──▶ context

Keys and values come from a memory: a dictionary of tensors that is made once and read by any number of queries.

    "key"        (..., S, P), the keys as the score prepared them; with heads (B, K, S, P), K may be fewer than the query's
    "value"      (..., S, E)
    "mask"       boolean (B, ..., S), True = may be attended; left out where everything may be
    "positions"  int32 (B or 1, S), where the keys stand; left out where nothing asks
    "alignment"  what the alignment knows of earlier queries; only in a memory that is read query by query
"""

from keras import ops

from keras_attention.checks.classes import check_unbuilt
from keras_attention.checks.shapes import check_returned, check_same_length
from keras_attention.layers.grouped_heads import in_groups, out_of_groups, repeated


def choose_kernel(score, alignment, schemes=(), dropout=0.0, flash_attention=None):
    """The function that computes the flow: `four_steps`, or `flash_kernel` where it is demanded and fits.

    Raises:
        ValueError: If flash attention is demanded and the score, the alignment, a position scheme or the dropout need the
            four steps.
    """
    if not flash_attention:
        return four_steps
    if dropout > 0:
        raise ValueError(f"Flash attention has no dropout. Received dropout={dropout}. Leave one of the two out.")
    for scheme in schemes:
        if scheme.adds_bias:
            raise ValueError(
                f"Flash attention adds no bias to the scores. Received {scheme}. Leave `flash_attention` out."
            )
    if score.factor(1) is None or not alignment.is_softmax:
        raise ValueError(
            'Flash attention computes score="scaled_dot" or "dot" with alignment="softmax" only. Received '
            f"score={score} and alignment={alignment}. Leave `flash_attention` out."
        )
    return flash_kernel


def check_flash_call(flash_attention, return_attention_scores, attention_bias):
    """Raises where flash attention is asked for weights, which it never holds, or for a bias, which it does not add."""
    if not flash_attention:
        return
    if return_attention_scores:
        raise ValueError(
            "Flash attention never holds the attention weights, so that they cannot be returned. "
            "Make the layer without `flash_attention=True`, or leave `return_attention_scores` out."
        )
    if attention_bias is not None:
        raise ValueError(
            "Flash attention adds no bias to the scores. Received `attention_bias` of shape "
            f"{tuple(attention_bias.shape)}. Make the layer without `flash_attention=True`."
        )


def four_steps(query, memory, mask, *, score, alignment, dropout, group=1, bias=None, add_context=None, training=None):
    """The four steps of attention: `context[t] = sum over s of weights[t, s] · value[s]`.

    Args:
        query: `(..., T, D)`.
        memory: A dictionary, as above.
        mask: Boolean, broadcasts to `(..., T, S)`, or `None`.
        score, alignment, dropout: Layers of steps one, two and of the dropout on the weights.
        group: Integer, how many heads of the query read one head of the memory.
        bias: What is added to the scores, broadcasts to `(..., T, S)`, or `None`.
        add_context: A function `(context, weights) -> context`, what is read beside the values, or `None`.

    Returns:
        `context (..., T, E)`, the weights `(..., T, S)` before dropout, both in the type of the value, and the memory
        after this query.
    """
    query = in_groups(query, group)
    scores = check_scores(score, score.compare(query, memory["key"]), query, memory["key"])
    scores = out_of_groups(scores, group)  # (..., T, S)
    if bias is not None:
        scores = scores + ops.cast(bias, scores.dtype)
    if "alignment" in memory:
        weights, state = alignment.step(scores, mask, memory["alignment"], training=training)
        memory = {**memory, "alignment": state}
    else:
        weights = alignment(scores, mask=mask, training=training)
    weights = ops.cast(check_weights(alignment, weights, scores), memory["value"].dtype)  # (..., T, S)
    dropped = dropout(weights, training=training)
    context = ops.einsum("...ts,...se->...te", in_groups(dropped, group), memory["value"])
    context = out_of_groups(context, group)  # (..., T, E)
    return context if add_context is None else add_context(context, dropped), weights, memory


def flash_kernel(query, memory, mask, *, score, group=1, **_):
    """Softmax over dot products by the backend's flash attention, which never holds the weights: they are `None`."""
    key, value = (repeated(memory[name], group) for name in ("key", "value"))  # not every backend takes a single head
    query, key, value = (ops.moveaxis(tensor, -3, -2) for tensor in (query, key, value))
    if mask is not None and len(mask.shape) == 2:
        mask = ops.expand_dims(mask, (0, 1))
    scale = score.factor(query.shape[-1])
    context = ops.dot_product_attention(query, key, value, mask=mask, scale=scale, flash_attention=True)
    context = ops.moveaxis(context, -2, -3)
    context = context if mask is None else ops.where(ops.any(mask, axis=-1, keepdims=True), context, 0.0)
    return context, None, memory


def check_scores(score, scores, query, key):
    """`scores`, after checking that a score, which may be a user's, made one for each query and key."""
    check_returned(score, "scores of shape (..., T, S)", scores.shape, (*query.shape[:-1], key.shape[-2]))
    return scores


def check_weights(alignment, weights, scores):
    """`weights`, after checking that an alignment, which may be a user's, made one for each of the scores."""
    check_returned(alignment, "weights of the shape of the scores", weights.shape, scores.shape)
    return weights


def check_built(layer):
    """Raises where the weights do not exist yet."""
    if not layer.built:
        raise ValueError(
            f"The layer {layer.name!r} must be built before it can prepare a memory. Call it once, or `build` it with the "
            "shapes of its inputs."
        )


def memory_of(**tensors):
    """The memory of the tensors that there are; `None` is left out."""
    return {name: tensor for name, tensor in tensors.items() if tensor is not None}


def check_memory(memory, *names):
    """Raises unless `memory` is a dictionary with these tensors, as many keys as values."""
    if not isinstance(memory, dict) or not set(names) <= set(memory):
        raise ValueError(
            f"`memory` must be a dictionary with {' and '.join(map(repr, names))}, as `prepare` of the same layer returns "
            f"it. Received: {sorted(memory) if isinstance(memory, dict) else type(memory).__name__}."
        )
    if "value" in names:
        check_same_length(memory["value"].shape, memory["key"].shape)


def check_stepwise(alignment):
    """Raises unless queries may come one after the other, as decoding with a cache has them."""
    alignment.initial_state((1, 1))


def build_scheme(scheme, query_shape):
    """Builds a position scheme of an attention layer for `(B, N, T, H)`. If it is shared, the first one builds it."""
    if not (scheme.shared and scheme.built):
        build_part(scheme, query_shape)
    N, heads_of_first = query_shape[1], scheme.get_build_config()["input_shape"][1]
    if heads_of_first != N:
        raise ValueError(
            f"Attentions that share a position scheme must have equally many heads. Received {scheme.name!r}, which was built "
            f"for {heads_of_first}, in an attention with {N}. Pass a new one to it."
        )


def build_part(part, *shapes):
    """Builds the score, the alignment or the position scheme of an attention layer."""
    check_unbuilt(part)
    part.build(*shapes)
