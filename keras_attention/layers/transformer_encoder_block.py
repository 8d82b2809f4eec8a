"""Transformer encoder block: self-attention and a feed-forward network, each with a residual connection."""

import keras
from keras import ops

from keras_attention.checks.shapes import sizes_differ
from keras_attention.layers.attention_inputs import as_positions
from keras_attention.layers.transformer_block import TransformerBlock, call_attention, check_sequences
from keras_attention.ops.masks import as_mask, check_mask_types
from keras_attention.ops.segments import mask_of_both


@keras.saving.register_keras_serializable(package="keras_attention")
class TransformerEncoderBlock(TransformerBlock):
    """Self-attention, then a feed-forward network, each around a residual connection with layer normalization.

    `hidden = norm(inputs + dropout(attention(inputs)))`, `output = norm(hidden + dropout(feed_forward(hidden)))`

    That is the paper's order ("post-LN"). With `normalize_first=True` ("pre-LN") the normalization moves inside,
    `hidden = inputs + dropout(attention(norm(inputs)))`, and a last `LayerNormalization` belongs after the stack.

    With `use_causal_mask=True` it is the block of a decoder-only language model.

    Args:
        num_heads: Integer, number N of heads; it must divide the width of the inputs.
        intermediate_dim: Integer, hidden size of the feed-forward network.
        dropout: Float in [0, 1): on the output of both sub-layers, as in the paper.
        attention_dropout: Float in [0, 1), on the attention weights. `None`: as `dropout`.
        activation: Activation of the feed-forward network.
        normalize_first: Boolean, pre-LN instead of post-LN.
        score: A name of `scores.get`, or a `Score`.
        alignment: A name of `alignments.get`, or an `Alignment`.
        seed: Integer seed of the dropouts, or `None`.
        layer_norm_epsilon: Number above 0, added to the variance in the layer normalizations.
        kernel_initializer, bias_initializer: Of all projections and of the feed-forward network.
        attention: An unbuilt `MultiHeadAttention`, of which the block's attention is a copy, with a name, seed and dtype of
            the block's. It says all that `num_heads`, `attention_dropout`, `score` and `alignment` stand for, which are then
            left out, and has initializers of its own.
        position: A name of `positions.get`, or a `PositionScheme`: what acts by the positions of queries and keys. Beside
            `attention` only if that has none.

    Call arguments:
        inputs: Float tensor of shape `(B, T, D)`.
        mask: Boolean tensor `(B, T)`, True = a real position; padding is read as zeros, whatever stands there. The
            implicit Keras mask is used when it is not given; it arrives as `inputs_mask` where other tensors are passed
            beside the inputs.
        attention_mask: Boolean tensor `(T, T)`, `(B, T, T)` or `(B, N, T, T)`.
        return_attention_scores: Boolean. Also return the attention weights.
        training: Boolean, whether dropout is active.
        use_causal_mask: Boolean. A position attends to itself and earlier ones.
        memory: Float tensor of shape `(B, M, D)`, what the same block read at the M positions before the inputs, as
            `ops.next_memory` keeps it. The inputs attend to it, too; no gradient flows into it (Transformer-XL). The last
            axis of `attention_mask` and of the weights then has M + T entries.
        memory_mask: Boolean tensor `(B, M)`, as `mask`.
        positions: Integer tensor `(B or 1, T)`, with a memory `(B or 1, M + T)`: where the inputs stand for `position`. By
            default the real ones are counted. In packed rows positions restart with each segment.

    Returns:
        `output` of shape `(B, T, D)`, or `(output, weights)` with the weights `(B, N, T, T)`. The mask is passed on.

    Raises:
        ValueError: If the memory does not fit the inputs, or arguments, shapes or masks do not fit together.

    Example:
        >>> block = TransformerEncoderBlock(num_heads=2, intermediate_dim=13)
        >>> block(keras.ops.ones((3, 5, 6))).shape
        (3, 5, 6)

    References:
        Vaswani et al., 2017, section 3.1, arXiv:1706.03762.
        Xiong et al., 2020 (pre-LN), arXiv:2002.04745.
        Dai et al., 2019 (the memory), section 3.2, arXiv:1901.02860.
    """

    def build(self, inputs_shape):
        check_sequences(inputs=inputs_shape)
        self.build_sublayers(inputs_shape, {"self_attention": inputs_shape})

    def call(
        self,
        inputs,
        mask=None,
        inputs_mask=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=False,
        memory=None,
        memory_mask=None,
        positions=None,
    ):
        check_sequences(inputs=inputs.shape)
        check_segment_memory(inputs.shape, memory, memory_mask)
        # Keras fills in `mask` when the inputs are the only tensor, and `inputs_mask` when another is passed beside them.
        mask = as_mask(inputs_mask if mask is None else mask)
        inputs = self.zero_padding("mask", inputs, mask)
        normalized = read = self.before("self_attention", inputs)
        read_mask = mask
        if memory is not None:
            memory_mask = as_mask(memory_mask, "memory_mask")
            memory = self.zero_padding("memory_mask", ops.stop_gradient(memory), memory_mask)
            read = ops.concatenate([self.before("self_attention", memory), normalized], axis=1)  # (B, M + T, D)
            read_mask = mask_of_both(memory, memory_mask, inputs, mask)
        positions = as_positions("positions", positions, read.shape)
        context, weights, _ = call_attention(
            self.self_attention,
            normalized,
            read,
            query_mask=mask,
            value_mask=read_mask,
            attention_mask=attention_mask,
            return_attention_scores=return_attention_scores,
            training=training,
            use_causal_mask=use_causal_mask,
            query_positions=positions if memory is None or positions is None else positions[:, ops.shape(memory)[1] :],
            key_positions=positions,
        )
        output = self.feed(self.after("self_attention", inputs, context, training), training)
        return (output, weights) if return_attention_scores else output

    def compute_output_spec(
        self,
        inputs,
        mask=None,
        inputs_mask=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=False,
        memory=None,
        memory_mask=None,
        positions=None,
    ):
        check_sequences(inputs=inputs.shape)
        check_segment_memory(inputs.shape, memory, memory_mask)
        mask = inputs_mask if mask is None else mask
        check_mask_types(mask=mask, attention_mask=attention_mask, memory_mask=memory_mask)
        output = keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)
        if not return_attention_scores:
            return output
        B, T, _ = inputs.shape
        M = 0 if memory is None else memory.shape[1]
        S = None if None in (M, T) else M + T
        return output, keras.KerasTensor((B, self.num_heads, T, S), dtype=self.compute_dtype)


def check_segment_memory(inputs_shape, memory, memory_mask):
    """Raises unless a memory is `None` or has the batch and the width of the inputs `(B, T, D)`."""
    if memory is None and memory_mask is not None:
        raise ValueError(
            f"`memory_mask` belongs to a `memory`. Received a mask of shape {tuple(memory_mask.shape)} and no memory. Pass "
            "both, or neither."
        )
    if memory is None:
        return
    B, _, D = inputs_shape
    if len(memory.shape) != 3 or sizes_differ(memory.shape[0], B) or sizes_differ(memory.shape[-1], D):
        raise ValueError(
            f"`memory` must have the batch and the width of the inputs, shape ({B}, M, {D}). Received memory of shape "
            f"{tuple(memory.shape)} and inputs of shape {tuple(inputs_shape)}. Keep what the same block has read with "
            "`keras_attention.ops.next_memory`."
        )
