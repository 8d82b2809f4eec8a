"""Sinusoidal positions of the pixels of an image, added to the inputs."""

import math

import keras
from keras import ops

from keras_attention.checks.arguments import check_boolean, check_positive
from keras_attention.checks.shapes import check_not_ragged
from keras_attention.layers.image_axes import check_image, masks_along, rows_beside_columns
from keras_attention.ops.dtypes import as_floats
from keras_attention.ops.masks import as_mask, check_mask_types, check_padding_mask
from keras_attention.ops.positions import number_of_real, real_positions, sinusoids


def scaled_pixels(mask, axis, normalize):
    """Float32 positions `(..., H, W)` of pixels along an axis of `mask (..., H, W)`: from 1 on, or `normalize`d to 2π."""
    counts = ops.cast(real_positions(mask, axis) + 1, "float32")
    if not normalize:
        return counts
    # The paper's code adds 1e-6 to the number of pixels; here it keeps an image of padding finite, too.
    return counts / (ops.cast(number_of_real(mask, axis), "float32") + 1e-6) * (2 * math.pi)


@keras.saving.register_keras_serializable(package="keras_attention")
class SinusoidalPositionEncoding2D(keras.layers.Layer):
    """Adds sines and cosines of row and column to each pixel, as Detection Transformers do.

        output[h, w] = inputs[h, w] + [sinusoids(row); sinusoids(column)],     each of width D/2
        row    = 2π · (real pixels of the column down to h) / (all its real pixels)
        column = 2π · (real pixels of the row up to w) / (all its real pixels)

    `sinusoids` are those of `SinusoidalPositionEncoding`. Padding counts nothing, wherever it stands. Positions and angles
    are float32 under every dtype policy.

    Args:
        normalize: Boolean. Whether positions are scaled so that the last one of every image is 2π, as in the models of the
            paper; `False` counts pixels from 1 on.
        max_wavelength: Float, the longest wavelength over 2π; `temperature` in the paper's code.

    Call arguments:
        inputs: Float tensor of shape `(..., H, W, D)` with an even D.
        mask: Boolean tensor `(..., H, W)`, True = a real pixel. The implicit Keras mask is used when it is not given; it
            arrives as `inputs_mask` where another tensor is passed beside the inputs.

    Returns:
        Tensor of shape `(..., H, W, D)`. The mask of the inputs is passed on.

    Example:
        >>> SinusoidalPositionEncoding2D(normalize=False)(keras.ops.zeros((1, 2, 3, 4)))[0, 1, 0]
        [0.9093, -0.4161, 0.8415, 0.5403]

    References:
        Carion et al., 2020, appendix A.4, arXiv:2005.12872.
    """

    def __init__(self, normalize=True, max_wavelength=10000.0, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.normalize = check_boolean("normalize", normalize)
        self.max_wavelength = check_positive("max_wavelength", max_wavelength)

    def build(self, inputs_shape):
        check_image(inputs_shape)
        self.built = True

    def call(self, inputs, mask=None, inputs_mask=None):
        check_not_ragged(inputs=inputs)
        inputs = as_floats(inputs, self.compute_dtype)
        mask = as_mask(inputs_mask if mask is None else mask)
        check_padding_mask("mask", mask, inputs.shape)
        rows, columns = (
            sinusoids(scaled_pixels(along, axis, self.normalize), inputs.shape[-1] // 2, self.max_wavelength)
            for axis, along in zip((-2, -1), masks_along(inputs, mask), strict=True)
        )
        return inputs + ops.cast(rows_beside_columns(rows, columns), inputs.dtype)  # (..., H, W, D)

    def compute_output_spec(self, inputs, mask=None, inputs_mask=None):
        check_mask_types(mask=inputs_mask if mask is None else mask)
        return keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)

    def compute_output_shape(self, inputs_shape):
        return tuple(inputs_shape)

    def compute_mask(self, inputs, previous_mask):
        return previous_mask

    def get_config(self):
        return {**super().get_config(), "normalize": self.normalize, "max_wavelength": self.max_wavelength}
