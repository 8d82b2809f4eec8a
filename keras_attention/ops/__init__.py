"""Pure functions that the layers share; `keras.ops` only, so that they run on every backend."""

from keras_attention.ops.masks import (
    aligned_slots,
    causal_mask,
    check_masks,
    merge_masks,
    padding_mask,
    window_mask,
    zero_masked,
)
from keras_attention.ops.positions import sinusoids
from keras_attention.ops.segments import next_memory
from keras_attention.ops.softmax import LOWEST, at_least_float32, mask_scores, masked_log_softmax, masked_softmax

__all__ = [
    "LOWEST",
    "aligned_slots",
    "at_least_float32",
    "causal_mask",
    "check_masks",
    "mask_scores",
    "masked_log_softmax",
    "masked_softmax",
    "merge_masks",
    "next_memory",
    "padding_mask",
    "sinusoids",
    "window_mask",
    "zero_masked",
]
