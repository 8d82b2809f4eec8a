"""Where query and key stand: what acts inside attention, before the score, after it and on the mask."""

from keras_attention.positions.alibi import ALiBi
from keras_attention.positions.position_scheme import PositionScheme
from keras_attention.positions.rotary import Rotary
from keras_attention.positions.sliding_window import SlidingWindow
from keras_attention.positions.t5_bias import T5Bias
from keras_attention.saving.lookup import get_by_name

__all__ = ["ALiBi", "PositionScheme", "Rotary", "SlidingWindow", "T5Bias", "get"]

_NAMES = {"alibi": ALiBi, "rotary": Rotary, "t5": T5Bias}


def get(identifier):
    """The position scheme that a name, a config or a `PositionScheme` stands for: "alibi", "rotary", "t5"; `None` stays."""
    return None if identifier is None else get_by_name(identifier, _NAMES, PositionScheme, "position")
