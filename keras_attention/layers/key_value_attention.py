"""Key-value attention: a memory whose keys, by which it is found, are not its values, which are read."""

import keras

from keras_attention.layers.attention_layer import AttentionLayer
from keras_attention.layers.one_by_one import one_by_one


@keras.saving.register_keras_serializable(package="keras_attention")
class KeyValueAttention(AttentionLayer):
    """Attention over a memory of pairs: the keys say where to look, the values are read there.

        scores[t, s] = score(query[t], key[s])
        weights      = alignment(scores, mask)
        context[t]   = sum over s of weights[t, s] · value[s]

    The flow is that of `SoftAttention`, which takes the value for the key where none is given; here a key left out is an
    error. Keys and values may differ in width. In the paper `key` is φ(k) and `value` is φ(v), weights are p_h and
    `context` is o.

    Args:
        score: A name of `scores.get` or a `Score`.
        alignment: A name of `alignments.get` or an `Alignment`.
        dropout: Float in [0, 1), fraction of the weights dropped in training.
        seed: Integer seed of the dropout and of an alignment that is named and draws, or `None`.
        position: As in `SoftAttention`.

    Call arguments:
        query: Float tensor of shape `(B, ..., T, D_query)`. Every axis left of the last two is batch.
        value: Float tensor of shape `(B, ..., S, E)`.
        key: Float tensor of shape `(B, ..., S, D_key)`, one for each value.
        query_mask, value_mask, key_mask, attention_mask, attention_bias, query_positions, key_positions, use_causal_mask: As in
            `SoftAttention`. A position is attended only where the masks of both its key and its value allow it.
        return_attention_scores: Boolean. Also return the attention weights (the name is the one of Keras).
        training: Boolean, whether dropout is active.

    Returns:
        `context` of shape `(B, ..., T, E)`, or `(context, weights)` with the weights `(B, ..., T, S)` before dropout.
        A query with nothing to attend gets zero weights and a zero context.

    Raises:
        ValueError: If there is no key, shapes or masks do not fit together, or a name is unknown.

    Example:
        >>> attention = KeyValueAttention(score="dot")
        >>> query, key = keras.ops.array([[[9.0, 0.0]]]), keras.ops.array([[[1.0, 0.0], [0.0, 1.0]]])
        >>> value = keras.ops.array([[[2.0, 3.0, 5.0], [7.0, 11.0, 13.0]]])
        >>> attention(query, value, key)
        [[[2.0006, 3.001, 5.001]]]

    References:
        Miller et al., 2016, section 3.1, arXiv:1606.03126.
    """

    def __init__(self, score="scaled_dot", alignment="softmax", dropout=0.0, seed=None, position=None, **kwargs):
        super().__init__(score, alignment, dropout, seed, position, **kwargs)

    def __call__(self, query, value=None, key=None, *arguments, **options):
        (query, value, key), options = one_by_one(self, query, value, key, options)
        check_key(value, key)
        return super().__call__(query, value, key, *arguments, **options)

    def prepare(self, value, key=None, mask=None, positions=None):
        check_key(value, key)
        return super().prepare(value, key, mask, positions)


def check_key(value, key):
    """Raises where there is no key."""
    if key is None:
        raise ValueError(
            "KeyValueAttention needs a key for each value. Received `key=None` beside a value of shape "
            f"{tuple(value.shape)}. Pass `key`, or use `SoftAttention`, which takes the value for the key."
        )
