"""Key-value memory: attention that reads a memory several times, each time with what it has found so far."""

import keras
from keras import ops

from keras_attention.checks.arguments import check_boolean, check_positive_integer
from keras_attention.checks.shapes import check_attention_shapes, check_known_width, sizes_differ
from keras_attention.layers.attention_layer import AttentionLayer
from keras_attention.ops.dtypes import times
from keras_attention.ops.masks import zero_masked
from keras_attention.saving.initializers import fresh


def next_query(query, context, kernel):
    """`(query[t] + context[t]) · kernel` -> `(..., T, D)`: what the next hop asks for."""
    return times(query + context, kernel)


@keras.saving.register_keras_serializable(package="keras_attention")
class KeyValueMemory(AttentionLayer):
    """A memory of pairs that is read in several hops; what one hop finds is part of what the next one asks for.

        weights[j]  = alignment(score(query[j], key), mask)
        context[j]  = weights[j] · value
        query[j+1]  = (query[j] + context[j]) · hop_kernel[j]

    for the hops j = 1, ..., num_hops; the output is the last query. So an answer may need several entries of the memory,
    each of which says where to look for the next. The score and the alignment are the same in every hop, as in the paper,
    where they are the dot product and the softmax; `query[j]` is q_j, `key` is Aφ(k), `value` is Aφ(v), `weights` are p_h,
    `context` is o and `hop_kernel[j]` is R_j. Values have the width of the query.

    With `kernel_initializer="identity"` it starts as the plain end-to-end memory of Sukhbaatar et al. A memory whose keys
    and values differ from hop to hop (their "adjacent" weights) is as many layers of `num_hops=1`, one after the other.

    Args:
        num_hops: Integer, how often the memory is read.
        score: A name of `scores.get` or a `Score`.
        alignment: A name of `alignments.get` or an `Alignment`.
        tie_hops: Boolean, whether one kernel serves all hops instead of one for each.
        dropout: Float in [0, 1), fraction of the weights dropped in training.
        seed: Integer seed of the dropout and of an alignment that is named and draws, or `None`.
        kernel_initializer: Initializer of the kernels of the hops.
        position: As in `SoftAttention`.

    Call arguments:
        query: Float tensor of shape `(B, ..., T, D)`. Every axis left of the last two is batch.
        value: Float tensor of shape `(B, ..., S, D)`.
        key: Float tensor of shape `(B, ..., S, D_key)`. Left out, the value is also the key.
        query_mask, value_mask, key_mask, attention_mask, attention_bias, query_positions, key_positions, use_causal_mask: As in
            `SoftAttention`, the same in every hop.
        return_attention_scores: Boolean. Also return the attention weights (the name is the one of Keras).
        training: Boolean, whether dropout is active.

    Returns:
        The last query, `(B, ..., T, D)`, or `(query, weights)` with the weights `(B, ..., num_hops, T, S)` before
        dropout. A query with nothing to attend gets zero weights and adds a zero context; a masked one is zero.

    Raises:
        ValueError: If shapes or masks do not fit together, or a name is unknown.

    Example:
        >>> memory = KeyValueMemory(num_hops=2)
        >>> question, fact = keras.ops.ones((2, 1, 7)), keras.ops.ones((2, 5, 7))
        >>> answer, weights = memory(question, fact, return_attention_scores=True)
        >>> answer.shape, weights.shape
        ((2, 1, 7), (2, 2, 1, 5))

    References:
        Miller et al., 2016, section 3.1, arXiv:1606.03126.
        Sukhbaatar, Szlam, Weston and Fergus, 2015, section 2, arXiv:1503.08895.
    """

    def __init__(
        self,
        num_hops=2,
        score="dot",
        alignment="softmax",
        tie_hops=False,
        dropout=0.0,
        seed=None,
        kernel_initializer="glorot_uniform",
        position=None,
        **kwargs,
    ):
        super().__init__(score, alignment, dropout, seed, position, **kwargs)
        self.num_hops = check_positive_integer("num_hops", num_hops)
        self.tie_hops = check_boolean("tie_hops", tie_hops)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)

    def build(self, query_shape, value_shape, key_shape=None):
        check_memory_shapes(query_shape, value_shape, key_shape or value_shape)
        super().build(query_shape, value_shape, key_shape)
        check_known_width("query", query_shape)
        D = query_shape[-1]
        self.hop_kernels = [
            self.add_weight(name=f"hop_kernel_{hop}", shape=(D, D), initializer=fresh(self.kernel_initializer))
            for hop in range(1 if self.tie_hops else self.num_hops)
        ]

    def _flow(self, query, memory, mask, query_mask, positions, bias, training):
        if query_mask is not None:  # a real query with nothing to attend stays as it is
            query = zero_masked(query, ops.expand_dims(query_mask, -1), axis=-1)
        weights = []
        for hop in range(self.num_hops):
            context, hop_weights, memory = super()._flow(query, memory, mask, None, positions, bias, training)
            kernel = ops.cast(self.hop_kernels[0 if self.tie_hops else hop], query.dtype)
            query = next_query(query, context, kernel)
            weights.append(hop_weights)
        return query, ops.stack(weights, axis=-3), memory

    def compute_output_shape(self, query_shape, value_shape, key_shape=None):
        check_memory_shapes(query_shape, value_shape, key_shape or value_shape)
        return tuple(query_shape)

    def weights_shape(self, query_shape, value_shape):
        return (*query_shape[:-2], self.num_hops, query_shape[-2], value_shape[-2])

    def get_config(self):
        return {
            **super().get_config(),
            "num_hops": self.num_hops,
            "tie_hops": self.tie_hops,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }


def check_memory_shapes(query_shape, value_shape, key_shape):
    """Raises unless the shapes are those of an attention and the context can be added to the query."""
    check_attention_shapes(query_shape, value_shape, key_shape)
    if sizes_differ(query_shape[-1], value_shape[-1]):
        raise ValueError(
            "KeyValueMemory adds what it reads to the query, so `query` and `value` must have the same width D. Received "
            f"query of shape {tuple(query_shape)} (D={query_shape[-1]}) and value of shape {tuple(value_shape)} "
            f"(D={value_shape[-1]}). Project one of the two; the key may have another width under a score with weights."
        )
