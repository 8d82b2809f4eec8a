"""Attention by the backend's own flash kernel, for softmax over scaled dot products."""

import math

from keras import ops


def flash_context(query, key, value, mask):
    """Context `(B, N, T, E)` by the backend's flash attention; zero where nothing may be attended."""
    query, key, value = (ops.moveaxis(tensor, -3, -2) for tensor in (query, key, value))  # (B, T, N, H)
    if mask is not None and len(mask.shape) == 2:
        mask = ops.expand_dims(mask, (0, 1))
    scale = 1.0 / math.sqrt(query.shape[-1])
    context = ops.dot_product_attention(query, key, value, mask=mask, scale=scale, flash_attention=True)
    context = ops.moveaxis(context, -2, -3)
    return context if mask is None else ops.where(ops.any(mask, axis=-1, keepdims=True), context, 0.0)
