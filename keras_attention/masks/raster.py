"""Raster mask: the pixels of an image, row by row."""

from keras_attention.checks.arguments import check_at_least
from keras_attention.masks.mask import Mask
from keras_attention.ops.masks import causal_mask, window_mask


class Raster(Mask):
    """A pixel attends to the rows above, and in its own row to itself and the pixels to its left.

    Pixels stand in raster order, row by row, one slot each: that of row y and column x is `y · width + x`. Alone this is
    `Causal()`. With a `neighborhood` a pixel sees only the nearest rows and columns: at most `rows` rows above, and in each
    of them at most `columns` columns to either side. The papers share one neighborhood among the pixels of a block; here
    each pixel is the centre of its own.

    Args:
        shape: Height and width of the image, two integers above 0. Fewer slots are the beginning of an image.
        neighborhood: `(rows, columns)`, two integers of 0 or more, or `None`, everything before.

    Example:
        >>> Raster((2, 3), neighborhood=(1, 1)).mask(1, 6)  # the last pixel: three neighbors, two of them above, and itself
        [[[False, True, True, False, True, True]]]

    References:
        Van den Oord, Kalchbrenner and Kavukcuoglu, 2016, section 2.1 (raster order), arXiv:1601.06759.
        Parmar et al., 2018 ("2D local attention"), arXiv:1802.05751.
    """

    def __init__(self, shape, neighborhood=None):
        self.shape = pair("shape", shape, least=1)
        self.neighborhood = None if neighborhood is None else pair("neighborhood", neighborhood, least=0)

    def allowed(self, query_slots, key_slots):
        mask = causal_mask(query_slots, key_slots)
        if self.neighborhood is None:
            return mask
        width = self.shape[1]
        rows, columns = self.neighborhood
        near_rows = window_mask(query_slots[:, 0] // width, key_slots[0] // width, rows + 1)
        near_columns = window_mask(query_slots[:, 0] % width, key_slots[0] % width, columns + 1)
        return mask & near_rows & near_columns

    def check_lengths(self, query_length, key_length):
        height, width = self.shape
        for name, length in (("query_length", query_length), ("key_length", key_length)):
            if isinstance(length, int) and length > height * width:
                raise ValueError(
                    f"`{name}` must be at most the number of pixels, {height} · {width} = {height * width}. Received "
                    f"{name}={length} for {self}. Pass the `shape` of the image."
                )

    def __repr__(self):
        neighborhood = "" if self.neighborhood is None else f", neighborhood={self.neighborhood}"
        return f"Raster({self.shape}{neighborhood})"


def pair(name, values, least):
    """`values` as two integers, after checking that they are that, `least` or more."""
    if not isinstance(values, list | tuple) or len(values) != 2:
        raise ValueError(f"`{name}` must be two integers, of rows and columns. Received: {values!r}.")
    return tuple(check_at_least(name, value, least) for value in values)
