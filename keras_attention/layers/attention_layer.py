"""The flow of every attention layer: score, alignment, combine; one base for all of them."""

import keras
from keras import ops

from keras_attention import alignments, scores
from keras_attention.checks.arguments import check_rate, check_seed
from keras_attention.checks.shapes import check_attention_shapes, check_not_ragged, check_returned
from keras_attention.ops.dtypes import as_floats
from keras_attention.ops.masks import (
    aligned_slots,
    as_mask,
    causal_mask,
    check_mask_types,
    check_masks,
    merge_masks,
    zero_masked,
)
from keras_attention.saving.lookup import config_of


def attend(query, key, value, mask, *, score, alignment, dropout, training):
    """The four steps of attention: `context[t] = sum over s of weights[t, s] · value[s]`.

    Args:
        query, key, value: `(..., T, D)`, `(..., S, D)`, `(..., S, E)`.
        mask: Boolean, broadcasts to `(..., T, S)`, or `None`.
        score, alignment, dropout: Layers of steps one, two and of the dropout on the weights.

    Returns:
        `context (..., T, E)` and the weights `(..., T, S)` before dropout, both in the type of the value.
    """
    scores = check_scores(score, score(query, key), query, key)  # (..., T, S)
    weights = alignment(scores, mask=mask, training=training)
    weights = ops.cast(check_weights(alignment, weights, scores), value.dtype)  # (..., T, S)
    context = ops.einsum("...ts,...se->...te", dropout(weights, training=training), value)  # (..., T, E)
    return context, weights


def check_scores(score, scores, query, key):
    """`scores`, after checking that a score, which may be a user's, made one for each query and key."""
    check_returned(score, "scores of shape (..., T, S)", scores.shape, (*query.shape[:-1], key.shape[-2]))
    return scores


def check_weights(alignment, weights, scores):
    """`weights`, after checking that an alignment, which may be a user's, made one for each of the scores."""
    check_returned(alignment, "weights of the shape of the scores", weights.shape, scores.shape)
    return weights


def masked_inputs(query, value, key, use_causal_mask=False, *, dtype, **masks):
    """The inputs of an attention, checked, and their one mask.

    Args:
        query, value, key: `(B, ..., T, D)`, `(B, ..., S, E)`, `(B, ..., S, D)`.
        use_causal_mask: Boolean.
        dtype: Compute dtype of the layer.
        **masks: `query_mask`, `value_mask`, `key_mask` and `attention_mask`, of any type or `None`.

    Returns:
        `(query, value, key, mask)`, with zeros where the mask never looks. The mask broadcasts to `(B, ..., T, S)`, or is
        `None`.
    """
    check_not_ragged(query=query, value=value, key=key)
    query, value, key = (as_floats(tensor, dtype) for tensor in (query, value, key))
    check_attention_shapes(query.shape, value.shape, key.shape)
    masks = {name: as_mask(mask, name) for name, mask in masks.items()}
    check_masks(query.shape, value.shape, (*query.shape[:-1], value.shape[-2]), **masks)
    T, S = ops.shape(query)[-2], ops.shape(value)[-2]
    position_masks = [causal_mask(*aligned_slots(T, S))] if use_causal_mask else []
    mask = merge_masks(len(query.shape), position_masks=position_masks, **masks)
    return zero_masked(query, mask, axis=-1), zero_masked(value, mask), zero_masked(key, mask), mask


def check_stepwise(alignment):
    """Raises unless an alignment may be computed for one query after the other, as decoding with a cache does."""
    if keras.tree.flatten(alignment.initial_state((1, 1))):  # no cache holds the state of an alignment yet
        raise ValueError(
            f"The alignment {type(alignment).__name__} has a state, which no cache holds. Call the attention without a "
            "cache, or take another alignment."
        )


def build_part(part, *shapes):
    """Builds the score or the alignment of an attention layer."""
    if part.built:
        raise ValueError(
            f"A score or alignment belongs to one attention layer. Received {part.name!r}, which is built already: "
            "Keras could not save what two layers share. Pass a new one to each layer."
        )
    part.build(*shapes)


