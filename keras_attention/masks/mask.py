"""The interface of masks as objects, and what becomes of them under `&`, `|` and `~`."""

import numbers

from keras import ops

from keras_attention.checks.arguments import check_at_least, check_positive_integer
from keras_attention.checks.shapes import sizes_differ
from keras_attention.ops.masks import aligned_slots


class Mask:
    """Base class of the masks: a boolean function of the slots of queries and keys, True = attend.

    A slot is a place in a tensor, from 0 on. With fewer queries than keys the last query stands in the slot of the last
    key, as under `use_causal_mask`; otherwise both start at 0.

    Masks combine: `first & second` allows what both allow, `first | second` what either allows, and `~mask` what the mask
    does not. A subclass writes `allowed`, and `check_lengths` where it belongs to certain lengths only.

    Methods:
        mask(query_length, key_length=None): The boolean tensor `(B or 1, T, S)`, to be passed as `attention_mask`. `key_length`
            is S, by default T. A length is an integer or a scalar tensor, as `keras.ops.shape` has it in a graph.
        empty_blocks(query_length, key_length=None, block_size=128): Boolean tensor `(B or 1, T / block_size, S / block_size)`,
            both quotients rounded up. True = nothing in the block is allowed, so that a kernel may skip it.
        allowed(query_slots, key_slots): Boolean tensor that broadcasts to `(B, T, S)`, of int32 slots `(T, 1)` and `(1, S)`.
            The slots may be those of any block.
        check_lengths(query_length, key_length): Raises `ValueError` where the mask belongs to other lengths.

    Raises:
        TypeError: If a mask is combined with something else, or a length is not an integer.
        ValueError: If a length is negative or does not fit the mask.

    Example:
        >>> mask = Causal() & Window(2)
        >>> mask
        Causal() & Window(2)
        >>> mask.mask(3)
        [[[True, False, False], [True, True, False], [False, True, True]]]
        >>> mask.empty_blocks(4, block_size=2)
        [[[False, True], [False, False]]]
        >>> (mask | Prefix(1)).mask(2, 3)
        [[[True, True, False], [True, True, True]]]

        Even positions, a mask of your own:

        >>> class Even(Mask):
        ...     def allowed(self, query_slots, key_slots):
        ...         return key_slots % 2 == 0
        >>> (Even() & Causal()).mask(3)
        [[[True, False, False], [True, False, False], [True, False, True]]]
    """

    # The masks that this one combines.
    parts = ()

    def allowed(self, query_slots, key_slots):
        raise NotImplementedError(f"{type(self).__name__} must have a method `allowed(query_slots, key_slots)`.")

    def check_lengths(self, query_length, key_length):
        return None

    def mask(self, query_length, key_length=None):
        T, S = self._checked(query_length, key_length)
        return self._tensor(*aligned_slots(T, S))

    def empty_blocks(self, query_length, key_length=None, block_size=128):
        size = check_positive_integer("block_size", block_size)
        T, S = self._checked(query_length, key_length)
        query_slots, key_slots = aligned_slots(T, S)
        rows, columns = (T + size - 1) // size, (S + size - 1) // size
        # The last block is filled with its last slot, which says nothing new of it.
        query_slots = ops.take(query_slots, ops.minimum(ops.arange(rows * size), T - 1), axis=0)
        key_slots = ops.take(key_slots, ops.minimum(ops.arange(columns * size), S - 1), axis=1)
        mask = self._tensor(query_slots, key_slots)
        B = ops.shape(mask)[0]
        blocks = ops.reshape(mask, (-1 if B is None else B, rows, size, columns, size))
        return ops.logical_not(ops.any(blocks, axis=(2, 4)))

    def _checked(self, query_length, key_length):
        """T and S, after checking what is known of them."""
        T = as_length("query_length", query_length)
        S = T if key_length is None else as_length("key_length", key_length)
        self.check_lengths(T, S)
        return T, S

    def _tensor(self, query_slots, key_slots):
        """All of `(B or 1, T, S)`, where `allowed` may leave axes out."""
        everywhere = ops.logical_and(query_slots >= 0, key_slots >= 0)  # (T, S)
        return ops.logical_and(self.allowed(query_slots, key_slots), everywhere[None])

    def __and__(self, other):
        return Combination("&", ops.logical_and, self, check_mask(self, "&", other))

    def __or__(self, other):
        return Combination("|", ops.logical_or, self, check_mask(self, "|", other))

    def __invert__(self):
        return Combination("~", ops.logical_not, self)

    def __bool__(self):
        # `first and second` would be the second alone.
        raise TypeError(f"A mask is neither true nor false. Received {self}. Combine masks by `&`, `|` and `~`.")


class Combination(Mask):
    """What `&`, `|` and `~` make of masks: `operation(*parts)`, which the repr shows as `symbol`."""

    def __init__(self, symbol, operation, *parts):
        self.symbol, self.operation, self.parts = symbol, operation, parts

    def allowed(self, query_slots, key_slots):
        tensors = [mask.allowed(query_slots, key_slots) for mask in self.parts]
        check_same_rows(self, tensors)
        return self.operation(*tensors)

    def check_lengths(self, query_length, key_length):
        for mask in self.parts:
            mask.check_lengths(query_length, key_length)

    def __repr__(self):
        words = [f"({mask})" if len(mask.parts) > 1 else f"{mask}" for mask in self.parts]
        return f" {self.symbol} ".join(words) if len(words) > 1 else f"{self.symbol}{words[0]}"


def check_same_rows(mask, tensors):
    """Raises unless the tensors `(B or 1, T, S)` of the parts of a mask, of two or three axes, are of one batch."""
    first, *others = [tensor.shape[0] for tensor in tensors if len(tensor.shape) == 3 and tensor.shape[0] != 1] or [1]
    for size in others:
        if sizes_differ(first, size):
            raise ValueError(
                f"Combined masks must be of one batch. Received {mask}, of {first} and of {size} rows. Make all of the "
                "same batch."
            )


def as_length(name, length):
    """A length that is known as an `int`, after checking it; a scalar tensor and the unknown size of a graph stay."""
    if length is None:
        raise TypeError(
            f"`{name}` must be an integer or a scalar tensor. Received {name}=None. Where a `keras.Input` has an unknown "
            "length, make the mask inside the `call` of a layer, of `keras.ops.shape`."
        )
    return check_at_least(name, length, 0) if isinstance(length, numbers.Number) else length


def check_mask(mask, symbol, other):
    """`other`, after checking that `mask` can be combined with it."""
    if not isinstance(other, Mask):
        raise TypeError(
            f"`{symbol}` combines masks with masks. Received {mask} {symbol} an object of type {type(other).__name__}. Make a "
            "tensor of the mask, `mask.mask(query_length, key_length)`, to combine it with other tensors, or a `Padding` of a "
            "padding mask."
        )
    return other


def check_belongs(mask, name, length, expected):
    """Raises where the `length` called `name` is known and is not the one for which the mask was made."""
    if sizes_differ(length, expected):
        raise ValueError(
            f"`{name}` must be the length for which the mask was made, {expected}. Received {name}={length} for {mask}. Pass "
            "the lengths of the query and the key of the attention."
        )
