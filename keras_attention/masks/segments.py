"""Mask of packed sequences: several texts in one row, none of which sees another."""

from keras import ops

from keras_attention.checks.shapes import check_exact_rank, sizes_differ
from keras_attention.masks.mask import Mask, check_belongs
from keras_attention.ops.dtypes import as_integers


class Segments(Mask):
    """A query attends to keys of its own segment: `mask[b, t, s] = (query_id[b, t] = key_id[b, s]) and query_id[b, t] ≠ 0`.

    The id 0 is padding: it attends to nothing, and nothing attends to it. `keras_attention.data.pack` makes such ids, and
    positions that restart with each segment. `Causal() & Segments(segment_ids)` is the mask of a language model on packed
    rows.

    Args:
        segment_ids: Integer tensor `(B, T)`, the segment of each query.
        key_segment_ids: Integer tensor `(B, S)`, the segment of each key. `None`: queries and keys are of one sequence, whose
            last slots the queries are where there are fewer of them.

    Example:
        >>> Segments([[1, 1, 2, 0]]).mask(4)
        [[[True, True, False, False], [True, True, False, False], [False, False, True, False], [False, False, False, False]]]
        >>> Segments([[1, 2]], key_segment_ids=[[1, 1, 2]]).mask(2, 3)
        [[[True, True, False], [False, False, True]]]

    References:
        Krell et al., 2021 ("packing without cross-contamination"), arXiv:2107.02027.
    """

    def __init__(self, segment_ids, key_segment_ids=None):
        self.segment_ids = as_integers("segment_ids", segment_ids)
        check_exact_rank("segment_ids", self.segment_ids.shape, 2, "(B, T)")
        self.key_segment_ids = self.segment_ids
        if key_segment_ids is not None:
            self.key_segment_ids = as_integers("key_segment_ids", key_segment_ids)
            check_exact_rank("key_segment_ids", self.key_segment_ids.shape, 2, "(B, S)")
            check_batches(self.segment_ids.shape, self.key_segment_ids.shape)

    def allowed(self, query_slots, key_slots):
        # The ids of the queries end in the slot of the last key, as the queries do.
        first = ops.maximum(ops.shape(self.key_segment_ids)[1] - ops.shape(self.segment_ids)[1], 0)
        query_ids = ops.take(self.segment_ids, query_slots - first, axis=1)  # (B, T, 1)
        key_ids = ops.take(self.key_segment_ids, key_slots, axis=1)  # (B, 1, S)
        return ops.logical_and(ops.equal(query_ids, key_ids), ops.not_equal(query_ids, 0))

    def check_lengths(self, query_length, key_length):
        longest, expected = self.segment_ids.shape[1], self.key_segment_ids.shape[1]
        check_belongs(self, "key_length", key_length, expected)
        of_one_sequence = self.key_segment_ids is self.segment_ids
        is_known = isinstance(query_length, int) and isinstance(longest, int)
        if not (of_one_sequence and is_known and query_length <= longest):
            check_belongs(self, "query_length", query_length, longest)

    def __repr__(self):
        shapes = [f"shape={tuple(self.segment_ids.shape)}"]
        if self.key_segment_ids is not self.segment_ids:
            shapes.append(f"key_shape={tuple(self.key_segment_ids.shape)}")
        return f"Segments({', '.join(shapes)})"


def check_batches(query_shape, key_shape):
    """Raises unless the segments of queries `(B, T)` and keys `(B, S)` are of as many rows, or of one."""
    if 1 not in (query_shape[0], key_shape[0]) and sizes_differ(query_shape[0], key_shape[0]):
        raise ValueError(
            "`segment_ids` and `key_segment_ids` must have as many rows. Received shapes "
            f"{tuple(query_shape)} and {tuple(key_shape)}. Pass the segments of one batch."
        )
