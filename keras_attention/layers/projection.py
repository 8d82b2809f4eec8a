"""The weights of multi-head attention around its flow: `EinsumDense` on rows, whatever axes stand before them, and norms."""

import functools
import operator

import keras
from keras import ops

from keras_attention.saving.dtype_policies import policy_at
from keras_attention.saving.initializers import fresh


def make_projection(layer, name, inputs_shape, output_shape, contracted=1, activation=None):
    """Built `EinsumDense` from the last axes of the inputs, `contracted` of them, to `output_shape`.

    Args:
        layer: The `MultiHeadAttention`, whose options it gets.
        inputs_shape: `(B, T, D)` with one axis contracted, `(B, T, N, E)` with two.
        output_shape: `(N, H)`, or the features of the output.
    """
    if not layer.by_rows:  # as `project` hands them over
        inputs_shape = (inputs_shape[0], 1, *inputs_shape[1:])
    # Every axis has a letter: the gradient of a kernel whose equation says "..." is fifty times slower in TensorFlow.
    inner, outer = "xy"[:contracted], "nopq"[: len(output_shape)]
    batch = "a" if layer.by_rows else "abcdefg"[: len(inputs_shape) - contracted]
    projection = keras.layers.EinsumDense(
        f"{batch}{inner},{inner}{outer}->{batch}{outer}",
        output_shape=(*[None] * (len(batch) - 1), *output_shape),
        activation=activation,
        bias_axes=outer if layer.use_bias else None,
        kernel_initializer=fresh(layer.kernel_initializer),
        bias_initializer=fresh(layer.bias_initializer),
        kernel_regularizer=layer.kernel_regularizer,
        bias_regularizer=layer.bias_regularizer,
        activity_regularizer=layer._activity_regularizer,
        kernel_constraint=layer.kernel_constraint,
        bias_constraint=layer.bias_constraint,
        dtype=policy_at(layer.dtype_policy, f"{layer.path}/{name}"),
        name=name,
    )
    projection.supports_masking = True  # else Keras warns that it loses the mask, which attention handles itself
    projection.build((None, *inputs_shape[-contracted:]) if layer.by_rows else inputs_shape)
    return projection


def make_norm(layer, name, width):
    """Built root mean square normalization of heads `(..., H)` of this width; it computes in float32."""
    policy = policy_at(layer.dtype_policy, f"{layer.path}/{name}")
    norm = keras.layers.RMSNormalization(dtype=policy, name=name)
    norm.build((None, width))
    return norm


def project(layer, projection, inputs, contracted=1):
    """`(B, T, D)` -> `(B, T, N, H)`, or with two axes contracted `(B, T, N, E)` -> `(B, T, D)`.

    By rows, `(B·T, D)`, it is one plain matrix product: half the time of a batch of them. Otherwise there is an axis of size
    one behind the batch: on TensorFlow Keras adds a bias `(N, 1)` along axis 1 where its size is N, as to NCHW images.
    """
    if not layer.by_rows:
        return ops.squeeze(projection(ops.expand_dims(inputs, 1)), 1)
    sizes = ops.shape(inputs)
    leading, features = sizes[:-contracted], sizes[-contracted:]
    outputs = projection(ops.reshape(inputs, (functools.reduce(operator.mul, leading), *features)))
    return ops.reshape(outputs, (*leading, *outputs.shape[1:]))
