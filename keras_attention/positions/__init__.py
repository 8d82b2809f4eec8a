"""Where query and key stand: what acts inside attention, before the score, after it and on the mask."""

from keras_attention.positions.position_scheme import PositionScheme
from keras_attention.positions.sliding_window import SlidingWindow
from keras_attention.saving.lookup import get_by_name

__all__ = ["PositionScheme", "SlidingWindow", "get"]


def get(identifier):
    """The position scheme that an object or a config stands for; `None` stays."""
    return None if identifier is None else get_by_name(identifier, {}, PositionScheme, "position")