def one_by_one(layer, query, value, key, options):
    """The call `[query, value]` or `[query, value, key]` of `keras.layers.Attention` as `(query, value, key)`, `options`.

    The list `mask` in `options` becomes `query_mask`, `value_mask` and `key_mask`. Another call stays as it is.
    """
    name = type(layer).__name__
    if not isinstance(query, list | tuple):
        if value is None:
            raise ValueError(f"{name} is called with `(query, value)` or `[query, value]`. Received a query alone.")
        return (query, value, key), options
    if value is not None or key is not None:
        raise ValueError(f"After a list of tensors {name} takes keywords only. Pass the list of masks as `mask=[...]`.")
    masks = options.get("mask")
    for what, values in (("tensors", query), ("masks", masks)):
        if values is not None and not (isinstance(values, list | tuple) and len(values) in (2, 3)):
            received = f"{len(values)}" if isinstance(values, list | tuple) else f"one of shape {tuple(values.shape)}"
            raise ValueError(
                f"{name} takes a list of two or three {what}, of query, value and key. Received {received}."
            )
    named = dict(zip(("query_mask", "value_mask", "key_mask"), masks or (), strict=False))
    if twice := sorted(set(named) & set(options)):
        raise ValueError(
            f"{name} received {', '.join(twice)} twice: alone and in the list `mask`. Pass one of the two."
        )
    options = {option: value for option, value in options.items() if option != "mask"}
    return (*query, None)[:3], {**named, **options}


def check_one_by_one(layer, query):
    """Raises for a list of tensors in place of the query."""
    if isinstance(query, list | tuple):
        raise ValueError(
            f"{type(layer).__name__} takes its tensors one by one, `(query, value, key=None)`, as "
            f"`keras.layers.MultiHeadAttention` does. Received a list of {len(query)}: call it with `*tensors`."
        )


class AttentionLayer(keras.layers.Layer):
    """Base class of the single-head attention layers: the flow, the masks, the shapes.

    A subclass gives it a score, an alignment, or another split of the memory. See `SoftAttention`. Every one can be called
    as `keras.layers.Attention` is, too.
    """

    def __init__(self, score="scaled_dot", alignment="softmax", dropout=0.0, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.score = scores.get(score)
        self.alignment = alignments.get(alignment, seed)
        self.dropout = check_rate("dropout", dropout)
        self.seed = check_seed(seed)
        self.dropout_layer = keras.layers.Dropout(self.dropout, seed=self.seed, dtype=self.dtype_policy)

    def __call__(self, query, value=None, key=None, *arguments, **options):
        # The one way into the layer: eager or symbolic, built or not.
        tensors, options = one_by_one(self, query, value, key, options)
        return super().__call__(*tensors, *arguments, **options)

    def build(self, query_shape, value_shape, key_shape=None):
        key_shape = key_shape or value_shape
        check_attention_shapes(query_shape, value_shape, key_shape)
        build_part(self.score, query_shape, key_shape)
        build_part(self.alignment, self.score.compute_output_shape(query_shape, key_shape))
        self.built = True

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
    ):
        query, value, key, mask = masked_inputs(
            query,
            value,
            value if key is None else key,
            use_causal_mask,
            dtype=self.compute_dtype,
            query_mask=query_mask,
            value_mask=value_mask,
            key_mask=key_mask,
            attention_mask=attention_mask,
        )
        context, weights = attend(
            query,
            key,
            value,
            mask,
            score=self.score,
            alignment=self.alignment,
            dropout=self.dropout_layer,
            training=training,
        )
        return (context, weights) if return_attention_scores else context

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
    ):
        check_mask_types(query_mask=query_mask, value_mask=value_mask, key_mask=key_mask, attention_mask=attention_mask)
        check_attention_shapes(query.shape, value.shape, (value if key is None else key).shape)
        context = keras.KerasTensor(self.compute_output_shape(query.shape, value.shape), dtype=self.compute_dtype)
        if not return_attention_scores:
            return context
        weights_shape = (*query.shape[:-1], value.shape[-2])
        return context, keras.KerasTensor(weights_shape, dtype=self.compute_dtype)

    def compute_mask(self, query, previous_mask):
        """The query's mask: the context has one position for each query."""
        return previous_mask

    def get_config(self):
        return {
            **super().get_config(),
            "score": config_of(self.score),
            "dropout": self.dropout,
            "seed": self.seed,
        }
