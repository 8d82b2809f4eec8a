"""Soft attention: the context is the expectation of the values under the alignment."""

import keras

from keras_attention.layers.attention_layer import AttentionLayer


@keras.saving.register_keras_serializable(package="keras_attention")
class SoftAttention(AttentionLayer):
    """Attention with any score and any alignment.

        scores[t, s] = score(query[t], key[s])
        weights      = alignment(scores, mask)
        context[t]   = sum over s of weights[t, s] · value[s]

    In Bahdanau's paper `query` is s_{i-1}, `key` and `value` are h_j, `scores` is e_ij, `weights` is α_ij and
    `context` is c_i.

    Args:
        score: A name of `scores.get` or a `Score`.
        alignment: A name of `alignments.get` or an `Alignment`.
        dropout: Float in [0, 1), fraction of the weights dropped in training.
        seed: Integer seed of the dropout and of an alignment that is named and draws, or `None`.
        position: A name of `positions.get` or a `PositionScheme`: what acts by the positions of query and key. `None`: nothing.

    Call arguments:
        query: Float tensor of shape `(B, ..., T, D_query)`. Every axis left of the last two is batch.
        value: Float tensor of shape `(B, ..., S, E)`.
        key: Float tensor of shape `(B, ..., S, D_key)`. Left out, the value is also the key.
        query_mask: Boolean tensor `(B, ..., T)`, True = a real query. The implicit Keras mask of `query` is used when
            it is not given; masks get lost in plain arithmetic between layers, so pass them by hand when in doubt.
        value_mask, key_mask: Boolean tensors `(B, ..., S)`, True = may be attended; as above.
        attention_mask: Boolean tensor `(T, S)`, `(B, T, S)` or any shape that broadcasts to the scores.
        return_attention_scores: Boolean. Also return the attention weights (the name is the one of Keras).
        training: Boolean, whether dropout is active.
        use_causal_mask: Boolean. A query attends to its own and earlier positions; with fewer queries than keys the
            last query stands at the last key.
        attention_bias: Float tensor of the shapes of `attention_mask`, which is added to the scores; -inf forbids, as a mask
            does.
        query_positions, key_positions: int32 tensors `(B or 1, T)` and `(B or 1, S)`, where queries and keys stand. `None`:
            the real ones are counted, and the last query stands at the last key.

    As `keras.layers.Attention` it can also be called with one list of tensors and one of masks:
    `attention([query, value], mask=[query_mask, value_mask])`; a third of each is the key's.

    Returns:
        `context` of shape `(B, ..., T, E)`, or `(context, weights)` with the weights `(B, ..., T, S)` before dropout.
        A query with nothing to attend gets zero weights and a zero context.

    Raises:
        ValueError: If shapes or masks do not fit together, or a name is unknown.

    Example:
        >>> attention = SoftAttention(score="additive")
        >>> query, value = keras.ops.ones((2, 3, 7)), keras.ops.ones((2, 5, 11))
        >>> context, weights = attention(query, value, return_attention_scores=True)
        >>> context.shape, weights.shape
        ((2, 3, 11), (2, 3, 5))

    References:
        Bahdanau, Cho and Bengio, 2015, eq. (5) and (6), arXiv:1409.0473.
        Luong, Pham and Manning, 2015, section 3.1, arXiv:1508.04025.
    """

    def __init__(self, score="scaled_dot", alignment="softmax", dropout=0.0, seed=None, position=None, **kwargs):
        super().__init__(score, alignment, dropout, seed, position, **kwargs)
