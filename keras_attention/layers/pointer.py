"""Pointer: attention that stops after its first step, the scores themselves are the output."""

import keras
from keras import ops

from keras_attention import scores
from keras_attention.checks.arguments import check_number
from keras_attention.checks.classes import comes_first
from keras_attention.checks.shapes import check_attention_shapes
from keras_attention.layers.attention_inputs import as_inputs, as_masks, one_mask, zeroed_memory
from keras_attention.layers.attention_layer import AttentionLayer
from keras_attention.layers.flow import build_part, check_built, check_memory, check_scores, memory_of
from keras_attention.ops.dtypes import float32_or_better
from keras_attention.ops.masks import check_mask_types, used_keys, zero_masked
from keras_attention.ops.softmax import logits_for
from keras_attention.saving.lookup import config_of, from_config


def clip_scores(scores, clipping):
    """`clipping · tanh(scores)`: logits within ±`clipping`, so that no choice becomes certain early in training."""
    return clipping * ops.tanh(scores)


@keras.saving.register_keras_serializable(package="keras_attention")
class Pointer(keras.layers.Layer):
    """Logits of a query over the positions of a source: the output "points" at one of the inputs.

        query[t]     = glimpse(query, value)[t]                      with a glimpse
        scores[t, s] = score(query[t], value[s])
        logits[t, s] = tanh_clipping · tanh(scores[t, s])            with clipping, else scores[t, s]

    and LOWEST of `ops/softmax.py`, -1e30, where a mask forbids to point. In the paper `query` is d_i, `value` is e_j and
    `logits` is u^i_j. There are as many classes as there are positions, so the same weights serve inputs of any length.
    Under a policy that computes in float16 it is -65504, and logits are bounded to half of that: a next layer, which casts
    them to float16, then meets numbers, and the softmax of a masked position is exactly 0 in float32 and in float16.
    Use a loss with `from_logits=True`; `SmoothedCrossentropy` spreads its smoothing over the allowed positions only.

    Args:
        score: A name of `scores.get` or a `Score`.
        tanh_clipping: Number above 0, the largest size of a logit (10 in the paper on combinatorial optimization), or
            `None`.
        glimpse: An attention layer called `(query, value)`, such as `SoftAttention("additive")` or a
            `MultiHeadAttention`, whose context takes the place of the query before it points; or `None`.

    Call arguments:
        query: Float tensor of shape `(B, ..., T, D)`.
        value: Float tensor of shape `(B, ..., S, E)`, the positions to point at.
        query_mask: Boolean tensor `(B, ..., T)`, True = a real query. The implicit Keras mask of `query` is used when it
            is not given.
        value_mask: Boolean tensor `(B, ..., S)`, True = may be pointed at; as above.
        attention_mask: Boolean tensor `(T, S)`, `(B, T, S)` or any shape that broadcasts to the logits: for example
            what each query may choose of, without what was chosen before.
        training: Boolean, for the glimpse.

    Returns:
        Logits of shape `(B, ..., T, S)`, float32 or better. A query that may point at nothing has the lowest logit everywhere.
        The mask of the query is passed on.

    Raises:
        ValueError: If shapes or masks do not fit together, a name is unknown or the clipping is no number above 0.
        TypeError: If the glimpse is no layer.

    Example:
        >>> pointer = Pointer(tanh_clipping=10.0)
        >>> query, value = keras.ops.ones((2, 3, 7)), keras.ops.ones((2, 5, 11))
        >>> pointer(query, value).shape
        (2, 3, 5)

    References:
        Vinyals, Fortunato and Jaitly, 2015, section 2.3, arXiv:1506.03134.
        Bello et al., 2016, sections 3 and A.1 (glimpse, clipping), arXiv:1611.09940.
    """

    def __init__(self, score="additive", tanh_clipping=None, glimpse=None, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.score = scores.get(score)
        self.tanh_clipping = check_clipping(tanh_clipping)
        self.glimpse = get_glimpse(glimpse)

    def build(self, query_shape, value_shape):
        check_attention_shapes(query_shape, value_shape, value_shape)
        if self.glimpse is not None:
            build_part(self.glimpse, query_shape, value_shape)
            query_shape = self.glimpse.compute_output_shape(query_shape, value_shape)
        build_part(self.score, query_shape, value_shape)
        self.built = True

    def prepare(self, value, mask=None):
        """The memory of `value (B, ..., S, E)` under its `mask (B, ..., S)`, for `read` to read many times."""
        check_built(self)
        (value,) = as_inputs(self.compute_dtype, value=value)
        mask, value = zeroed_memory(mask, value)
        memory = memory_of(key=self.score.prepare(value), mask=mask)
        if is_read_as_called(self.glimpse):
            memory["glimpse"] = self.glimpse.prepare(value, mask=mask)
        elif self.glimpse is not None:
            memory["value"] = value
        return memory

    def read(self, query, memory, query_mask=None, attention_mask=None, training=None):
        """Logits of a query over what `prepare` returned, as a call gives them."""
        check_memory(memory, "key")
        (query,) = as_inputs(self.compute_dtype, query=query)
        masks = as_masks(query_mask=query_mask, key_mask=memory.get("mask"), attention_mask=attention_mask)
        mask = self._mask(query, memory["key"], masks)
        query = zero_masked(query, mask, axis=-1)
        given = {"query_mask": query_mask, "attention_mask": attention_mask, "training": training}
        if "glimpse" in memory:
            query = self.glimpse.read(query, memory["glimpse"], **given)
        elif self.glimpse is not None:
            query = self.glimpse(query, memory["value"], value_mask=memory.get("mask"), **given)
        logits = check_scores(self.score, self.score.compare(query, memory["key"]), query, memory["key"])
        if self.tanh_clipping is not None:
            logits = clip_scores(logits, self.tanh_clipping)
        return logits_for(self.compute_dtype, logits, mask)  # (B, ..., T, S)

    def call(self, query, value, query_mask=None, value_mask=None, attention_mask=None, training=None):
        query, value = as_inputs(self.compute_dtype, query=query, value=value)
        check_attention_shapes(query.shape, value.shape, value.shape)
        masks = as_masks(query_mask=query_mask, value_mask=value_mask, attention_mask=attention_mask)
        used = used_keys(self._mask(query, value, masks), len(value.shape) - 1)
        return self.read(query, self.prepare(value, used), masks["query_mask"], masks["attention_mask"], training)

    def _mask(self, query, value, masks):
        scores_shape = (*query.shape[:-1], value.shape[-2])
        return one_mask(query.shape, value.shape, scores_shape, masks, (ops.shape(query)[-2], ops.shape(value)[-2]))

    def compute_output_shape(self, query_shape, value_shape):
        return (*query_shape[:-1], value_shape[-2])

    def compute_output_spec(self, query, value, query_mask=None, value_mask=None, attention_mask=None, training=None):
        check_mask_types(query_mask=query_mask, value_mask=value_mask, attention_mask=attention_mask)
        check_attention_shapes(query.shape, value.shape, value.shape)
        dtype = float32_or_better(self.compute_dtype)
        return keras.KerasTensor(self.compute_output_shape(query.shape, value.shape), dtype=dtype)

    def compute_mask(self, query, previous_mask):
        """The query's mask: there is one row of logits for each query."""
        return previous_mask

    def get_config(self):
        return {
            **super().get_config(),
            "score": config_of(self.score),
            "tanh_clipping": self.tanh_clipping,
            "glimpse": None if self.glimpse is None else config_of(self.glimpse),
        }


def check_clipping(value):
    """`value` as a `float`, after checking that it is a finite number above 0; `None` stays."""
    words = "a finite number above 0, or `None` for no clipping"
    return None if value is None else check_number("tanh_clipping", value, words, lambda value: value > 0)


def is_read_as_called(glimpse):
    """Whether `read` gives all that a call gives: not the call of a subclass, nor the loss of an activity regularizer."""
    return (
        isinstance(glimpse, AttentionLayer)
        and not comes_first(type(glimpse), "call", "prepare")
        and glimpse.activity_regularizer is None
    )


def get_glimpse(glimpse):
    """The layer that `glimpse` is, or the layer of its config."""
    if isinstance(glimpse, dict):
        glimpse = from_config(glimpse)
    if glimpse is not None and not isinstance(glimpse, keras.layers.Layer):
        raise TypeError(
            f"`glimpse` must be an attention layer, or `None`. Received: {glimpse!r} of type {type(glimpse).__name__}. "
            'Pass for example `SoftAttention(score="additive")`.'
        )
    return glimpse
