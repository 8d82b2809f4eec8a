"""Multi-head attention: the flow of every attention with one more axis, between learned projections."""

import keras
from keras import ops

from keras_attention.checks.arguments import check_boolean, check_positive_integer, tuple_of_integers
from keras_attention.checks.shapes import check_known_width, check_not_ragged
from keras_attention.layers.attention_inputs import as_masks
from keras_attention.layers.attention_layer import AttentionLayer
from keras_attention.layers.axes import FoldedAxes, check_last_axis, fold_shapes, folded_weights_shape
from keras_attention.layers.caches import check_cache, check_counted, empty_slots, read_cache, with_state
from keras_attention.layers.flow import build_part, build_scheme, choose_kernel
from keras_attention.layers.grouped_heads import heads_per_group
from keras_attention.layers.one_by_one import check_one_by_one
from keras_attention.layers.projection import make_norm, make_projection, project
from keras_attention.ops.masks import as_mask, check_mask_types
from keras_attention.positions import SlidingWindow
from keras_attention.saving.dtype_policies import with_policies_of_parts


@keras.saving.register_keras_serializable(package="keras_attention")
class MultiHeadAttention(AttentionLayer):
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
        score: A name of `scores.get` or a `Score`; all heads share its weights.
        alignment: A name of `alignments.get` or an `Alignment`.
        position: A name of `positions.get` or a `PositionScheme`: what acts by the positions of query and key. `None`: nothing.
        num_key_value_heads: Integer K, number of heads of key and value, which divides N. Each is read by N / K heads of the
            query that follow each other (grouped-query attention; with one head multi-query attention), as in
            `keras.layers.GroupQueryAttention`, whose weights fit. A cache holds these K heads alone. `None`: N.
        use_query_key_norm: Boolean. Divides each head of query and key by its root mean square and multiplies it by a learned
            gain `(H,)`, one for the queries and one for the keys, before positions act on them (Qwen3, Gemma 3).

    Call arguments:
        query: Float tensor of shape `(B, T, D_query)`. The tensors come one by one, as to Keras' layer, not in a list.
        value: Float tensor of shape `(B, S, D_value)`.
        key: Float tensor of shape `(B, S, D_key)`. Left out, the value is also the key.
        query_mask: Boolean tensor `(B, T)`, True = a real query. The implicit Keras mask of `query` is used when it is
            not given; masks get lost in plain arithmetic between layers, so pass them by hand when in doubt.
        value_mask, key_mask: Boolean tensors `(B, S)`, True = may be attended; as above.
        attention_mask: Boolean tensor `(T, S)`, `(B, T, S)` or `(B, N, T, S)`, broadcasting allowed.
        attention_bias: Float tensor of such a shape, which is added to the scores; -inf forbids, as a mask does.
        query_positions, key_positions: int32 tensors `(B or 1, T)` and `(B or 1, S)`, where queries and keys stand for
            `position` and `sliding_window`. `None`: the real ones are counted. Several attention axes count as one.
        return_attention_scores: Boolean. Also return the attention weights (the name is the one of Keras).
        training: Boolean, whether dropout is active.
        use_causal_mask: Boolean. A query attends to its own and earlier positions.
        cache: A memory from `empty_cache`, `project` or `prepare`. The masks then speak of its S slots; with
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
        Shazeer, 2019 (multi-query attention), arXiv:1911.02150.
        Ainslie et al., 2023 (grouped-query attention), arXiv:2305.13245.
        Henry et al., 2020, arXiv:2010.04245; Qwen Team, 2025, arXiv:2505.09388 (query and key normalization).
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
        position=None,
        num_key_value_heads=None,
        use_query_key_norm=False,
        **kwargs,
    ):
        super().__init__(score=score, alignment=alignment, dropout=dropout, seed=seed, position=position, **kwargs)
        self.num_heads = check_positive_integer("num_heads", num_heads)
        self.key_dim = check_positive_integer("key_dim", key_dim)
        self.value_dim = self.key_dim if value_dim is None else check_positive_integer("value_dim", value_dim)
        self.use_bias = check_boolean("use_bias", use_bias)
        # `output_shape` and `activity_regularizer` already mean something on a Keras layer.
        self._output_shape = tuple_of_integers("output_shape", output_shape, least=1)
        self._activity_regularizer = keras.regularizers.get(activity_regularizer)
        self.attention_axes = tuple_of_integers("attention_axes", attention_axes)
        if sliding_window is not None:
            sliding_window = check_positive_integer("sliding_window", sliding_window)
        self.sliding_window = sliding_window
        if sliding_window is not None:
            self.schemes.append(SlidingWindow(sliding_window))
        self.flash_attention = None if flash_attention is None else check_boolean("flash_attention", flash_attention)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self.kernel_constraint = keras.constraints.get(kernel_constraint)
        self.bias_constraint = keras.constraints.get(bias_constraint)
        self.use_gate = check_boolean("use_gate", use_gate)
        self.group = heads_per_group(self.num_heads, num_key_value_heads)
        self.num_key_value_heads = None if num_key_value_heads is None else self.num_heads // self.group
        self.use_query_key_norm = check_boolean("use_query_key_norm", use_query_key_norm)
        choose_kernel(self.score, self.alignment, self.schemes, self.dropout, self.flash_attention)  # or says why not

    def __call__(self, query, *arguments, **options):
        check_one_by_one(self, query)
        return keras.layers.Layer.__call__(self, query, *arguments, **options)

    def build(self, query_shape, value_shape, key_shape=None):
        key_shape = key_shape or value_shape
        query_shape, value_shape, key_shape = fold_shapes(self.attention_axes, query_shape, value_shape, key_shape)
        for name, shape in (("query", query_shape), ("value", value_shape), ("key", key_shape)):
            check_known_width(name, shape)
        N, K, H, E = self.num_heads, self.num_heads // self.group, self.key_dim, self.value_dim
        output_shape = self._output_shape or (query_shape[-1],)
        self.query_dense = make_projection(self, "query", query_shape, (N, H))
        self.key_dense = make_projection(self, "key", key_shape, (K, H))
        if self.use_gate:
            self.gate_dense = make_projection(self, "gate", query_shape, (N, E), activation="sigmoid")
        self.value_dense = make_projection(self, "value", value_shape, (K, E))
        self.output_dense = make_projection(
            self, "attention_output", (*query_shape[:-1], N, E), output_shape, contracted=2
        )
        batch_shape, T, S = query_shape[:-2], query_shape[-2], value_shape[-2]
        if self.use_query_key_norm:
            self.query_norm, self.key_norm = make_norm(self, "query_norm", H), make_norm(self, "key_norm", H)
        rows = None if T is None else self.group * T
        build_part(self.score, (*batch_shape, K, rows, H), (*batch_shape, K, S, H))
        build_part(self.alignment, (*batch_shape, N, T, S))
        for scheme in self.schemes:
            build_scheme(scheme, (None, N, T, H))
        self.built = True

    @property
    def by_rows(self):
        """Whether a projection gets `(B·T, ...)`: not where its outputs are regularized.

        Keras divides the loss of an activity regularizer by the first size of the output, which must be the batch's.
        """
        return self._activity_regularizer is None

    # === Projections around the flow ===

    has_heads = True

    def scores_shape(self, query_shape, value_shape):
        return (*query_shape[:-2], self.num_heads, query_shape[-2], value_shape[-2])

    def value_shape(self, memory):
        return (*memory["value"].shape[:-3], *memory["value"].shape[-2:])

    def project_memory(self, value, key):
        # The heads move left of the positions once, here, so that reading the memory needs no transposition.
        key = project(self, self.key_dense, key)  # (B, S, K, H)
        key = self.key_norm(key) if self.use_query_key_norm else key
        value = project(self, self.value_dense, value)
        return ops.moveaxis(value, -2, -3), ops.moveaxis(key, -2, -3)  # (B, K, S, E), (B, K, S, H)

    def project_query(self, query):
        query = project(self, self.query_dense, query)
        query = self.query_norm(query) if self.use_query_key_norm else query
        return ops.moveaxis(query, -2, -3)  # (B, N, T, H)

    def project_context(self, context, query):
        context = ops.moveaxis(context, -3, -2)  # (B, T, N, E)
        if self.use_gate:
            context = context * project(self, self.gate_dense, query)
        return project(self, self.output_dense, context, contracted=2)

    # === Calls ===

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
        attention_bias=None,
        query_positions=None,
        key_positions=None,
    ):
        key = value if key is None else key
        check_not_ragged(query=query, value=value, key=key)
        masks = as_masks(query_mask=query_mask, value_mask=value_mask, key_mask=key_mask, attention_mask=attention_mask)
        axes = FoldedAxes(self.attention_axes, query, value, key)
        check_cache(self, query.shape, value.shape, axes.axes, cache, cache_index)
        options = {
            "attention_bias": axes.fold_pairs("attention_bias", attention_bias),
            "use_causal_mask": use_causal_mask,
            "return_attention_scores": return_attention_scores,
            "training": training,
        }
        if cache is not None:
            check_counted(cache_index, query_positions, key_positions)
            options |= {"query_positions": query_positions}
            return read_cache(self, query, value, key, cache, cache_index, masks, options)
        query, value, key = map(axes.fold, (query, value, key))
        options |= {"query_positions": query_positions, "key_positions": key_positions}
        outputs = super().call(query, value, key, **axes.fold_masks(**masks), **options)
        if not return_attention_scores:
            return axes.unfold(outputs)
        output, weights = outputs
        return axes.unfold(output), axes.unfold_weights(weights)

    def prepare(self, value, key=None, mask=None, positions=None):
        check_last_axis(self.attention_axes, value)
        return super().prepare(value, key, mask, positions)

    def empty_cache(self, batch_size, length):
        """Cache with `length` free slots: {"key": (B, K, length, H), "value": (B, K, length, E)}, zeros.

        A key has the width to which the score projects it, where it does so. An alignment that goes on from query to query,
        such as `Monotonic`, keeps its state under "alignment".
        """
        return with_state(self, empty_slots(self, batch_size, length))

    def project(self, value, key=None, value_mask=None):
        """A memory `(B, S, D)` that does not change, as a cache: `prepare` under its first name.

        It holds what `value_mask (B, S)` says, and the state of an alignment that goes on from query to query.
        """
        return with_state(self, self.prepare(value, key, as_mask(value_mask, "value_mask")))

    # === Shapes and config ===

    def compute_output_shape(self, query_shape, value_shape, key_shape=None):
        fold_shapes(self.attention_axes, query_shape, value_shape, key_shape or value_shape)
        return (*query_shape[:-1], *(self._output_shape or (query_shape[-1],)))

    def weights_shape(self, query_shape, value_shape):
        return folded_weights_shape(self.attention_axes, self.num_heads, query_shape, value_shape)

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
        attention_bias=None,
        query_positions=None,
        key_positions=None,
    ):
        check_mask_types(query_mask=query_mask, value_mask=value_mask, key_mask=key_mask, attention_mask=attention_mask)
        output_shape = self.compute_output_shape(query.shape, value.shape, None if key is None else key.shape)
        outputs = [keras.KerasTensor(output_shape, dtype=self.compute_dtype)]
        if return_attention_scores:
            shape = self.weights_shape(query.shape, value.shape if cache is None else self.value_shape(cache))
            outputs.append(keras.KerasTensor(shape, dtype=self.compute_dtype))
        if cache is not None:
            outputs.append(keras.tree.map_structure(lambda slots: keras.KerasTensor(slots.shape, slots.dtype), cache))
        return tuple(outputs) if len(outputs) > 1 else outputs[0]

    def get_config(self):
        return {
            **with_policies_of_parts(super().get_config(), self),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
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
            "num_key_value_heads": self.num_key_value_heads,
            "use_query_key_norm": self.use_query_key_norm,
        }
