"""Sinusoidal positions, added to the inputs."""

import keras
from keras import ops

from keras_attention.checks.arguments import check_positive
from keras_attention.checks.shapes import check_known_width, check_not_ragged, check_rank
from keras_attention.ops.dtypes import as_floats
from keras_attention.ops.masks import as_mask, check_mask_types, check_padding_mask
from keras_attention.ops.positions import real_positions, sinusoids


@keras.saving.register_keras_serializable(package="keras_attention")
class SinusoidalPositionEncoding(keras.layers.Layer):
    """Adds sines and cosines of the position to the inputs.

    `output[t, 2i] = inputs[t, 2i] + sin(position[t] / max_wavelength^(2i / D))`
    `output[t, 2i + 1] = inputs[t, 2i + 1] + cos(position[t] / max_wavelength^(2i / D))`

    keras-hub's `SinePositionEncoding` returns the sines and cosines alone, for the caller to add; here they are added.

    The position of a token is the number of real tokens before it: padding counts nothing, wherever it stands.
    Sine and cosine alternate, as in the paper; an odd width ends with a sine. Positions and angles are float32 under
    every dtype policy and only the result is cast: bfloat16 cannot tell position 300 from 301.

    Args:
        max_wavelength: Float, the longest wavelength over 2π.

    Call arguments:
        inputs: Float tensor of shape `(..., T, D)`.
        start_index: Integer or scalar integer tensor, position of the first input (for decoding step by step).
        positions: Integer tensor that broadcasts to `(..., T)`; given, it replaces `start_index` and the count.
        mask: Boolean tensor `(..., T)`, True = a real token. The implicit Keras mask is used when it is not given; it
            arrives as `inputs_mask` where another tensor is passed beside the inputs.

    Returns:
        Tensor of shape `(..., T, D)`. The mask of the inputs is passed on.

    Example:
        >>> SinusoidalPositionEncoding()(keras.ops.zeros((1, 2, 5)))[0, 1]
        [0.8415, 0.5403, 0.0251, 0.9997, 0.0006]

    References:
        Vaswani et al., 2017, section 3.5, arXiv:1706.03762.
    """

    def __init__(self, max_wavelength=10000.0, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.max_wavelength = check_positive("max_wavelength", max_wavelength)

    def build(self, inputs_shape):
        check_rank("inputs", inputs_shape, 2, "(..., T, D)")
        check_known_width("inputs", inputs_shape)
        self.built = True

    def call(self, inputs, start_index=0, positions=None, mask=None, inputs_mask=None):
        check_not_ragged(inputs=inputs)
        inputs = as_floats(inputs, self.compute_dtype)
        mask = as_mask(inputs_mask if mask is None else mask)
        check_padding_mask("mask", mask, inputs.shape)
        counted = positions is None
        if counted:
            positions = ops.arange(ops.shape(inputs)[-2], dtype="int32") + ops.cast(start_index, "int32")
        encoding = ops.cast(sinusoids(positions, inputs.shape[-1], self.max_wavelength), inputs.dtype)  # (T, D)
        if counted and mask is not None:
            encoding = ops.take(encoding, real_positions(mask), axis=0)  # (..., T, D)
        return inputs + encoding

    def compute_output_spec(self, inputs, start_index=0, positions=None, mask=None, inputs_mask=None):
        check_mask_types(mask=inputs_mask if mask is None else mask)
        return keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)

    def compute_output_shape(self, inputs_shape):
        return tuple(inputs_shape)

    def compute_mask(self, inputs, previous_mask):
        return previous_mask

    def get_config(self):
        return {**super().get_config(), "max_wavelength": self.max_wavelength}
