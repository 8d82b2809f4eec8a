"""Multi-head self-attention, forward and backward: the gradients of all weights and of the inputs.

Ours and Keras' run in a `tf.function`, torch's eagerly, as each is used.
"""

import numpy as np
from side_by_side import Comparison


def batch(B, T, D):
    """Inputs `(B, T, D)` and the mask `(B, T)` of sequences between T / 2 and T long."""
    rng = np.random.default_rng(1)
    lengths = rng.integers(T // 2, T, size=B, endpoint=True)
    return rng.normal(size=(B, T, D)).astype("float32"), np.arange(T) < lengths[:, None]


def ours(B, T, D, N, causal):
    from keras_attention.layers import MultiHeadAttention

    return gradients(MultiHeadAttention(N, D // N), *batch(B, T, D), causal)


def keras_layer(B, T, D, N, causal):
    import keras

    return gradients(keras.layers.MultiHeadAttention(N, D // N), *batch(B, T, D), causal)


def gradients(layer, inputs, mask, causal):
    """The work of a Keras layer on TensorFlow."""
    import tensorflow as tf

    inputs, mask = tf.constant(inputs), tf.constant(mask)
    layer.build(inputs.shape, inputs.shape)

    @tf.function
    def step(inputs, mask):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            output = layer(inputs, inputs, value_mask=mask, use_causal_mask=causal)
            total = tf.reduce_sum(output * output)
        return tape.gradient(total, [inputs, *layer.trainable_variables])

    return lambda: step(inputs, mask)[0].numpy()


def torch_layer(B, T, D, N, causal):
    import torch

    layer = torch.nn.MultiheadAttention(D, N, batch_first=True)
    inputs, mask = (torch.from_numpy(array) for array in batch(B, T, D))
    inputs.requires_grad_()
    padding = torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)
    future = torch.nn.Transformer.generate_square_subsequent_mask(T) if causal else None

    def work():
        output, _ = layer(inputs, inputs, inputs, key_padding_mask=padding, attn_mask=future, need_weights=False)
        total = (output * output).sum()
        return torch.autograd.grad(total, [inputs, *layer.parameters()])[0].numpy()

    return work


SIZES = {"B": 32, "T": 64, "D": 256, "N": 8}
SMOKE = {"B": 2, "T": 5, "D": 12, "N": 3}

COMPARISONS = [
    Comparison(
        f"forward and backward, {masks}, (B, T, D) = ({{B}}, {{T}}, {{D}}), {{N}} heads",
        contenders={"keras_attention": ours, "keras": keras_layer, "torch": torch_layer},
        sizes={"default": {**SIZES, "causal": causal}, "smoke": {**SMOKE, "causal": causal}},
        calls=10,
    )
    for causal, masks in ((False, "padding mask"), (True, "padding and causal mask"))
]
