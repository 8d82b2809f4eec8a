"""Rows and columns of images `(..., H, W, D)`: half of the features says the row of a pixel, half its column."""

from keras import ops

from keras_attention.checks.shapes import check_known_width, check_rank


def check_image(inputs_shape):
    """Raises unless the inputs are `(..., H, W, D)` with a known, even D."""
    check_rank("inputs", inputs_shape, 3, "(..., H, W, D)")
    check_known_width("inputs", inputs_shape)
    if inputs_shape[-1] % 2:
        raise ValueError(
            "The width D of `inputs` must be even, one half for the rows and one for the columns. Received shape "
            f"{tuple(inputs_shape)} (D={inputs_shape[-1]}). Project the inputs to an even width."
        )


def masks_along(inputs, mask):
    """Masks in which the pixels of each column and of each row are counted: `mask (..., H, W)` twice.

    Where there is none, all columns are alike, `(H, 1)`, and so are all rows, `(1, W)`.
    """
    if mask is not None:
        return mask, mask
    H, W = ops.shape(inputs)[-3:-1]
    return ops.ones((H, 1), "bool"), ops.ones((1, W), "bool")


def rows_beside_columns(rows, columns):
    """`(..., H, W, D)` from vectors `(..., H, W, D/2)` of rows and of columns, in which H and W may be 1."""
    half = rows.shape[-1]
    rows = ops.pad(rows, [*[(0, 0)] * (len(rows.shape) - 1), (0, half)])
    return rows + ops.pad(columns, [*[(0, 0)] * (len(columns.shape) - 1), (half, 0)])
