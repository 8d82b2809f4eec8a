"""Prefix mask: everything may look at the beginning."""

from keras import ops

from keras_attention.checks.arguments import check_at_least, is_integer
from keras_attention.masks.mask import Mask
from keras_attention.ops.dtypes import as_integers


class Prefix(Mask):
    """Every query attends to the first `length` slots: `mask[b, t, s] = s < length[b]`.

    `Causal() | Prefix(length)` is the mask of a prefix language model: the prefix is read both ways, what follows it is
    causal. Padding on the left would stand in the prefix; take it out by `& Padding(mask)`.

    Args:
        length: Integer of 0 or more, or an integer tensor `(B,)`.

    Example:
        >>> (Causal() | Prefix(2)).mask(3)
        [[[True, True, False], [True, True, False], [True, True, True]]]

    References:
        Raffel et al., 2020, section 3.2.1 ("causal with prefix"), arXiv:1910.10683.
    """

    def __init__(self, length):
        self.length = check_at_least("length", length, 0) if is_integer(length) else as_integers("length", length)
        rank = 0 if is_integer(length) else len(self.length.shape)
        if rank > 1:
            raise ValueError(
                f"`length` must be an integer, or integers of shape (B,). Received shape {tuple(self.length.shape)}. Pass one "
                "length for each row."
            )

    def allowed(self, query_slots, key_slots):
        return ops.less(key_slots, ops.reshape(self.length, (-1, 1, 1)))  # (B or 1, 1, S)

    def __repr__(self):
        return f"Prefix({self.length})" if is_integer(self.length) else f"Prefix(shape={tuple(self.length.shape)})"
