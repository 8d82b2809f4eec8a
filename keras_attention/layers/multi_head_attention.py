"""Multi-head attention: the four steps with one more axis, between learned projections."""

import keras
from keras import ops

from keras_attention import alignments, scores
from keras_attention.checks.arguments import (
    check_boolean,
    check_positive_integer,
    check_rate,
    check_seed,
    tuple_of_integers,
)
from keras_attention.checks.shapes import check_known_width, check_not_ragged
from keras_attention.layers.attention_layer import attend, build_part, check_one_by_one, check_stepwise
from keras_attention.layers.projection import make_projection, project
from keras_attention.ops.axes import attention_axes, fold_axes, fold_masks, fold_shapes, unfold_axes
from keras_attention.ops.caches import check_cache, mask_of_slots
from keras_attention.ops.flash_attention import check_flash_attention, flash_context
from keras_attention.ops.masks import (
    aligned_slots,
    as_mask,
    causal_mask,
    check_mask_types,
    check_masks,
    merge_masks,
    query_and_key_positions,
    window_mask,
    zero_masked,
)
from keras_attention.saving.dtype_policies import policy_at, with_policies_of_parts
from keras_attention.saving.lookup import config_of


@keras.saving.register_keras_serializable(package="keras_attention")
class MultiHeadAttention(keras.layers.Layer):
    """Attention in N projected subspaces, with any score and any alignment.

        query_n, key_n, value_n = query · W_n^Q, key · W_n^K, value · W_n^V        for each head n
        context_n = attention(query_n, key_n, value_n)
        output    = [context_1; ...; context_N] · W^O

    Takes the place of `keras.layers.MultiHeadAttention`: same arguments with the same meaning, same weights in the same
    order (query, key, gate, value, output) and the same numbers. It differs where Keras is wrong: a query with
    nothing to attend gets zero weights on every path, an explicit `query_mask` is honoured, a causal mask over fewer
    queries than keys lets the last query see the last key, NaN in padding stays there, and the symbolic shape of the
    weights is that of the tensor.

    Args:
        num_heads: Integer, number N of heads.
        key_dim: Integer, size H of a head of query and key.
        value_dim: Integer, size of a head of the value; `None` takes `key_dim`.
        dropout: Float in [0, 1), fraction of the weights dropped in training.
        use_bias: Boolean, whether the projections have biases.
        output_shape: Integer or tuple, features of the output; `None` takes those of the query.
        attention_axes: Integer or tuple, axes of the inputs over which attention runs; `None` takes all but the first
            and the last. The other axes are batch.
        sliding_window: Integer; a query attends only to keys fewer than this many positions away. `None`: to all.
            Positions count the real tokens of a row, so that its padding does not count, wherever it stands; the last
            query stands at the last key, with more queries than keys the first at the first. As many queries as keys
            are taken for one sequence where only one of their masks is given, so pass both in an attention of one
            sequence to another. An `attention_mask` moves no position.
        flash_attention: Boolean. `True` uses the backend's flash attention, without dropout, without the weights and
            only with the default score and alignment. `None` and `False` run the four steps.
        kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer,
            kernel_constraint, bias_constraint: Of all projections.
        use_gate: Boolean. Multiplies the context of each head by `sigmoid(query · W^G)` (Qiu et al., 2025).
        seed: Integer seed of the dropout and of an alignment that is named and draws, or `None`.
        score: A name ("additive", "bilinear", "concat", "dot", "scaled_dot") or a `Score`; all heads share its weights.
        alignment: A name ("softmax", "sparsemax", "linear_chain", ...: see `alignments.get`) or an `Alignment`.

    Call arguments:
        query: Float tensor of shape `(B, T, D_query)`. The tensors come one by one, as to Keras' layer, not in a list.
        value: Float tensor of shape `(B, S, D_value)`.
        key: Float tensor of shape `(B, S, D_key)`. Left out, the value is also the key.
        query_mask: Boolean tensor `(B, T)`, True = a real query. The implicit Keras mask of `query` is used when it is
            not given; masks get lost in plain arithmetic between layers, so pass them by hand when in doubt.
        value_mask, key_mask: Boolean tensors `(B, S)`, True = may be attended; as above.
        attention_mask: Boolean tensor `(T, S)`, `(B, T, S)` or `(B, N, T, S)`, broadcasting allowed.
        return_attention_scores: Boolean. Also return the attention weights (the name is the one of Keras).
        training: Boolean, whether dropout is active.
        use_causal_mask: Boolean. A query attends to its own and earlier positions.
        cache: Projected keys and values from `empty_cache` or `project`. The masks then speak of its S slots; with
            `cache_index`, `value_mask` and `key_mask` may also be `(B, T)` and speak of the new positions alone.
        cache_index: Integer or scalar integer tensor: the keys and values of `value` are written into the slots from
            `cache_index` on and the later slots stay out of sight. `None` reads the cache as it is and ignores `value`.
            An integer past the last slot is an error; the value of a tensor is not known, keep it below the last slot.

    Returns:
        `output` of shape `(B, T, D_query)`; with `return_attention_scores` also the weights `(B, N, T, S)` before
        dropout; with `cache` also the updated cache, last: `output, cache` or `output, weights, cache`.

    Raises:
        ValueError: If arguments, shapes or masks do not fit together.

    Example:
        >>> attention = MultiHeadAttention(num_heads=2, key_dim=5)
        >>> query, value = keras.ops.ones((2, 3, 7)), keras.ops.ones((2, 11, 13))
        >>> output, weights = attention(query, value, return_attention_scores=True)
        >>> output.shape, weights.shape
        ((2, 3, 7), (2, 2, 3, 11))

    References:
        Vaswani et al., 2017, section 3.2.2, arXiv:1706.03762.
        Qiu et al., 2025 (the gate), arXiv:2505.06708.
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        value_dim=None,
        dropout=0.0,
        use_bias=True,
        output_shape=None,
        attention_axes=None,
        sliding_window=None,
        flash_attention=None,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        kernel_regularizer=None,
        bias_regularizer=None,
        activity_regularizer=None,
        kernel_constraint=None,
        bias_constraint=None,
        use_gate=False,
        seed=None,
        score="scaled_dot",
        alignment="softmax",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.num_heads = check_positive_integer("num_heads", num_heads)
        self.key_dim = check_positive_integer("key_dim", key_dim)
        self.value_dim = self.key_dim if value_dim is None else check_positive_integer("value_dim", value_dim)
        self.dropout = check_rate("dropout", dropout)
        self.use_bias = check_boolean("use_bias", use_bias)
        # `output_shape` and `activity_regularizer` already mean something on a Keras layer.
        self._output_shape = tuple_of_integers("output_shape", output_shape, least=1)
        self._activity_regularizer = keras.regularizers.get(activity_regularizer)
        self.attention_axes = tuple_of_integers("attention_axes", attention_axes)
        if sliding_window is not None:
            sliding_window = check_positive_integer("sliding_window", sliding_window)
        self.sliding_window = sliding_window
        self.flash_attention = None if flash_attention is None else check_boolean("flash_attention", flash_attention)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self.kernel_constraint = keras.constraints.get(kernel_constraint)
        self.bias_constraint = keras.constraints.get(bias_constraint)
        self.use_gate = check_boolean("use_gate", use_gate)
        self.seed = check_seed(seed)
        self.score = scores.get(score)
        self.alignment = alignments.get(alignment, seed)
        if flash_attention:
            is_plain = type(self.score) is scores.ScaledDotScore and type(self.alignment) is alignments.Categorical
            check_flash_attention(is_plain, self.score, self.alignment, self.dropout)

    def __call__(self, query, *arguments, **options):
        check_one_by_one(self, query)
        return super().__call__(query, *arguments, **options)

    def build(self, query_shape, value_shape, key_shape=None):
        key_shape = key_shape or value_shape
        query_shape, value_shape, key_shape = fold_shapes(self.attention_axes, query_shape, value_shape, key_shape)
        for name, shape in (("query", query_shape), ("value", value_shape), ("key", key_shape)):
            check_known_width(name, shape)
        N, H, E = self.num_heads, self.key_dim, self.value_dim
        output_shape = self._output_shape or (query_shape[-1],)
        self.query_dense = self._projection("query", query_shape, (N, H))
        self.key_dense = self._projection("key", key_shape, (N, H))
        if self.use_gate:
            self.gate_dense = self._projection("gate", query_shape, (N, E), activation="sigmoid")
        self.value_dense = self._projection("value", value_shape, (N, E))
        self.output_dense = self._projection("attention_output", (*query_shape[:-1], N, E), output_shape, contracted=2)
        self.dropout_layer = keras.layers.Dropout(self.dropout, seed=self.seed, dtype=self.dtype_policy)
        batch_shape, T, S = query_shape[:-2], query_shape[-2], value_shape[-2]
        build_part(self.score, (*batch_shape, N, T, H), (*batch_shape, N, S, H))
        build_part(self.alignment, (*batch_shape, N, T, S))
        self.built = True

    @property
    def _by_rows(self):
        # Keras divides the loss of an activity regularizer by the first size of the output, which must be the batch's.
        return self._activity_regularizer is None

    def _projection(self, name, inputs_shape, output_shape, contracted=1, activation=None):
        return make_projection(
            inputs_shape,
            output_shape,
            contracted=contracted,
            by_rows=self._by_rows,
            use_bias=self.use_bias,
            initializers=(self.kernel_initializer, self.bias_initializer),
            activation=activation,
            kernel_regularizer=self.kernel_regularizer,
            bias_regularizer=self.bias_regularizer,
            activity_regularizer=self._activity_regularizer,
            kernel_constraint=self.kernel_constraint,
            bias_constraint=self.bias_constraint,
            dtype=policy_at(self.dtype_policy, f"{self.path}/{name}"),
            name=name,
        )

    def _project(self, projection, inputs, contracted=1):
        return project(projection, inputs, contracted=contracted, by_rows=self._by_rows)

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
        cache=None,
        cache_index=None,
    ):
        key = value if key is None else key
        check_not_ragged(query=query, value=value, key=key)
        query_mask, value_mask = as_mask(query_mask, "query_mask"), as_mask(value_mask, "value_mask")
        key_mask, attention_mask = as_mask(key_mask, "key_mask"), as_mask(attention_mask, "attention_mask")
        fold_shapes(self.attention_axes, query.shape, value.shape, key.shape)
        axes = attention_axes(self.attention_axes, len(query.shape))
        if cache is not None:
            check_stepwise(self.alignment)
        check_cache(query.shape, value.shape, axes, cache, cache_index, self.num_heads, self.key_dim, self.value_dim)
        if return_attention_scores and self.flash_attention:
            raise ValueError(
                "Flash attention never holds the attention weights, so that they cannot be returned. "
                "Make the layer without `flash_attention=True`, or leave `return_attention_scores` out."
            )
        if cache is None:
            check_masks(query.shape, value.shape, None, query_mask=query_mask, value_mask=value_mask, key_mask=key_mask)
        query_sizes, key_sizes = ops.shape(query)[:-1], ops.shape(value)[:-1]
        query, key, value = (fold_axes(tensor, axes) for tensor in (query, key, value))
        padding_masks = {"query_mask": query_mask, "value_mask": value_mask, "key_mask": key_mask}
        masks = fold_masks(axes, query_sizes, key_sizes, attention_mask, **padding_masks)
        if cache is None:
            mask = self._mask(query, value, masks, use_causal_mask)
            memory = self._project_memory(value, key, mask)
        else:
            memory = cache
            if cache_index is not None:
                for name in ("value_mask", "key_mask"):
                    masks[name] = mask_of_slots(name, masks[name], value.shape[1], cache, cache_index)
                memory = self._update(cache, cache_index, value, key, masks["value_mask"])
            mask = self._mask(query, memory["value"][:, 0], masks, use_causal_mask, cache_index)
        query = zero_masked(query, mask, axis=-1)
        output, weights = self._attend(query, memory, mask, training)
        outputs = [unfold_axes(output, axes, query_sizes)]
        if return_attention_scores:
            lengths = (*(query_sizes[axis] for axis in axes), *(key_sizes[axis] for axis in axes))
            outputs.append(ops.reshape(weights, (*ops.shape(weights)[:-2], *lengths)) if len(axes) > 1 else weights)
        if cache is not None:
            outputs.append(memory)
        return tuple(outputs) if len(outputs) > 1 else outputs[0]

    def empty_cache(self, batch_size, length):
        """Cache with `length` free slots: {"key": (B, N, length, H), "value": (B, N, length, E)}, zeros."""
        sizes, axes = {"key": self.key_dim, "value": self.value_dim}, (batch_size, self.num_heads, length)
        return {name: ops.zeros((*axes, size), self.compute_dtype) for name, size in sizes.items()}

    def project(self, value, key=None, value_mask=None):
        """Cache of the projected keys and values of a memory `(B, S, D)` that does not change, to be read many times.

        Positions that `value_mask (B, S)` excludes are zeroed before the projection; pass the mask again on reading.
        """
        if not self.built:
            raise ValueError(
                "The layer must be built before it can project. Call it once, or `build(query_shape, value_shape)`."
            )
        mask = None if value_mask is None else ops.expand_dims(as_mask(value_mask, "value_mask"), -2)
        return self._project_memory(value, value if key is None else key, mask)

    def _mask(self, query, value, masks, use_causal_mask, cache_index=None):
        """One mask that broadcasts to the scores `(B, N, T, S)`, or None."""
        scores_shape = (*query.shape[:-2], self.num_heads, query.shape[-2], value.shape[-2])
        check_masks(query.shape, value.shape, scores_shape, **masks)
        T, S = ops.shape(query)[-2], ops.shape(value)[-2]
        query_slots, key_slots = aligned_slots(T, S, cache_index)
        position_masks = []
        if use_causal_mask:
            position_masks.append(causal_mask(query_slots, key_slots))
        elif cache_index is not None:
            position_masks.append(causal_mask(query_slots[-1:], key_slots))  # only the slots that are filled
        if self.sliding_window is not None:
            padding_masks = {name: mask for name, mask in masks.items() if name != "attention_mask"}
            positions = query_and_key_positions(T, S, cache_index, **padding_masks)
            position_masks.append(window_mask(*positions, self.sliding_window))
        return merge_masks(len(query.shape) + 1, position_masks=position_masks, **masks)

    def _project_memory(self, value, key, mask):
        value, key = zero_masked(value, mask), zero_masked(key, mask)
        # The heads move left of the positions once, here, so that reading the memory needs no transposition.
        return {
            "key": ops.moveaxis(self._project(self.key_dense, key), -2, -3),  # (B, N, S, H)
            "value": ops.moveaxis(self._project(self.value_dense, value), -2, -3),  # (B, N, S, E)
        }

    def _update(self, cache, cache_index, value, key, value_mask):
        mask = None
        if value_mask is not None:  # the mask speaks of all slots
            written = ops.slice(value_mask, (0, cache_index), (ops.shape(value_mask)[0], ops.shape(value)[1]))
            mask = ops.expand_dims(written, -2)
        new = self._project_memory(value, key, mask)
        return {
            name: ops.slice_update(cache[name], (0, 0, cache_index, 0), ops.cast(new[name], cache[name].dtype))
            for name in ("key", "value")
        }

    def _attend(self, query, memory, mask, training):
        """Steps one to four on the heads: `output (B, T, D)`, `weights (B, N, T, S)` or None with flash attention."""
        gate = self._project(self.gate_dense, query) if self.use_gate else None  # (B, T, N, E)
        query = ops.moveaxis(self._project(self.query_dense, query), -2, -3)  # (B, N, T, H)
        if self.flash_attention:
            context, weights = flash_context(query, memory["key"], memory["value"], mask), None
        else:
            context, weights = attend(
                query,
                memory["key"],
                memory["value"],
                mask,
                score=self.score,
                alignment=self.alignment,
                dropout=self.dropout_layer,
                training=training,
            )
        context = ops.moveaxis(context, -3, -2)  # (B, T, N, E)
        return self._project(self.output_dense, context if gate is None else context * gate, contracted=2), weights

    def compute_output_shape(self, query_shape, value_shape, key_shape=None):
        fold_shapes(self.attention_axes, query_shape, value_shape, key_shape or value_shape)
        return (*query_shape[:-1], *(self._output_shape or (query_shape[-1],)))

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
        cache=None,
        cache_index=None,
    ):
        check_mask_types(query_mask=query_mask, value_mask=value_mask, key_mask=key_mask, attention_mask=attention_mask)
        output_shape = self.compute_output_shape(query.shape, value.shape, None if key is None else key.shape)
        outputs = [keras.KerasTensor(output_shape, dtype=self.compute_dtype)]
        if return_attention_scores:
            axes = attention_axes(self.attention_axes, len(query.shape))
            batch_shape = (size for axis, size in enumerate(query.shape[:-1]) if axis not in axes)
            T = (query.shape[axis] for axis in axes)
            S = (value.shape[axis] for axis in axes) if cache is None else (cache["value"].shape[-2],)
            outputs.append(keras.KerasTensor((*batch_shape, self.num_heads, *T, *S), dtype=self.compute_dtype))
        if cache is not None:
            outputs.append({name: keras.KerasTensor(slots.shape, dtype=slots.dtype) for name, slots in cache.items()})
        return tuple(outputs) if len(outputs) > 1 else outputs[0]

    def compute_mask(self, query, previous_mask):
        """The query's mask: the output has one position for each query."""
        return previous_mask

    def get_config(self):
        return {
            **with_policies_of_parts(super().get_config(), self),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
            "dropout": self.dropout,
            "use_bias": self.use_bias,
            "output_shape": self._output_shape,
            "attention_axes": self.attention_axes,
            "sliding_window": self.sliding_window,
            "flash_attention": self.flash_attention,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
            "kernel_regularizer": keras.regularizers.serialize(self.kernel_regularizer),
            "bias_regularizer": keras.regularizers.serialize(self.bias_regularizer),
            "activity_regularizer": keras.regularizers.serialize(self._activity_regularizer),
            "kernel_constraint": keras.constraints.serialize(self.kernel_constraint),
            "bias_constraint": keras.constraints.serialize(self.bias_constraint),
            "use_gate": self.use_gate,
            "seed": self.seed,
            "score": config_of(self.score),
            "alignment": config_of(self.alignment),
        }
