"""A long sequence read in segments: the memory of the positions before a segment."""

from keras import ops

from keras_attention.checks.arguments import check_positive_integer
from keras_attention.checks.shapes import sizes_differ


def next_memory(memory, inputs, length):
    """The memory for the next segment: the last `length` positions of `memory (B, M, D)` and `inputs (B, T, D)`.

    Fewer where there are no more. Masks `(B, M)` and `(B, T)` of the two are joined and cut by the same call.

    Args:
        memory: What was kept before, or `None` before the first segment.
        inputs: What the block has read now. No gradient flows back into it.
        length: Integer above 0.

    Raises:
        ValueError: If memory and inputs differ in batch or width, or the length is not above 0.

    Example:
        >>> next_memory(ops.array([[1, 2, 3]]), ops.array([[4, 5]]), length=4)
        [[2, 3, 4, 5]]
    """
    length = check_positive_integer("length", length)
    inputs = ops.convert_to_tensor(inputs)
    if memory is not None:
        memory = ops.convert_to_tensor(memory)
        check_segments(memory.shape, inputs.shape)
    joined = inputs if memory is None else ops.concatenate([ops.cast(memory, inputs.dtype), inputs], axis=1)
    return ops.stop_gradient(joined[:, -length:])


def check_segments(memory_shape, inputs_shape):
    """Raises unless a memory and the segment after it differ in their lengths alone."""
    (B, _, *memory_width), (rows, _, *width) = memory_shape, inputs_shape
    if len(memory_width) != len(width) or any(map(sizes_differ, (B, *memory_width), (rows, *width))):
        raise ValueError(
            "`memory` and `inputs` must have one batch and one width, (B, M, D) and (B, T, D). Received shapes "
            f"{tuple(memory_shape)} and {tuple(inputs_shape)}. Keep the memory of each block by itself."
        )


def mask_of_both(memory, memory_mask, inputs, mask):
    """Mask `(B, M + T)` of `memory (B, M, D)` and `inputs (B, T, D)` from their own; `None` where neither has one."""
    if memory_mask is None and mask is None:
        return None
    masks = ((memory, memory_mask), (inputs, mask))
    everything = ops.ones((1, 1), "bool")
    masks = [ops.broadcast_to(everything if mask is None else mask, ops.shape(each)[:2]) for each, mask in masks]
    return ops.concatenate(masks, axis=1)
