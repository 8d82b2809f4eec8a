"""What several position schemes do together. `positions` are those of the queries and those of the keys.

A scheme sees tensors `(B, N, length, H)`. Attention with one head has N = 1; further axes of batch are one with the first.
"""

import functools
import math
import operator

from keras import ops

from keras_attention.checks.shapes import sizes_differ


def rotate_query(schemes, query, positions, has_heads):
    """The query as the score reads it; `positions` are its own."""
    return _rotate(schemes, "rotate_query", query, positions, has_heads)


def rotate_key(schemes, key, positions, has_heads):
    """The key as the score reads it; `positions` are its own."""
    return _rotate(schemes, "rotate", key, positions, has_heads)


def _rotate(schemes, hook, tensor, positions, has_heads):
    if not schemes:
        return tensor
    heads, rows = _as_heads(tensor, has_heads), _as_rows(positions, tensor, has_heads)
    for scheme in schemes:
        rotated = getattr(scheme, hook)(heads, rows)
        _check_returned(scheme, hook, rotated.shape, heads.shape)
        heads = rotated
    return ops.reshape(heads, ops.shape(tensor))


def masks(schemes, positions):
    """The masks `(B or 1, T, S)` of the schemes that have one."""
    return [mask for scheme in schemes if (mask := scheme.mask(*positions)) is not None]


def bias(schemes, query, positions, factor, has_heads):
    """The sum of what the schemes add to the scores, which broadcasts to `(..., T, S)`, or `None`.

    Args:
        query: The projected query before any rotation.
        factor: What dot products of queries of this width are multiplied with, or `None` where the score is another.
    """
    schemes = [scheme for scheme in schemes if scheme.adds_bias]
    if not schemes:
        return None
    factor = 1 / math.sqrt(query.shape[-1]) if factor is None else factor
    heads, rows = _as_schemes_see(query, positions, has_heads)
    total = None
    for scheme in schemes:
        relative = scheme.relative_scores(heads, *rows)
        terms = {"bias": scheme.bias(*rows), "relative_scores": None if relative is None else relative * factor}
        for hook, term in terms.items():
            if term is not None:
                _check_returned(scheme, hook, term.shape, (*heads.shape[:3], rows[1].shape[-1]))
                term = _as_batch(term, query, has_heads)
                total = term if total is None else total + term
    return total


def add_context(schemes, positions, has_heads, context, weights):
    """The context, with what the schemes read beside the values."""
    heads, rows = _as_schemes_see(weights, positions, has_heads)
    for scheme in schemes:
        read = scheme.relative_context(heads, *rows)
        if read is not None:
            _check_width(scheme, read, context)
            context = context + ops.reshape(ops.cast(read, context.dtype), ops.shape(context))
    return context


def _check_returned(scheme, hook, received, expected):
    """Raises unless a hook of a scheme, which may be a user's, returned this shape `(B, N, ...)`, or sizes of 1 in it.

    A bias for all heads has no axis of them.
    """
    received, expected = tuple(received), tuple(expected)
    if hook == "bias" and len(received) == 3:
        expected = (expected[0], *expected[2:])
    if len(received) != len(expected) or any(
        size != 1 and sizes_differ(size, other) for size, other in zip(received, expected, strict=False)
    ):
        raise ValueError(
            f"`{hook}` of {type(scheme).__name__} must return a tensor of shape {expected}. Received shape {received}. "
            "`PositionScheme` says what each hook is given and returns."
        )


def _check_width(scheme, read, context):
    """Raises unless a scheme, which may be a user's, reads as many features as the values have."""
    if sizes_differ(read.shape[-1], context.shape[-1]):
        raise ValueError(
            f"`relative_context` of {type(scheme).__name__} must have the width of the values, here {context.shape[-1]}. "
            f"Received shape {tuple(read.shape)}. Make the scheme for this width, as by `ShawRelative(value_dim=...)`."
        )


def _batch_sizes(tensor, has_heads):
    """The sizes left of the heads, or of the length where there are none."""
    return ops.shape(tensor)[: -3 if has_heads else -2]


def _as_schemes_see(tensor, positions, has_heads):
    """A tensor of the queries, and the positions of queries and keys, as the hooks are given them."""
    return _as_heads(tensor, has_heads), [_as_rows(each, tensor, has_heads) for each in positions]


def _as_heads(tensor, has_heads):
    """`(B, ..., N, T, H)`, or `(B, ..., T, H)` without heads, as `(product of batch sizes, N or 1, T, H)`."""
    if not has_heads:
        tensor = ops.expand_dims(tensor, -3)
    if len(tensor.shape) == 4:
        return tensor
    *batch, N, T, H = ops.shape(tensor)
    return ops.reshape(tensor, (functools.reduce(operator.mul, batch), N, T, H))


def _as_rows(positions, tensor, has_heads):
    """Positions `(B or 1, ..., T)` as `(product of batch sizes or 1, T)`."""
    if len(positions.shape) == 2 and positions.shape[0] == 1:
        return positions
    batch = _batch_sizes(tensor, has_heads)
    if len(batch) == 1:
        return positions
    missing = len(batch) + 1 - len(positions.shape)
    positions = ops.expand_dims(positions, tuple(range(1, 1 + missing))) if missing else positions
    T = ops.shape(positions)[-1]
    positions = ops.broadcast_to(positions, (*batch, T))
    return ops.reshape(positions, (functools.reduce(operator.mul, batch), T))


def _as_batch(term, tensor, has_heads):
    """A term `(rows or 1, T, S)` or `(rows or 1, N, T, S)` with the axes of scores, which it broadcasts to."""
    if len(term.shape) == 3:
        term = ops.expand_dims(term, 1)
    batch = _batch_sizes(tensor, has_heads)
    if len(batch) > 1:
        batch = [1] * len(batch) if term.shape[0] == 1 else batch
        term = ops.reshape(term, (*batch, *ops.shape(term)[1:]))
    return term if has_heads else ops.squeeze(term, -3)
