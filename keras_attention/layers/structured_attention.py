"""Structured attention: the context is the expectation of the values under a distribution over structures."""

import keras

from keras_attention.layers.attention_layer import AttentionLayer


@keras.saving.register_keras_serializable(package="keras_attention")
class StructuredAttention(AttentionLayer):
    """Attention to structures, such as segments of the source, instead of single positions.

        scores[t, s]  = score(query[t], key[s])
        weights[t, s] = probability that s is a selected part, by alignment(scores, mask)
        context[t]    = sum over s of weights[t, s] · value[s]

    It is `SoftAttention` with another alignment by default. With "linear_chain" or "sigmoid" any number of positions may be
    selected, so that a context is the expected sum of the selected values; for an average, pass
    `alignments.LinearChain(normalize="l1")`. In the paper the weights are the marginals p(z_i = 1 | x, q), and the values x_i.

    Args:
        score: A name of `scores.get` or a `Score`.
        alignment: A name, such as "linear_chain", "sigmoid" or "dependency_tree" (self-attention only), or an `Alignment`.
        dropout: Float in [0, 1), fraction of the weights dropped in training.
        seed: Integer seed of the dropout and of an alignment that is named and draws, or `None`.
        position: As in `SoftAttention`.

    Call arguments:
        query: Float tensor of shape `(B, ..., T, D_query)`. Every axis left of the last two is batch.
        value: Float tensor of shape `(B, ..., S, E)`.
        key: Float tensor of shape `(B, ..., S, D_key)`. Left out, the value is also the key.
        query_mask, value_mask, key_mask, attention_mask, attention_bias, query_positions, key_positions, use_causal_mask: As in
            `SoftAttention`. The implicit Keras masks are used when none is given; masks get lost in plain arithmetic between
            layers, so pass them by hand when in doubt.
        return_attention_scores: Boolean. Also return the weights (the name is the one of Keras).
        training: Boolean, whether dropout is active.

    Returns:
        `context` of shape `(B, ..., T, E)`, or `(context, weights)` with the weights `(B, ..., T, S)` before dropout.
        A query with nothing to attend gets zero weights and a zero context.

    Raises:
        ValueError: If shapes or masks do not fit together, or a name is unknown.

    Example:
        >>> attention = StructuredAttention(score="dot", alignment="sigmoid")
        >>> query, value = keras.ops.array([[[1.0, 0.0]]]), keras.ops.array([[[1.0, 0.0], [0.0, 2.0]]])
        >>> attention(query, value)
        [[[0.7311, 1.0]]]

    References:
        Kim, Denton, Hoang and Rush, 2017, section 3, arXiv:1702.00887.
    """

    def __init__(self, score="scaled_dot", alignment="linear_chain", dropout=0.0, seed=None, position=None, **kwargs):
        super().__init__(score, alignment, dropout, seed, position, **kwargs)
