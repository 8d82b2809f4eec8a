"""Where query and key stand: what acts inside attention, before the score, after it and on the mask."""

from keras_attention.positions.alibi import ALiBi
from keras_attention.positions.position_scheme import PositionScheme
from keras_attention.positions.rotary import Rotary
from keras_attention.positions.shaw_relative import ShawRelative
from keras_attention.positions.sliding_window import SlidingWindow
from keras_attention.positions.t5_bias import T5Bias
from keras_attention.positions.transformer_xl_relative import TransformerXLRelative
from keras_attention.saving.lookup import get_by_name

__all__ = [
    "ALiBi",
    "PositionScheme",
    "Rotary",
    "ShawRelative",
    "SlidingWindow",
    "T5Bias",
    "TransformerXLRelative",
    "get",
]

_NAMES = {
    "alibi": ALiBi,
    "rotary": Rotary,
    "shaw": ShawRelative,
    "t5": T5Bias,
    "transformer_xl": TransformerXLRelative,
}


def get(identifier):
    """The position scheme that a name, a config or a `PositionScheme` stands for; `None` stays.

    The names are "alibi", "rotary", "shaw", "t5" and "transformer_xl".
    """
    return None if identifier is None else get_by_name(identifier, _NAMES, PositionScheme, "position")
