"""Causal mask: no query looks ahead."""

from keras_attention.masks.mask import Mask
from keras_attention.ops.masks import causal_mask


class Causal(Mask):
    """A query attends to its own and to earlier slots: `mask[t, s] = s <= t`.

    It is the mask of `use_causal_mask=True`, as an object that combines.

    Example:
        >>> Causal().mask(2, 3)
        [[[True, True, False], [True, True, True]]]
    """

    def allowed(self, query_slots, key_slots):
        return causal_mask(query_slots, key_slots)

    def __repr__(self):
        return "Causal()"
