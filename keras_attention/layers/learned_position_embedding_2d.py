"""Learned positions of the pixels of an image, added to the inputs."""

import keras

from keras_attention.checks.arguments import check_positive_integer
from keras_attention.checks.shapes import check_not_ragged
from keras_attention.layers.image_axes import check_image, masks_along, rows_beside_columns
from keras_attention.layers.learned_position_embedding import vectors_at
from keras_attention.ops.dtypes import as_floats
from keras_attention.ops.masks import as_mask, check_mask_types, check_padding_mask
from keras_attention.ops.positions import real_positions
from keras_attention.saving.initializers import fresh, get_initializer


@keras.saving.register_keras_serializable(package="keras_attention")
class LearnedPositionEmbedding2D(keras.layers.Layer):
    """Adds a learned vector for the row and one for the column to each pixel, as Detection Transformers may.

    `output[h, w] = inputs[h, w] + [row_embeddings[row]; column_embeddings[column]]`, each of width D/2

    Row and column count the real pixels above and to the left: padding counts nothing, wherever it stands. The paper's code
    has the column first here and the row first in its sinusoids; here the row is first in both.

    Rows and columns need H + W vectors, and every image up to the size of the tables fits. A Vision Transformer has H·W, one
    for each place: that is `LearnedPositionEmbedding` on the image as one row, `(B, H·W, D)`.

    Args:
        max_height: Integer, number of rows that have a vector.
        max_width: Integer, number of columns that have a vector.
        embeddings_initializer: Initializer of both tables, `(max_height, D/2)` and `(max_width, D/2)`.

    Call arguments:
        inputs: Float tensor of shape `(..., H, W, D)` with an even D.
        mask: Boolean tensor `(..., H, W)`, True = a real pixel. The implicit Keras mask is used when it is not given; it
            arrives as `inputs_mask` where another tensor is passed beside the inputs.

    Returns:
        Tensor of shape `(..., H, W, D)`. The mask of the inputs is passed on.

    Raises:
        ValueError: If D is odd, or H or W, with the padding, is larger than its table. A size that is known only while a
            graph runs cannot be checked; the output is NaN at a pixel that has no vector.

    Example:
        >>> LearnedPositionEmbedding2D(max_height=11, max_width=13)(keras.ops.zeros((2, 3, 5, 4))).shape
        (2, 3, 5, 4)

    References:
        Carion et al., 2020, section 4.2 and the code, arXiv:2005.12872.
    """

    def __init__(self, max_height, max_width, embeddings_initializer="uniform", **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.max_height = check_positive_integer("max_height", max_height)
        self.max_width = check_positive_integer("max_width", max_width)
        self.embeddings_initializer = get_initializer(embeddings_initializer)

    def build(self, inputs_shape):
        check_image(inputs_shape)
        self.row_embeddings, self.column_embeddings = (
            self.add_weight(
                name=f"{name}_embeddings",
                shape=(length, inputs_shape[-1] // 2),
                initializer=fresh(self.embeddings_initializer),
            )
            for name, length in (("row", self.max_height), ("column", self.max_width))
        )

    def call(self, inputs, mask=None, inputs_mask=None):
        check_not_ragged(inputs=inputs)
        self._check_size(inputs.shape)
        inputs = as_floats(inputs, self.compute_dtype)
        mask = as_mask(inputs_mask if mask is None else mask)
        check_padding_mask("mask", mask, inputs.shape)
        in_columns, in_rows = masks_along(inputs, mask)
        rows = vectors_at(real_positions(in_columns, axis=-2), self.row_embeddings)
        columns = vectors_at(real_positions(in_rows), self.column_embeddings)
        return inputs + rows_beside_columns(rows, columns)  # (..., H, W, D)

    def _check_size(self, inputs_shape):
        for size, length in zip(inputs_shape[-3:-1], (self.max_height, self.max_width), strict=True):
            if size is not None and size > length:
                raise ValueError(
                    f"An image must have at most max_height={self.max_height} rows and max_width={self.max_width} columns. "
                    f"Received inputs of shape {tuple(inputs_shape)}. Make them smaller, or make the layer with larger "
                    "tables."
                )

    def compute_output_spec(self, inputs, mask=None, inputs_mask=None):
        check_mask_types(mask=inputs_mask if mask is None else mask)
        self._check_size(inputs.shape)
        return keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)

    def compute_output_shape(self, inputs_shape):
        return tuple(inputs_shape)

    def compute_mask(self, inputs, previous_mask):
        return previous_mask

    def get_config(self):
        return {
            **super().get_config(),
            "max_height": self.max_height,
            "max_width": self.max_width,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
        }
