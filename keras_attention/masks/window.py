"""Window mask: queries look at keys nearby."""

from keras_attention.checks.arguments import check_positive_integer
from keras_attention.masks.mask import Mask
from keras_attention.ops.masks import window_mask


class Window(Mask):
    """A query attends to keys fewer than `width` slots away: `mask[t, s] = |t - s| < width`.

    It looks both ways; `Causal() & Window(width)` looks back only. Slots are counted, padding included;
    `MultiHeadAttention(sliding_window=width)` counts real tokens.

    Args:
        width: Integer above 0.

    Example:
        >>> Window(2).mask(3)
        [[[True, True, False], [True, True, True], [False, True, True]]]

    References:
        Beltagy, Peters and Cohan, 2020, section 3.1, arXiv:2004.05150.
    """

    def __init__(self, width):
        self.width = check_positive_integer("width", width)

    def allowed(self, query_slots, key_slots):
        return window_mask(query_slots[:, 0], key_slots[0], self.width)

    def __repr__(self):
        return f"Window({self.width})"
