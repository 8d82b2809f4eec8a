"""Step one: a score is a function of one query and one key."""

from keras_attention.saving.lookup import get_by_name
from keras_attention.scores.additive import AdditiveScore
from keras_attention.scores.bilinear import BilinearScore
from keras_attention.scores.concat import ConcatScore
from keras_attention.scores.dot import DotScore
from keras_attention.scores.scaled_dot import ScaledDotScore
from keras_attention.scores.score import Score
from keras_attention.scores.soft_cap import SoftCap

__all__ = ["AdditiveScore", "BilinearScore", "ConcatScore", "DotScore", "ScaledDotScore", "Score", "SoftCap", "get"]

_NAMES = {
    "additive": AdditiveScore,
    "bilinear": BilinearScore,
    "concat": ConcatScore,
    "dot": DotScore,
    "scaled_dot": ScaledDotScore,
}


def get(identifier):
    """The score that a name, a config or a `Score` stands for: "additive", "bilinear", "concat", "dot", "scaled_dot"."""
    return get_by_name(identifier, _NAMES, Score, "score")
