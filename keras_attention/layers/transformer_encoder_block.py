"""Transformer encoder block: self-attention and a feed-forward network, each with a residual connection."""

import keras

from keras_attention.layers.transformer_block import TransformerBlock, call_attention, check_sequences
from keras_attention.ops.masks import as_mask, check_mask_types


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

    Call arguments:
        inputs: Float tensor of shape `(B, T, D)`.
        mask: Boolean tensor `(B, T)`, True = a real position; padding is read as zeros, whatever stands there. The
            implicit Keras mask is used when it is not given; it arrives as `inputs_mask` where other tensors are passed
            beside the inputs.
        attention_mask: Boolean tensor `(T, T)`, `(B, T, T)` or `(B, N, T, T)`.
        return_attention_scores: Boolean. Also return the attention weights.
        training: Boolean, whether dropout is active.
        use_causal_mask: Boolean. A position attends to itself and earlier ones.

    Returns:
        `output` of shape `(B, T, D)`, or `(output, weights)` with the weights `(B, N, T, T)`. The mask is passed on.

    Example:
        >>> block = TransformerEncoderBlock(num_heads=2, intermediate_dim=13)
        >>> block(keras.ops.ones((3, 5, 6))).shape
        (3, 5, 6)

    References:
        Vaswani et al., 2017, section 3.1, arXiv:1706.03762.
        Xiong et al., 2020 (pre-LN), arXiv:2002.04745.
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
    ):
        check_sequences(inputs=inputs.shape)
        # Keras fills in `mask` when the inputs are the only tensor, and `inputs_mask` when another is passed beside them.
        mask = as_mask(inputs_mask if mask is None else mask)
        inputs = self.zero_padding("mask", inputs, mask)
        normalized = self.before("self_attention", inputs)
        context, weights, _ = call_attention(
            self.self_attention,
            normalized,
            normalized,
            query_mask=mask,
            value_mask=mask,
            attention_mask=attention_mask,
            return_attention_scores=return_attention_scores,
            training=training,
            use_causal_mask=use_causal_mask,
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
    ):
        check_sequences(inputs=inputs.shape)
        check_mask_types(mask=inputs_mask if mask is None else mask, attention_mask=attention_mask)
        output = keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)
        if not return_attention_scores:
            return output
        B, T, _ = inputs.shape
        return output, keras.KerasTensor((B, self.num_heads, T, T), dtype=self.compute_dtype)
