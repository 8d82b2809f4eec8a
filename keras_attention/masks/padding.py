"""Padding mask: what is no real token is not looked at."""

from keras import ops

from keras_attention.checks.shapes import check_exact_rank
from keras_attention.masks.mask import Mask, check_belongs
from keras_attention.ops.masks import as_mask


class Padding(Mask):
    """Every query attends to the real keys: `mask[b, t, s] = mask[b, s]`.

    `Segments`, of the same booleans as integers, also keeps queries that are padding from looking.

    Args:
        mask: Boolean tensor `(B, S)`, True = a real key.

    Example:
        >>> (Padding([[True, True, False]]) & Causal()).mask(3)
        [[[True, False, False], [True, True, False], [True, True, False]]]
    """

    def __init__(self, mask):
        self.key_mask = as_mask(mask)
        check_exact_rank("mask", self.key_mask.shape, 2, "(B, S)")

    def allowed(self, query_slots, key_slots):
        return ops.take(self.key_mask, key_slots, axis=1)  # (B, 1, S)

    def check_lengths(self, query_length, key_length):
        check_belongs(self, "key_length", key_length, self.key_mask.shape[1])

    def __repr__(self):
        return f"Padding(shape={tuple(self.key_mask.shape)})"
