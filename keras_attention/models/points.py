"""The inputs of a pointer network as arrays: points `(B, S, F)` with a mask, and the indices of an answer."""

import numpy as np
from keras import ops

from keras_attention.checks.messages import shortened
from keras_attention.checks.points import check_digits, finite_points
from keras_attention.checks.shapes import check_not_ragged, sizes_differ
from keras_attention.models.ids import integer_rows, lengths_of_rows, take_input
from keras_attention.ops.known_values import known_values
from keras_attention.ops.masks import as_mask
from keras_attention.tokens import PAD

BEHIND_END = "0 ends an answer: only 0 may follow it."


def no_position(name):
    return f"`{name}` must hold 0 or the position, from 1, of a real point."


def checked_inputs(inputs):
    """The inputs of a call, after checking the mask; a list, in the order of the names, becomes a dictionary.

    Other inputs than `{"source", "source_mask", "target"}` are left to Keras, whose messages name the missing ones.
    """
    names = ("source", "source_mask", "target")
    if isinstance(inputs, list | tuple) and len(inputs) == len(names):
        inputs = dict(zip(names, inputs, strict=True))
    if not isinstance(inputs, dict) or any(getattr(inputs.get(name), "shape", None) is None for name in names):
        return inputs
    source_shape = inputs["source"].shape
    mask = as_mask(inputs["source_mask"], "source_mask")
    if len(mask.shape) != 2 or any(map(sizes_differ, mask.shape, source_shape)):
        raise ValueError(
            f"`source_mask` must have one entry for each position, shape {tuple(source_shape[:2])} (True = a real position). "
            f"Received shape {tuple(mask.shape)}."
        )
    return inputs


def check_points(inputs, feature_dim):
    """`{"source": float32 (B, S, F), "source_mask": bool (B, S)}`, after checking rank, width, mask, numbers and digits.

    Args:
        inputs: Such a dictionary, the mask in it or not; an array `(B, S, F)`; or a list of B arrays `(n, F)`, which are
            padded: `[[[1.0], [2.0]], [[3.0]]]` -> `[[[1.0], [2.0]], [[3.0], [0.0]]]` with `[[True, True], [True, False]]`.
        feature_dim: Integer F.
    """
    mask = inputs.get("source_mask") if isinstance(inputs, dict) else None
    points = take_input(inputs, "source") if isinstance(inputs, dict) else inputs
    check_not_ragged(source=points)
    lengths = lengths_of_rows(points)
    if len(set(lengths)) > 1:
        if mask is not None:
            raise ValueError(
                "`source_mask` belongs to an array `(B, S, F)`. Received it beside a list of arrays of the lengths "
                f"{shortened(lengths)}, whose padding is masked by itself. Leave it out."
            )
        mask = np.arange(max(lengths)) < np.array(lengths)[:, None]
        points = pad_rows(points, feature_dim)
    elif isinstance(points, list | tuple) and len(lengths) == len(points) and not any(lengths):
        points = np.zeros((len(points), 0, feature_dim))  # no source, or sources without a position
    points = ops.convert_to_numpy(points)
    if points.ndim != 3 or points.shape[-1] != feature_dim:
        raise ValueError(
            f"`source` must have shape (B, S, {feature_dim}), S positions of {feature_dim} features. Received shape "
            f"{points.shape}. Wrap a single source in a list, or make the model with another `feature_dim`."
        )
    mask = np.ones(points.shape[:2], "bool") if mask is None else ops.convert_to_numpy(mask)
    is_mask = mask.dtype == "bool" or (np.issubdtype(mask.dtype, np.integer) and np.isin(mask, (0, 1)).all())
    if mask.shape != points.shape[:2] or not is_mask:
        raise ValueError(
            "`source_mask` must be boolean, or integers 0 and 1, of shape (B, S), here "
            f"{points.shape[:2]} (True = a real position). Received shape {mask.shape} and dtype {mask.dtype}."
        )
    mask = mask.astype("bool")
    finite_points("source", np.where(mask[..., None], points, 0), "float32")
    for row, real in enumerate(mask):
        check_digits(points[row][real], f"in row {row}")
    return {"source": points.astype("float32"), "source_mask": mask}


def pad_rows(rows, feature_dim):
    """Arrays `(n, F)` of their own lengths as one array `(B, S, F)` with zeros after the end of each."""
    rows = [np.reshape(row, (0, feature_dim)) if len(row) == 0 else np.asarray(row) for row in rows]
    if any(row.ndim != 2 or row.shape[1] != feature_dim for row in rows):
        raise ValueError(
            f"Each source of a list must have shape (n, {feature_dim}). Received shapes "
            f"{shortened([row.shape for row in rows])}."
        )
    longest = max(map(len, rows))
    return np.stack([np.pad(row, ((0, longest - len(row)), (0, 0))) for row in rows])


def check_indices(indices, mask):
    """`indices` as int32 `(B, T)`, after checking that they are positions, from 1, of real points of `mask`, then 0."""
    indices = integer_rows("target", indices, "indices", "T", "answer").astype("int64")
    behind_end = (indices[:, 1:] != PAD) & (indices[:, :-1] == PAD)
    if behind_end.any():
        row, step = np.argwhere(behind_end)[0]
        raise ValueError(
            f"{BEHIND_END} Received `target` {shortened(indices[row].tolist())} in row {row}, with "
            f"{indices[row, step + 1]} behind a 0. Positions count from 1."
        )
    if len(indices) == len(mask):
        B, S = mask.shape
        known = np.concatenate([np.ones((B, 1), "bool"), mask], axis=1)  # (B, S + 1)
        outside = (indices < 0) | (indices > S)
        wrong = outside | ~np.take_along_axis(known, np.where(outside, 0, indices), axis=1)
        if wrong.any():
            row, step = np.argwhere(wrong)[0]
            raise ValueError(
                f"{no_position('target')} Received {indices[row, step]} in row "
                f"{row}, whose source has {int(mask[row].sum())} of {S} positions that are real."
            )
    return indices.astype("int32")


def check_targets(inputs):
    """Raises if the values of `{"source_mask": (B, S), "target": (B, T)}` are known, and an index is not in [0, S].

    An index of padding passes: its label already costs 1e30.
    """
    if not isinstance(inputs, dict) or not {"source_mask", "target"} <= set(inputs):
        return
    indices = known_values(inputs["target"])
    if indices is None:
        return
    S = np.shape(inputs["source_mask"])[1]
    wrong = ~((indices >= 0) & (indices <= S) & (indices == np.floor(indices)))
    if wrong.any():
        raise ValueError(
            f"`target` must hold 0 or a position of the source, from 1 to {S}. Received {indices[wrong][0]} among indices of "
            f"shape {indices.shape}. Count positions from 1."
        )
