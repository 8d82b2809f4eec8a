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


def check_flash_attention(is_plain, score, alignment, dropout):
    """Raises unless flash attention computes what a layer asks for: `is_plain`, softmax over scaled dot products."""
    if dropout > 0:
        raise ValueError(f"Flash attention has no dropout. Received dropout={dropout}. Leave one of the two out.")
    if not is_plain:
        raise ValueError(
            'Flash attention computes score="scaled_dot" with alignment="softmax" only. Received '
            f"score={score} and alignment={alignment}. Leave `flash_attention` out."
        )
