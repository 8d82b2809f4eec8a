"""Several attention axes as one: fold before attention, unfold after it."""

import functools
import operator

from keras import ops

from keras_attention.checks.shapes import check_attention_shapes, check_rank, check_same_length, check_same_rank
from keras_attention.ops.masks import check_masks


def attention_axes(axes, rank):
    """Positive axes of a tensor of `rank` axes; `None` stands for all but the first and the last."""
    if axes is None:
        return tuple(range(1, rank - 1))
    positive = tuple(axis + rank if axis < 0 else axis for axis in axes)
    if len(set(positive)) < len(positive) or not all(0 < axis < rank - 1 for axis in positive):
        raise ValueError(
            f"`attention_axes` must be different axes between the batch, 0, and the features, {rank - 1}. "
            f"Received attention_axes={tuple(axes)} for inputs of {rank} axes."
        )
    return positive


def check_last_axis(axes, value):
    """Raises unless `axes` of `value (B, ..., S, D)` are the one before the features, along which a memory is read."""
    rank = len(value.shape)
    if attention_axes(axes, rank) != (rank - 2,):
        raise ValueError(
            f"A memory is read along its last axis but one. Received value of shape {tuple(value.shape)} and attention along "
            f"its axes {attention_axes(axes, rank)}. Call the layer, or fold the axes into one with `keras.ops.reshape`."
        )


def folded_shape(shape, axes):
    """Static shape after `fold_axes`: `(other axes, product of axes, features)`."""
    others = tuple(size for axis, size in enumerate(shape[:-1]) if axis not in axes)
    sizes = [shape[axis] for axis in axes]
    length = None if None in sizes else functools.reduce(operator.mul, sizes, 1)
    return (*others, length, shape[-1])


def fold_shapes(axes, query_shape, value_shape, key_shape):
    """The three shapes with their attention axes folded into one, after checking that they fit together."""
    for name, shape in (("query", query_shape), ("value", value_shape), ("key", key_shape)):
        check_rank(name, shape, 3, "(B, ..., length, features)")
    check_same_rank(query_shape, value_shape, key_shape)
    axes = attention_axes(axes, len(query_shape))
    check_same_length(value_shape, key_shape, axes)
    shapes = tuple(folded_shape(shape, axes) for shape in (query_shape, value_shape, key_shape))
    check_attention_shapes(*shapes)
    return shapes


def fold_axes(tensor, axes):
    """Puts `axes` together before the last axis: `(B, X, Y, D)` with axes `(1, 2)` -> `(B, X·Y, D)`."""
    rank = len(tensor.shape)
    if tuple(axes) == (rank - 2,):
        return tensor
    others = [axis for axis in range(rank - 1) if axis not in axes]
    tensor = ops.transpose(tensor, (*others, *axes, rank - 1))
    sizes = ops.shape(tensor)
    length = functools.reduce(operator.mul, sizes[len(others) : rank - 1])
    return ops.reshape(tensor, (*sizes[: len(others)], length, sizes[-1]))


def unfold_axes(tensor, axes, sizes):
    """Undoes `fold_axes`: `(B, X·Y, ...)` -> `(B, X, Y, ...)`; `sizes` are those of all axes but the last, before folding.

    What follows the folded axis may have any number of axes.
    """
    rank = len(sizes) + 1
    if tuple(axes) == (rank - 2,):
        return tensor
    others = [axis for axis in range(rank - 1) if axis not in axes]
    trailing = ops.shape(tensor)[len(others) + 1 :]
    tensor = ops.reshape(tensor, (*(sizes[axis] for axis in (*others, *axes)), *trailing))
    order = (*others, *axes, *range(rank - 1, rank - 1 + len(trailing)))
    return ops.transpose(tensor, [order.index(axis) for axis in range(len(order))])


def fold_attention_mask(name, mask, query_sizes, key_sizes):
    """`(..., T1, T2, S1, S2)` -> `(..., T1·T2, S1·S2)`, the sizes being those of the attention axes."""
    if len(query_sizes) == 1:
        return mask
    if len(mask.shape) < 2 * len(query_sizes):
        raise ValueError(
            f"`{name}` must end with the {len(query_sizes)} attention axes of the query and those of the key, "
            f"{(*query_sizes, *key_sizes)}. Received shape {tuple(mask.shape)}."
        )
    leading = ops.shape(mask)[: -2 * len(query_sizes)]
    mask = ops.broadcast_to(mask, (*leading, *query_sizes, *key_sizes))
    T, S = (functools.reduce(operator.mul, sizes) for sizes in (query_sizes, key_sizes))
    return ops.reshape(mask, (*leading, T, S))


def folded_weights_shape(axes, num_heads, query_shape, value_shape):
    """Shape of the weights `(B, N, T1, T2, S1, S2)` for attention along `axes` of query and value."""
    axes = attention_axes(axes, len(query_shape))
    batch_shape = (size for axis, size in enumerate(query_shape[:-1]) if axis not in axes)
    lengths = (shape[axis] for shape in (query_shape, value_shape) for axis in axes)
    return (*batch_shape, num_heads, *lengths)


class FoldedAxes:
    """One axis in place of several attention axes around a call, and several again after it.

    Args:
        axes: The attention axes, or `None` for all but the first and the last.
        query, value, key: The tensors of the call.
    """

    def __init__(self, axes, query, value, key):
        fold_shapes(axes, query.shape, value.shape, key.shape)
        self.axes = attention_axes(axes, len(query.shape))
        self.query_sizes, self.key_sizes = ops.shape(query)[:-1], ops.shape(value)[:-1]
        self.query_shape, self.value_shape = query.shape, value.shape

    def fold(self, tensor):
        return fold_axes(tensor, self.axes)

    def fold_masks(self, attention_mask, **padding_masks):
        """All masks by name, after the axes were folded; `None` stays."""
        check_masks(self.query_shape, self.value_shape, None, **padding_masks)
        folded = {
            name: None if mask is None else self.fold(ops.expand_dims(mask, -1))[..., 0]
            for name, mask in padding_masks.items()
        }
        return {**folded, "attention_mask": self.fold_pairs("attention_mask", attention_mask)}

    def fold_pairs(self, name, tensor):
        """What speaks of pairs of query and key, a mask or a bias, after the axes were folded; `None` stays."""
        if tensor is None:
            return None
        sizes = ([sizes[axis] for axis in self.axes] for sizes in (self.query_sizes, self.key_sizes))
        return fold_attention_mask(name, tensor, *sizes)

    def unfold(self, output):
        return unfold_axes(output, self.axes, self.query_sizes)

    def unfold_weights(self, weights):
        if len(self.axes) == 1:
            return weights
        lengths = (sizes[axis] for sizes in (self.query_sizes, self.key_sizes) for axis in self.axes)
        return ops.reshape(weights, (*ops.shape(weights)[:-2], *lengths))
