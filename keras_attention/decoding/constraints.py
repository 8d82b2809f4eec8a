"""Constraints: which positions of the source a pointer may choose next, given those that it has chosen.

The id 0 is the end, the ids 1 to S are the positions of the source. Leading axes of all tensors are batch: one call
serves a step of decoding, `(B, S)`, and all steps of teacher forcing at once, `(B, T, S)`.
"""

import keras
from keras import ops

from keras_attention.checks.arguments import check_positive_integer
from keras_attention.checks.shapes import sizes_differ
from keras_attention.saving.lookup import get_by_name


@keras.saving.register_keras_serializable(package="keras_attention")
class Constraint:
    """Base class of the constraints; by itself it allows every real position and the end at any time.

    A subclass writes `positions` and `end`; `max_length` if an answer may be longer than S + 1; and `get_config` if it has
    arguments. Padding is never allowed, whatever `positions` says. Where no position is left, the end is allowed in any
    case, so that some id can always be chosen.

    Call arguments:
        mask: Boolean tensor `(..., S)`, True = a real position.
        counts: int32 tensor `(..., S)`, how often each position was chosen so far.
        last: int32 tensor `(...)`, the id chosen last; 0 before the first.

    Returns:
        Boolean tensor `(..., S + 1)`: the ids that may be chosen next, the end first.

    Raises:
        TypeError: If `positions` or `end` return something else than a boolean tensor.
        ValueError: If they return another shape than that of `counts` and of `last`.

    Example:
        A path that never goes back:

        >>> @keras.saving.register_keras_serializable(package="my_package")
        ... class Forward(Constraint):
        ...     def positions(self, mask, counts, last):
        ...         ids = ops.cumsum(ops.ones_like(counts), axis=-1)  # 1, 2, ..., S
        ...         return ids > last[..., None]
        >>> mask = ops.array([[True, True, True, False]])  # the fourth is padding
        >>> Forward()(mask, counts=ops.array([[1, 0, 0, 0]]), last=ops.array([1]))
        [[True, False, True, True, False]]
    """

    def __call__(self, mask, counts, last):
        positions = self._checked("positions", self.positions(mask, counts, last), counts.shape)
        end = self._checked("end", self.end(mask, counts, last), last.shape)
        positions = ops.logical_and(mask, positions)  # (..., S)
        end = ops.logical_or(end, ops.logical_not(ops.any(positions, axis=-1)))  # (...)
        return ops.concatenate([end[..., None], positions], axis=-1)

    def _checked(self, method, allowed, shape):
        """The result of a method of a subclass, after checking its type and shape."""
        form = "`(..., S)`, the shape of `counts`" if method == "positions" else "`(...)`, the shape of `last`"
        rule = f"`{type(self).__name__}.{method}` must return a boolean tensor {form}, here {tuple(shape)}."
        dtype = getattr(allowed, "dtype", None)
        if dtype is None or keras.backend.standardize_dtype(dtype) != "bool":
            received = type(allowed).__name__ if dtype is None else keras.backend.standardize_dtype(dtype)
            raise TypeError(
                f"{rule} Received: {received}. Compare, as in `counts == 0`, or use `ops.zeros_like(last, 'bool')`."
            )
        received = tuple(allowed.shape)
        if len(received) != len(shape) or any(map(sizes_differ, received, shape)):
            raise ValueError(
                f"{rule} Received shape {received}. Pass it through `ops.broadcast_to` if it is one for all rows."
            )
        return allowed

    def positions(self, mask, counts, last):
        """The positions `(..., S)` that may be chosen next."""
        return ops.ones_like(counts, "bool")

    def end(self, mask, counts, last):
        """Whether the answer may end here, `(...)`."""
        return ops.ones_like(last, "bool")

    def max_length(self, length):
        """The most ids that an answer for a source of `length` positions has, the end included.

        The length is an integer or, in a graph, an integer tensor.
        """
        return length + 1

    def get_config(self):
        if type(self).__init__ is not object.__init__:
            raise NotImplementedError(
                f"{type(self).__name__} has arguments of its own and must define `get_config()`, which returns them."
            )
        return {}

    @classmethod
    def from_config(cls, config):
        return cls(**config)

    def __repr__(self):
        # A subclass may lack the config of its arguments as long as it is not saved.
        has_config = type(self).get_config is not Constraint.get_config
        config = self.get_config() if has_config else {}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in config.items())})"

    def __eq__(self, other):
        return type(self) is type(other) and self.get_config() == other.get_config()

    def __hash__(self):
        return hash(type(self))


