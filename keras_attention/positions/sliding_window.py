"""Sliding window: a query attends to keys near its own position."""

import keras

from keras_attention.checks.arguments import check_positive_integer
from keras_attention.ops.masks import window_mask
from keras_attention.positions.position_scheme import PositionScheme


@keras.saving.register_keras_serializable(package="keras_attention")
class SlidingWindow(PositionScheme):
    """A query attends only to keys fewer than `width` positions away: `mask[t, s] = |position[t] - position[s]| < width`.

    It looks both ways; with a causal mask only back. `MultiHeadAttention(sliding_window=width)`, as in Keras, is short for
    it.

    Args:
        width: Integer above 0.

    Example:
        >>> positions = keras.ops.array([[0, 1, 2]])
        >>> SlidingWindow(2).mask(positions, positions)
        [[[True, True, False], [True, True, True], [False, True, True]]]

    References:
        Beltagy, Peters and Cohan, 2020, section 3.1, arXiv:2004.05150.
    """

    adds_bias = False

    def __init__(self, width, **kwargs):
        super().__init__(**kwargs)
        self.width = check_positive_integer("width", width)

    def mask(self, query_positions, key_positions):
        return window_mask(query_positions, key_positions, self.width)

    def get_config(self):
        return {**super().get_config(), "width": self.width}
