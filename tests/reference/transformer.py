"""A Transformer block in NumPy, from the weights of ours and the formulas of the paper."""

import numpy as np
from reference.attention import causal, multi_head_attention


def layer_normalization(inputs, scale, offset, epsilon=1e-6):
    mean = inputs.mean(axis=-1, keepdims=True)
    variance = ((inputs - mean) ** 2).mean(axis=-1, keepdims=True)
    return (inputs - mean) / np.sqrt(variance + epsilon) * scale + offset


def feed_forward(inputs, hidden_kernel, hidden_bias, output_kernel, output_bias):
    return np.maximum(inputs @ hidden_kernel + hidden_bias, 0) @ output_kernel + output_bias


class Residual:
    """`inputs + sublayer(inputs)`, normalized after the sum (post-LN) or before the sub-layer (pre-LN)."""

    def __init__(self, block):
        self.norms = {name: norm.get_weights() for name, norm in block.norms.items()}
        self.normalize_first = block.normalize_first

    def __call__(self, name, inputs, sublayer):
        if self.normalize_first:
            return inputs + sublayer(layer_normalization(inputs, *self.norms[name]))
        return layer_normalization(inputs + sublayer(inputs), *self.norms[name])


def encoder_block(block, inputs, mask=None):
    """`mask` broadcasts to `(B, N, T, T)`."""
    residual = Residual(block)
    kernels = block.self_attention.get_weights()
    hidden = residual("self_attention", inputs, lambda x: multi_head_attention(x, x, x, mask, kernels)[0])
    return residual("feed_forward", hidden, lambda x: feed_forward(x, *block.feed_forward.get_weights()))


def decoder_block(block, target, source, self_mask=None, cross_mask=None):
    """The masks broadcast to `(B, N, T, T)` and `(B, N, T, S)`; the causal one is added here."""
    residual = Residual(block)
    T = target.shape[1]
    self_mask = causal(T, T) if self_mask is None else causal(T, T) & self_mask
    kernels = block.self_attention.get_weights()
    hidden = residual("self_attention", target, lambda x: multi_head_attention(x, x, x, self_mask, kernels)[0])
    kernels = block.cross_attention.get_weights()
    hidden = residual(
        "cross_attention", hidden, lambda x: multi_head_attention(x, source, source, cross_mask, kernels)[0]
    )
    return residual("feed_forward", hidden, lambda x: feed_forward(x, *block.feed_forward.get_weights()))