@keras.saving.register_keras_serializable(package="keras_attention")
class Permutation(Constraint):
    """Every real position exactly once, then the end: a tour, a sorted order.

    Example:
        >>> mask = ops.array([[True, True, True, False]])
        >>> Permutation()(mask, counts=ops.array([[1, 0, 0, 0]]), last=ops.array([1]))
        [[False, False, True, True, False]]
    """

    def positions(self, mask, counts, last):
        return counts == 0

    def end(self, mask, counts, last):
        return ops.zeros_like(last, "bool")  # only where no position is left


@keras.saving.register_keras_serializable(package="keras_attention")
class Polygon(Constraint):
    """Vertices that are all different; the end may come after `min_vertices` of them, or when no position is left.

    Args:
        min_vertices: Integer, the least number of vertices. 3 for convex hulls of points in general position; points on one
            line have a hull of two, which as a label of three or more points would cost the loss 1e30: filter such
            examples, or pass 2.

    Example:
        >>> mask = ops.array([[True, True, True, True]])
        >>> Polygon()(mask, counts=ops.array([[1, 0, 1, 1]]), last=ops.array([4]))
        [[True, False, True, False, False]]
    """

    def __init__(self, min_vertices=3):
        self.min_vertices = check_positive_integer("min_vertices", min_vertices)

    def positions(self, mask, counts, last):
        return counts == 0

    def end(self, mask, counts, last):
        return ops.sum(counts, axis=-1) >= self.min_vertices

    def get_config(self):
        return {"min_vertices": self.min_vertices}


@keras.saving.register_keras_serializable(package="keras_attention")
class Triangles(Constraint):
    """Triangles one after the other, the corners of each in increasing order; the end comes after whole triangles only.

    A triangle may come twice, or cross another. A triangulation of n points has fewer than 2n
    triangles: after 2n of them comes the end. Three or more points on one line have no triangle, but this constraint asks
    for one: filter such examples.

    Example:
        The first corner was 2: the second must leave room for a third.

        >>> mask = ops.array([[True, True, True, True]])
        >>> Triangles()(mask, counts=ops.array([[0, 1, 0, 0]]), last=ops.array([2]))
        [[False, False, False, True, False]]
    """

    def positions(self, mask, counts, last):
        chosen = ops.sum(counts, axis=-1, keepdims=True)
        corner = ops.mod(chosen, 3)  # 0, 1 or 2: the next corner of its triangle
        real = ops.cast(mask, "int32")
        number = ops.sum(real, axis=-1, keepdims=True)
        following = number - ops.cumsum(real, axis=-1)  # real positions after each
        ids = ops.cumsum(ops.ones_like(real), axis=-1)  # 1, 2, ..., S
        increasing = ops.logical_or(corner == 0, ids > last[..., None])
        has_room = following >= 2 - corner  # for the corners that are still to come
        return ops.logical_and(ops.logical_and(increasing, has_room), chosen < 6 * number)

    def end(self, mask, counts, last):
        chosen = ops.sum(counts, axis=-1)
        return ops.logical_and(chosen > 0, ops.mod(chosen, 3) == 0)

    def max_length(self, length):
        """Three corners for each of the 2n triangles, and the end."""
        return 6 * length + 1


_CONSTRAINTS = {"permutation": Permutation, "polygon": Polygon, "triangles": Triangles}


def get(constraint):
    """The constraint that a name, an object, its config or `None` (none) stands for."""
    return Constraint() if constraint is None else get_by_name(constraint, _CONSTRAINTS, Constraint, "constraint")
