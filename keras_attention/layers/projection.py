"""The projections of multi-head attention: `EinsumDense` on rows, whatever axes stand before the features."""

import functools
import operator

import keras
from keras import ops

from keras_attention.saving.initializers import fresh


def make_projection(inputs_shape, output_shape, *, contracted, by_rows, use_bias, initializers, **options):
    """Built `EinsumDense` from the last axes of the inputs, `contracted` of them, to `output_shape`.

    Args:
        inputs_shape: `(B, T, D)` with one axis contracted, `(B, T, N, E)` with two.
        output_shape: `(N, H)`, or the features of the output.
        by_rows: Boolean, whether `project` will hand it `(B·T, ...)`.
        initializers: `(kernel_initializer, bias_initializer)`.
        options: Further arguments of `EinsumDense`.
    """
    if not by_rows:  # as `project` hands them over
        inputs_shape = (inputs_shape[0], 1, *inputs_shape[1:])
    # Every axis has a letter: the gradient of a kernel whose equation says "..." is fifty times slower in TensorFlow.
    inner, outer = "xy"[:contracted], "nopq"[: len(output_shape)]
    batch = "a" if by_rows else "abcdefg"[: len(inputs_shape) - contracted]
    kernel_initializer, bias_initializer = map(fresh, initializers)
    projection = keras.layers.EinsumDense(
        f"{batch}{inner},{inner}{outer}->{batch}{outer}",
        output_shape=(*[None] * (len(batch) - 1), *output_shape),
        bias_axes=outer if use_bias else None,
        kernel_initializer=kernel_initializer,
        bias_initializer=bias_initializer,
        **options,
    )
    projection.supports_masking = True  # else Keras warns that it loses the mask, which attention handles itself
    projection.build((None, *inputs_shape[-contracted:]) if by_rows else inputs_shape)
    return projection


def project(projection, inputs, *, contracted, by_rows):
    """`(B, T, D)` -> `(B, T, N, H)`, or with two axes contracted `(B, T, N, E)` -> `(B, T, D)`.

    By rows, `(B·T, D)`, it is one plain matrix product: half the time of a batch of them. Otherwise there is an axis of size
    one behind the batch: on TensorFlow Keras adds a bias `(N, 1)` along axis 1 where its size is N, as to NCHW images.
    """
    if not by_rows:
        return ops.squeeze(projection(ops.expand_dims(inputs, 1)), 1)
    sizes = ops.shape(inputs)
    leading, features = sizes[:-contracted], sizes[-contracted:]
    outputs = projection(ops.reshape(inputs, (functools.reduce(operator.mul, leading), *features)))
    return ops.reshape(outputs, (*leading, *outputs.shape[1:]))
