"""Soft cap: the scores of another score, bent so that they stay below a bound."""

import keras
from keras import ops

from keras_attention import scores
from keras_attention.checks.arguments import check_positive
from keras_attention.checks.classes import check_unbuilt
from keras_attention.saving.lookup import config_of
from keras_attention.scores.score import Score


def soft_cap(scores, cap):
    """`cap · tanh(scores / cap)`: near 0 the scores themselves, never beyond `cap` on either side."""
    return cap * ops.tanh(scores / cap)


@keras.saving.register_keras_serializable(package="keras_attention")
class SoftCap(Score):
    """Any score, kept within a bound, so that no query settles on one key by a huge score.

    `scores[t, s] = cap · tanh(score(query[t], key[s]) / cap)`

    What a position scheme or `attention_bias` adds is added afterwards and not capped. A NaN stays; an infinite score
    becomes the cap.

    Args:
        score: A name, as in `scores.get`, or a `Score`.
        cap: Positive number, the bound. Gemma 2 takes 50.

    Call arguments:
        query: Float tensor of shape `(..., T, D_query)`.
        key: Float tensor of shape `(..., S, D_key)`, of widths that the score takes.

    Returns:
        Scores of shape `(..., T, S)` between -cap and cap, float32 or better.

    Raises:
        ValueError: If `cap` is not above zero.

    Example:
        >>> query, key = keras.ops.array([[1.0, 2.0]]), keras.ops.array([[3.0, 4.0], [0.1, 0.1]])
        >>> SoftCap("dot", cap=5.0)(query, key)
        [[4.8787, 0.2996]]

    References:
        Gemma Team, 2024 (Gemma 2), section 2, arXiv:2408.00118.
    """

    def __init__(self, score="scaled_dot", cap=50.0, **kwargs):
        super().__init__(**kwargs)
        self.score = scores.get(score)
        self.cap = check_positive("cap", cap)

    def build(self, query_shape, key_shape):
        super().build(query_shape, key_shape)
        check_unbuilt(self.score)
        self.score.build(query_shape, key_shape)

    def call(self, query, key):
        return soft_cap(self.score(query, key), self.cap)

    def prepare(self, key):
        return self.score.prepare(key)

    def compare(self, query, prepared):
        return self.with_activity_loss(soft_cap(self.score.compare(query, prepared), self.cap))

    def get_config(self):
        return {**super().get_config(), "score": config_of(self.score), "cap": self.cap}
