"""Attention sink: a query may attend to nothing, by one more column of scores whose weight is dropped."""

import keras
from keras import ops

from keras_attention import alignments
from keras_attention.alignments.alignment import Alignment
from keras_attention.alignments.heads import shape_by_head
from keras_attention.checks.arguments import check_boolean, check_positive_integer
from keras_attention.checks.classes import check_unbuilt
from keras_attention.ops import at_least_float32
from keras_attention.ops.masks import as_mask
from keras_attention.saving.lookup import config_of


def with_sink(scores, mask, logit):
    """Scores `(..., T, S + 1)` in float32 or better, with the `logit` of the sink last, and a mask that allows the sink."""
    scores = at_least_float32(scores)
    *rows, S = ops.shape(scores)
    sink = ops.broadcast_to(ops.cast(logit, scores.dtype), (*rows, 1))
    if mask is not None:
        mask = as_mask(mask)
        *rows, _ = ops.shape(mask)
        mask = ops.concatenate([ops.broadcast_to(mask, (*rows, S)), ops.ones((*rows, 1), "bool")], axis=-1)
    return ops.concatenate([scores, sink], axis=-1), mask


@keras.saving.register_keras_serializable(package="keras_attention")
class AttentionSink(Alignment):
    """Any alignment by which a query attends to one position, or, by this, to none of them.

    `weights[t] = alignment([scores[t]; logit])` without the last weight

    The sink stands beside the S positions like one more key without a value: where no score is above its logit, the weights
    of a query sum to less than one, so that a head can stay silent. Softmax with a logit of 0 is "softmax plus one",
    `exp(scores) / (1 + sum of exp(scores))`, and the `add_zero_attn` of torch.

    A selection is a one-hot row, or an empty row where the query attends to the sink. `mode`, `sample`, `log_prob` and
    `entropy` are those of the S + 1 outcomes. For hard attention sample outside, `Sampled(AttentionSink("softmax"))`, or
    inside, `AttentionSink("sampled")`.

    Args:
        alignment: A name, as in `alignments.get`, or an `Alignment` whose attribute `is_categorical` is true: "softmax",
            "sparsemax", "entmax", "adaptive_entmax", "sampled".
        num_heads: Integer N, for scores `(..., N, T, S)` with a logit for each head, as in the papers. `None`: one logit.
        learned: Boolean. `True` learns the logit, which starts at 0; `False` leaves it there.

    Call arguments:
        scores: Float tensor of shape `(..., T, S)`.
        mask: Boolean tensor that broadcasts to the scores, True = may be attended, or `None`.
        training: Boolean, handed on to the alignment.

    Returns:
        Weights of shape `(..., T, S)`; each row sums to one or less, and is zero where nothing may be attended.

    Raises:
        ValueError: If a query of the alignment may attend to several positions, or `num_heads` is not the number of heads.

    Example:
        >>> AttentionSink()(keras.ops.array([[0.0, 0.0, 0.0]]))
        [[0.25, 0.25, 0.25]]
        >>> attention = MultiHeadAttention(num_heads=2, key_dim=3, alignment=AttentionSink(num_heads=2))

    References:
        Miller, 2023, "Attention is off by one". Xiao et al., 2024, section 3, arXiv:2309.17453.
        OpenAI, 2025 (gpt-oss), arXiv:2508.10925.
    """

    def __init__(self, alignment="softmax", num_heads=None, learned=True, **kwargs):
        super().__init__(**kwargs)
        self.alignment = alignments.get(alignment)
        if not self.alignment.is_categorical:
            name = type(self.alignment).__name__
            raise ValueError(
                "An attention sink stands beside the positions of which each query attends to one, as by the softmax. By "
                f"{name} a query may attend to several, or none, or queries depend on each other. Received: {name}. Take "
                '"softmax", "sparsemax" or "entmax". (An alignment of your own says `is_categorical = True`.)'
            )
        self.num_heads = None if num_heads is None else check_positive_integer("num_heads", num_heads)
        self.learned = check_boolean("learned", learned)

    def build(self, scores_shape):
        *rows, S = scores_shape
        check_unbuilt(self.alignment)
        self.alignment.build((*rows, None if S is None else S + 1))
        shape = shape_by_head(self, scores_shape)
        self.logit = self.add_weight(shape=shape, initializer="zeros", name="logit") if self.learned else 0.0
        self.built = True

    def call(self, scores, mask=None, training=None):
        return self._weights(self.alignment, scores, mask, training=training)

    def marginals(self, scores, mask=None):
        return self._weights(self.alignment.marginals, scores, mask)

    def mode(self, scores, mask=None):
        """The first maximum, one-hot `(..., T, S)`, or an empty row where it is the sink."""
        return self._weights(self.alignment.mode, scores, mask)

    def sample(self, scores, mask=None, seed=None):
        """One position or none for each query, `(..., T, S)`."""
        return self._weights(self.alignment.sample, scores, mask, seed=seed)

    def log_prob(self, selection, scores, mask=None):
        """Log-probability of a selection `(..., T, S)` of one-hot or empty rows: `(..., T)`."""
        selection = at_least_float32(selection)
        sink = 1.0 - ops.sum(selection, axis=-1, keepdims=True)
        return self.alignment.log_prob(ops.concatenate([selection, sink], axis=-1), *self._with_sink(scores, mask))

    def entropy(self, scores, mask=None):
        """Entropy over the positions and the sink in nats: `(..., T)`."""
        return self.alignment.entropy(*self._with_sink(scores, mask))

    def _with_sink(self, scores, mask):
        if not self.built:
            raise ValueError("An AttentionSink must be built. Call it once, or `build(scores.shape)`.")
        return with_sink(scores, mask, self.logit)

    def _weights(self, of_alignment, scores, mask, **options):
        """Weights `(..., T, S)` of a function of the alignment, the one of the sink dropped."""
        scores_and_sink, mask = self._with_sink(scores, mask)
        weights = of_alignment(scores_and_sink, mask=mask, **options)
        return ops.cast(weights[..., :-1], scores.dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "alignment": config_of(self.alignment),
            "num_heads": self.num_heads,
            "learned": self.learned,
        }
