"""Hard attention: the context is the value at one position, or at those of one structure."""

import keras

from keras_attention.alignments.sampled import Sampled
from keras_attention.checks.arguments import check_seed
from keras_attention.layers.attention_layer import AttentionLayer
from keras_attention.ops.random import split_seed
from keras_attention.saving.lookup import config_of


@keras.saving.register_keras_serializable(package="keras_attention")
class HardAttention(AttentionLayer):
    """Attention that reads one position: a sample in training, the best position at inference.

        scores[t, s] = score(query[t], key[s])
        position[t]  ~ softmax(scores[t]) in training,  argmax scores[t] at inference
        context[t]   = value[position[t]]

    With another alignment it reads what one selection of that holds: the positions that are on, a segment, a walk, a tree.
    It is `SoftAttention` with the alignment `Sampled(alignment)`. No gradient flows through a sample: put the layer into a
    `keras_attention.training.ReinforceModel`, where the scores learn by `selection="sample"` under plain `compile` and
    `fit`. In the paper `context` is ẑ_t, `position` is s_t and `value` is a_i.

    Args:
        score: A name of `scores.get` or a `Score`.
        selection: What is attended in training, a name or an `alignments.Estimator`.
            "sample" or "reinforce": a sample; its log-probability goes to `ReinforceModel`. Unbiased.
            "straight_through", "gumbel_softmax": a Gumbel-softmax sample with a gradient of its own, in any model. Biased.
            "argmax": the best position; the scores don't learn.
        dropout: Float in [0, 1), fraction of the weights dropped in training.
        seed: Integer seed of the samples and the dropout, or `None`. Two layers of one model need two seeds: with one,
            their samples are not independent, while the sum of their log-probabilities says so.
        alignment: A name of `alignments.get` or an `Alignment`, from which selections are drawn. The estimators
            "straight_through" and "gumbel_softmax" need one position for each query.
        position: As in `SoftAttention`.

    Call arguments:
        query: Float tensor of shape `(B, ..., T, D_query)`. Every axis left of the last two is batch.
        value: Float tensor of shape `(B, ..., S, E)`.
        key: Float tensor of shape `(B, ..., S, D_key)`. Left out, the value is also the key.
        query_mask, value_mask, key_mask, attention_mask, attention_bias, query_positions, key_positions, use_causal_mask: As in
            `SoftAttention`.
        return_attention_scores: Boolean. Also return the weights (the name is the one of Keras).
        training: Boolean, whether positions are sampled.

    Returns:
        `context` of shape `(B, ..., T, E)`, or `(context, weights)` with the weights `(B, ..., T, S)`, ones and zeros, before
        dropout. A query with nothing to attend gets zero weights, a zero context and log-probability 0.

    Raises:
        ValueError: If shapes or masks do not fit together, or a name is unknown.

    Example:
        >>> attention = HardAttention(score="dot")
        >>> query, value = keras.ops.array([[[1.0, 0.0]]]), keras.ops.array([[[2.0, 3.0], [5.0, 7.0]]])
        >>> attention(query, value)
        [[[5.0, 7.0]]]

    References:
        Xu et al., 2015, section 4.1, arXiv:1502.03044.
        Mnih, Heess, Graves and Kavukcuoglu, 2014, section 2.2, arXiv:1406.6247.
    """

    def __init__(
        self,
        score="scaled_dot",
        selection="sample",
        dropout=0.0,
        seed=None,
        alignment="softmax",
        position=None,
        **kwargs,
    ):
        sample_seed, dropout_seed = split_seed(seed, 2)
        estimator = "reinforce" if selection == "sample" else selection
        alignment = Sampled(alignment, estimator, seed=sample_seed)
        super().__init__(score, alignment, dropout, dropout_seed, position, **kwargs)
        self.selection = self.alignment.estimator
        self.seed = check_seed(seed)

    def get_config(self):
        distribution = config_of(self.alignment.alignment)
        return {**super().get_config(), "selection": config_of(self.selection), "alignment": distribution}
