"""The base of the attention layers: a memory is prepared once and read by queries, through one flow."""

import functools

import keras
from keras import ops

from keras_attention import alignments, positions, scores
from keras_attention.checks.arguments import check_rate, check_seed
from keras_attention.checks.shapes import check_attention_shapes, check_same_batch, check_same_length, check_same_rank
from keras_attention.layers.attention_inputs import as_bias, as_inputs, as_masks, as_positions, one_mask, zeroed_memory
from keras_attention.layers.flow import (
    build_part,
    build_scheme,
    check_built,
    check_flash_call,
    check_memory,
    choose_kernel,
    memory_of,
)
from keras_attention.layers.one_by_one import one_by_one
from keras_attention.ops.masks import (
    check_mask_types,
    query_and_key_positions,
    used_keys,
    zero_masked,
)
from keras_attention.positions import combined
from keras_attention.positions.position_scheme import config_of_scheme
from keras_attention.saving.lookup import config_of


class AttentionLayer(keras.layers.Layer):
    """Base class of the attention layers: `call` is `prepare` and `read`.

        memory  = prepare(value, key, mask)      what depends on the memory alone, once
        context = read(query, memory)            score, alignment and combination, for each query

    A subclass says what differs: its arguments; its axes in `scores_shape`; projections around the flow in `project_memory`,
    `project_query` and `project_context`; whether these make heads. A layer may be called as `keras.layers.Attention`
    is, too.
    """

    # Whether there is an axis of heads within the flow, how many heads of the query read one head of the memory, and whether
    # the backend's flash attention is demanded.
    has_heads = False
    group = 1
    flash_attention = None

    def __init__(self, score="scaled_dot", alignment="softmax", dropout=0.0, seed=None, position=None, **kwargs):
        # Query, key and value are cast in `as_inputs`; a bias in half precision would lose its digits.
        super().__init__(**{"autocast": False, **kwargs})
        self.supports_masking = True
        self.score = scores.get(score)
        self.alignment = alignments.get(alignment, seed)
        self.dropout = check_rate("dropout", dropout)
        self.seed = check_seed(seed)
        self.position = positions.get(position)
        self.schemes = [] if self.position is None else [self.position]
        self.dropout_layer = keras.layers.Dropout(self.dropout, seed=self.seed, dtype=self.dtype_policy)

    def __call__(self, query, value=None, key=None, *arguments, **options):
        # The one way into the layer: eager or symbolic, built or not.
        tensors, options = one_by_one(self, query, value, key, options)
        return super().__call__(*tensors, *arguments, **options)

    def build(self, query_shape, value_shape, key_shape=None):
        key_shape = key_shape or value_shape
        check_attention_shapes(query_shape, value_shape, key_shape)
        build_part(self.score, query_shape, key_shape)
        build_part(self.alignment, self.scores_shape(query_shape, value_shape))
        for scheme in self.schemes:
            build_scheme(scheme, (None, 1, *query_shape[-2:]))
        self.built = True

    # === What a subclass may change ===

    def scores_shape(self, query_shape, value_shape):
        """Shape of the scores for `query (B, ..., T, D)` and `value (B, ..., S, E)`."""
        return (*query_shape[:-1], value_shape[-2])

    def value_shape(self, memory):
        """Shape `(B, ..., S, E)` of the values in a memory, without an axis of heads."""
        return memory["value"].shape

    def project_memory(self, value, key):
        """The values that are read, and the keys by which they are found."""
        return value, key

    def project_query(self, query):
        return query

    def project_context(self, context, query):
        """The output, of what was read and of the query before its projection."""
        return context

    # === The two halves ===

    def prepare(self, value, key=None, mask=None, positions=None):
        """What depends on the memory alone, to be read many times.

        Args:
            value, key: As in a call. Float tensors `(B, ..., S, E)` and `(B, ..., S, D_key)`.
            mask: Boolean tensor `(B, ..., S)`, True = may be attended, or `None`. A masked position is never looked at.
            positions: int32 tensor `(B or 1, S)`, where the keys stand. `None`: the real ones are counted.

        Returns:
            A dictionary of tensors, as described at the top of `layers/flow.py`.

        Raises:
            ValueError: If the layer is not built, or shapes do not fit together.
            TypeError: If positions are not integers.
        """
        check_built(self)
        value, key = as_inputs(self.compute_dtype, value=value, key=value if key is None else key)
        positions = as_positions("positions", positions, value.shape)
        return self._prepare(value, key, mask, positions)

    def _prepare(self, value, key, mask, positions):
        check_same_rank(value.shape, value.shape, key.shape)
        check_same_batch(key.shape, value.shape)
        check_same_length(value.shape, key.shape)
        mask, value, key = zeroed_memory(mask, value, key)
        if self.schemes and positions is None:
            S = ops.shape(value)[-2]
            _, positions = query_and_key_positions(S, S, key_mask=mask)
        value, key = self.project_memory(value, key)
        key = combined.rotate_key(self.schemes, key, positions, self.has_heads)
        return memory_of(key=self.score.prepare(key), value=value, mask=mask, positions=positions)

    def read(
        self,
        query,
        memory,
        query_mask=None,
        attention_mask=None,
        query_positions=None,
        use_causal_mask=False,
        return_attention_scores=False,
        training=None,
        cache_index=None,
        attention_bias=None,
    ):
        """Reads a memory that `prepare` made.

        Args:
            query, query_mask, attention_mask, attention_bias, use_causal_mask, return_attention_scores, training: As in a
                call.
            memory: What `prepare` returned, or a cache.
            query_positions: int32 tensor `(B or 1, T)`, where the queries stand. `None`: the real ones are counted, and the
                last stands at the last real key.
            cache_index: Integer or scalar tensor, the slot of the first query in a cache; later slots stay out of sight.

        Returns:
            What a call returns. Where the memory holds the state of the alignment, also the memory after these queries,
            last.

        Raises:
            ValueError: If shapes or masks do not fit together.
            TypeError: If positions are not integers.
        """
        check_flash_call(self.flash_attention, return_attention_scores, attention_bias)
        check_memory(memory, "key", "value")
        (query,) = as_inputs(self.compute_dtype, query=query)
        masks = as_masks(query_mask=query_mask, key_mask=memory.get("mask"), attention_mask=attention_mask)
        value_shape = self.value_shape(memory)
        check_same_rank(query.shape, value_shape, value_shape)
        check_same_batch(query.shape, value_shape)
        query_positions = as_positions("query_positions", query_positions, query.shape)
        key_positions = as_positions('memory["positions"]', memory.get("positions"), value_shape)
        positions = self.positions_of(query, memory["value"], key_positions, query_positions, masks, cache_index)
        bias, allowed = as_bias(attention_bias, self.scores_shape(query.shape, value_shape))
        mask = self._mask(query, memory["value"], value_shape, masks, use_causal_mask, positions, allowed, cache_index)
        output, weights, after = self._flow(query, memory, mask, masks["query_mask"], positions, bias, training)
        outputs = [output, *([weights] if return_attention_scores else []), *([after] if "alignment" in memory else [])]
        return tuple(outputs) if len(outputs) > 1 else output

    def call(
        self,
        query,
        value,
        key=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=False,
        attention_bias=None,
        query_positions=None,
        key_positions=None,
    ):
        check_flash_call(self.flash_attention, return_attention_scores, attention_bias)
        query, value, key = as_inputs(self.compute_dtype, query=query, value=value, key=value if key is None else key)
        check_attention_shapes(query.shape, value.shape, key.shape)
        masks = as_masks(query_mask=query_mask, value_mask=value_mask, key_mask=key_mask, attention_mask=attention_mask)
        query_positions = as_positions("query_positions", query_positions, query.shape)
        key_positions = as_positions("key_positions", key_positions, key.shape)
        positions = self.positions_of(query, value, key_positions, query_positions, masks)
        bias, allowed = as_bias(attention_bias, self.scores_shape(query.shape, value.shape))
        mask = self._mask(query, value, value.shape, masks, use_causal_mask, positions, allowed)
        # What no query may read reaches no projection and no gradient.
        memory = self._prepare(value, key, used_keys(mask, len(value.shape) - 1), positions[1])
        context, weights, _ = self._flow(query, memory, mask, masks["query_mask"], positions, bias, training)
        return (context, weights) if return_attention_scores else context

    def positions_of(self, query, value, key_positions, query_positions, masks, cache_index=None):
        """Positions of queries and keys, where a scheme asks for them."""
        if not self.schemes:
            return query_positions, key_positions
        T, S = ops.shape(query)[-2], ops.shape(value)[-2]
        padding_masks = {name: mask for name, mask in masks.items() if name != "attention_mask"}
        if None not in (cache_index, key_positions) and query_positions is None:  # a query stands where its slot does
            slots = ops.arange(T, dtype="int32") + ops.cast(cache_index, "int32")
            return ops.take(key_positions, slots, axis=-1), key_positions
        counted = query_and_key_positions(T, S, cache_index, **padding_masks)
        given = (query_positions, key_positions)
        return tuple(count if each is None else each for count, each in zip(counted, given, strict=True))

    def _mask(self, query, value, value_shape, masks, use_causal_mask, positions, allowed, cache_index=None):
        """The one mask, which broadcasts to the scores, or `None`; `allowed` is what a bias allows."""
        return one_mask(
            query.shape,
            value_shape,
            self.scores_shape(query.shape, value_shape),
            masks,
            (ops.shape(query)[-2], ops.shape(value)[-2]),
            causal=use_causal_mask,
            position_masks=combined.masks(self.schemes, positions) + ([] if allowed is None else [allowed]),
            first=cache_index,
        )

    def _flow(self, query, memory, mask, query_mask, positions, bias, training):
        """Output, weights and the memory after these queries, by the kernel that fits."""
        query = zero_masked(query, mask, axis=-1)
        projected = self.project_query(query)
        schemes, has_heads = self.schemes, self.has_heads
        factor = self.score.factor(projected.shape[-1])
        by_positions = combined.bias(schemes, projected, positions, factor, has_heads)
        biases = [term for term in (bias, by_positions) if term is not None]
        adding = any(scheme.adds_bias for scheme in schemes)
        kernel = choose_kernel(self.score, self.alignment, schemes, self.dropout, self.flash_attention)
        context, weights, memory = kernel(
            combined.rotate_query(schemes, projected, positions[0], has_heads),
            memory,
            mask,
            score=self.score,
            alignment=self.alignment,
            dropout=self.dropout_layer,
            group=self.group,
            bias=sum(biases[1:], biases[0]) if biases else None,
            add_context=functools.partial(combined.add_context, schemes, positions, has_heads) if adding else None,
            training=training,
        )
        return self.project_context(context, query), weights, memory

    # === Shapes and config ===

    def compute_output_shape(self, query_shape, value_shape, key_shape=None):
        return (*query_shape[:-1], value_shape[-1])

    def compute_output_spec(
        self,
        query,
        value,
        key=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=False,
        attention_bias=None,
        query_positions=None,
        key_positions=None,
    ):
        check_mask_types(query_mask=query_mask, value_mask=value_mask, key_mask=key_mask, attention_mask=attention_mask)
        check_attention_shapes(query.shape, value.shape, (value if key is None else key).shape)
        context = keras.KerasTensor(self.compute_output_shape(query.shape, value.shape), dtype=self.compute_dtype)
        if not return_attention_scores:
            return context
        return context, keras.KerasTensor(self.weights_shape(query.shape, value.shape), dtype=self.compute_dtype)

    def weights_shape(self, query_shape, value_shape):
        """Shape of the attention weights that a call returns."""
        return self.scores_shape(query_shape, value_shape)

    def compute_mask(self, query, previous_mask):
        """The query's mask: the context has one position for each query."""
        return previous_mask

    def get_config(self):
        return {
            **super().get_config(),
            "score": config_of(self.score),
            "alignment": config_of(self.alignment),
            "dropout": self.dropout,
            "seed": self.seed,
            "position": config_of_scheme(self.position),
        }
