"""Transformer decoder block: causal self-attention, attention to the source, and a feed-forward network."""

import keras
from keras import ops

from keras_attention import positions
from keras_attention.layers.caches import mask_of_slots
from keras_attention.layers.transformer_block import TransformerBlock, call_attention, check_sequences
from keras_attention.ops.masks import as_mask, check_mask_types, query_and_key_positions
from keras_attention.positions.position_scheme import config_of_scheme


@keras.saving.register_keras_serializable(package="keras_attention")
class TransformerDecoderBlock(TransformerBlock):
    """Causal self-attention, then attention to the source, then a feed-forward network, each around a residual.

    `hidden = norm(target + dropout(self_attention(target)))`
    `hidden = norm(hidden + dropout(cross_attention(hidden, source)))`
    `output = norm(hidden + dropout(feed_forward(hidden)))`

    That is the paper's order ("post-LN"). With `normalize_first=True` ("pre-LN") the normalization moves inside each
    sub-layer, and a last `LayerNormalization` belongs after the stack.

    Args:
        num_heads: Integer, number N of heads; it must divide the width of the target.
        intermediate_dim: Integer, hidden size of the feed-forward network.
        dropout: Float in [0, 1): on the output of each sub-layer, as in the paper.
        attention_dropout: Float in [0, 1), on the attention weights. `None`: as `dropout`.
        activation: Activation of the feed-forward network.
        normalize_first: Boolean, pre-LN instead of post-LN.
        score: A name of `scores.get`, or a `Score`; the second attention gets a copy of its own.
        alignment: A name of `alignments.get`, or an `Alignment`; likewise.
        seed: Integer seed of the dropouts, or `None`.
        layer_norm_epsilon: Number above 0, added to the variance in the layer normalizations.
        kernel_initializer, bias_initializer: Of all projections and of the feed-forward network.
        attention: An unbuilt `MultiHeadAttention`, of which both attentions are copies, with names, seeds and the dtype of
            the block's. It says all that `num_heads`, `attention_dropout`, `score` and `alignment` stand for, which are then
            left out, and has initializers of its own. Its `sliding_window` and `position` are for the self-attention alone.
        position: A name of `positions.get`, or a `PositionScheme`: what acts by the positions of the target in the
            self-attention. Beside `attention` only if that has none.
        cross_position: Likewise for the attention to the source. Target and source are counted from 0 each, so that their
            first tokens stand at the same place. `None`: nothing.

    Call arguments:
        target: Float tensor of shape `(B, T, D)`.
        source: Float tensor of shape `(B, S, D_source)`, the encoded source.
        target_mask: Boolean tensor `(B, T)`, True = a real position; padding is read as zeros, whatever stands there.
            The implicit Keras mask is used when it is not given.
        source_mask: Boolean tensor `(B, S)`; as above.
        attention_mask: Boolean tensor `(T, T)`, `(B, T, T)` or `(B, N, T, T)` of the self-attention.
        return_attention_scores: Boolean. Also return the attention weights.
        training: Boolean, whether dropout is active.
        use_causal_mask: Boolean, default `True`. A target position attends to itself and earlier ones.
        cache: `{"self": ..., "cross": ...}` from `initial_cache`, for decoding step by step. `source` is then left
            out; `target` holds the new positions only, and `target_mask` speaks of the slots of the cache.
        cache_index: Integer or scalar integer tensor, position of the first new target.

    Returns:
        `output` of shape `(B, T, D)`; with `return_attention_scores` also
        `{"self": (B, N, T, T), "cross": (B, N, T, S)}`; with `cache` also the updated cache, last.

    Example:
        >>> block = TransformerDecoderBlock(num_heads=2, intermediate_dim=13)
        >>> block(keras.ops.ones((3, 5, 6)), keras.ops.ones((3, 7, 6))).shape
        (3, 5, 6)

    References:
        Vaswani et al., 2017, section 3.1, arXiv:1706.03762.
        Xiong et al., 2020 (pre-LN), arXiv:2002.04745.
    """

    def __init__(
        self,
        num_heads=None,
        intermediate_dim=None,
        dropout=0.0,
        attention_dropout=None,
        activation="relu",
        normalize_first=False,
        score="scaled_dot",
        alignment="softmax",
        seed=None,
        layer_norm_epsilon=1e-6,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        attention=None,
        position=None,
        cross_position=None,
        **kwargs,
    ):
        super().__init__(
            num_heads,
            intermediate_dim,
            dropout,
            attention_dropout,
            activation,
            normalize_first,
            score,
            alignment,
            seed,
            layer_norm_epsilon,
            kernel_initializer,
            bias_initializer,
            attention,
            position,
            **kwargs,
        )
        self.cross_position = positions.get(cross_position)

    def build(self, target_shape, source_shape=None):
        if source_shape is None:
            self._raise_no_source(target_shape)
        check_sequences(target=target_shape, source=source_shape)
        self.build_sublayers(target_shape, {"self_attention": target_shape, "cross_attention": source_shape})

    def call(
        self,
        target,
        source=None,
        target_mask=None,
        source_mask=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=True,
        cache=None,
        cache_index=None,
    ):
        if source is None and cache is None:
            self._raise_no_source(target.shape)
        check_sequences(target=target.shape, source=None if source is None else source.shape)
        target_mask, source_mask = as_mask(target_mask, "target_mask"), as_mask(source_mask, "source_mask")
        query_mask = target_mask if cache is None else None
        target = self.zero_padding("target_mask", target, query_mask)
        cache = cache or {"self": None, "cross": None}
        options = {"return_attention_scores": return_attention_scores, "training": training}
        normalized = self.before("self_attention", target)
        context, self_weights, self_cache = call_attention(
            self.self_attention,
            normalized,
            normalized,
            query_mask=query_mask,
            value_mask=target_mask,
            attention_mask=attention_mask,
            use_causal_mask=use_causal_mask,
            cache=cache["self"],
            cache_index=cache_index,
            **options,
        )
        hidden = self.after("self_attention", target, context, training)
        normalized = self.before("cross_attention", hidden)
        if self.cross_position is not None:
            options |= self._positions(target, source, target_mask, source_mask, cache["self"], cache_index)
        context, cross_weights, cross_cache = call_attention(
            self.cross_attention,
            normalized,
            normalized if source is None else source,
            query_mask=query_mask,
            value_mask=source_mask,
            cache=cache["cross"],
            **options,
        )
        output = self.feed(self.after("cross_attention", hidden, context, training), training)
        outputs = [output]
        if return_attention_scores:
            outputs.append({"self": self_weights, "cross": cross_weights})
        if self_cache is not None:
            outputs.append({"self": self_cache, "cross": cross_cache})
        return tuple(outputs) if len(outputs) > 1 else output

    @staticmethod
    def _positions(target, source, target_mask, source_mask, cache, cache_index):
        """Where target and source stand in the attention to the source; a cache knows the positions of the source."""
        T = ops.shape(target)[1]
        if cache is not None:
            slots = mask_of_slots("target_mask", target_mask, target.shape[1], cache, cache_index)
            query_positions, _ = query_and_key_positions(T, ops.shape(cache["key"])[-2], cache_index, key_mask=slots)
            return {"query_positions": query_positions}
        query_positions, _ = query_and_key_positions(T, T, query_mask=target_mask)
        S = ops.shape(source)[1]
        return {
            "query_positions": query_positions,
            "key_positions": query_and_key_positions(S, S, query_mask=source_mask)[0],
        }

    @staticmethod
    def _raise_no_source(target_shape):
        raise ValueError(
            "The decoder block needs `source`, the encoded source of shape (B, S, D), or a `cache` that holds it. "
            f"Received neither, with target of shape {tuple(target_shape)}."
        )

    def initial_cache(self, source, length, source_mask=None):
        """Cache for `length` target positions: {"self": free slots, "cross": the projected `source (B, S, D)`}."""
        return {
            "self": self.self_attention.empty_cache(ops.shape(source)[0], length),
            "cross": self.cross_attention.project(source, value_mask=source_mask),
        }

    def compute_output_spec(
        self,
        target,
        source=None,
        target_mask=None,
        source_mask=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=True,
        cache=None,
        cache_index=None,
    ):
        check_sequences(target=target.shape, source=None if source is None else source.shape)
        check_mask_types(target_mask=target_mask, source_mask=source_mask, attention_mask=attention_mask)
        outputs = [keras.KerasTensor(target.shape, dtype=self.compute_dtype)]
        if return_attention_scores:
            B, T, _ = target.shape
            slots = T if cache is None else cache["self"]["key"].shape[-2]
            S = source.shape[-2] if cache is None else cache["cross"]["key"].shape[-2]
            shapes = {"self": (B, self.num_heads, T, slots), "cross": (B, self.num_heads, T, S)}
            outputs.append({name: keras.KerasTensor(shape, dtype=self.compute_dtype) for name, shape in shapes.items()})
        if cache is not None:
            outputs.append(keras.tree.map_structure(lambda slots: keras.KerasTensor(slots.shape, slots.dtype), cache))
        return tuple(outputs) if len(outputs) > 1 else outputs[0]

    def get_config(self):
        return {**super().get_config(), "cross_position": config_of_scheme(self.cross_position)}
