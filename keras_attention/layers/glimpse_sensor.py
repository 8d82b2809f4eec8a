"""Glimpse sensor: a retina that sees an image sharply around one location, and its surroundings more and more coarsely.

Letters: B images of H rows and W columns of pixels with C channels.
"""

import keras
from keras import ops

from keras_attention.checks.arguments import check_positive_integer, refuse_autocast
from keras_attention.checks.shapes import check_rank, sizes_differ


def averaging_matrix(centers, length, size, cell):
    """The matrix that averages an axis of `length` pixels over `size` cells around a center.

    `matrix[b, j, i]` is the part of cell j that pixel i covers: pixel i reaches from i to i + 1, cell j from
    `centers[b] + cell · (j - size / 2)` to `cell` further. What of a cell lies outside of the image counts as zeros.

    Args:
        centers: Float tensor `(B,)`, in pixels: 0 and `length` are the edges of the image.
        length, size, cell: Numbers of pixels, of cells, and of pixels in a cell.

    Returns:
        Float32 tensor `(B, size, length)`.

    Example:
        >>> averaging_matrix(ops.array([1.5]), 4, 2, 1)
        [[[0.5, 0.5, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0]]]
    """
    edges = centers[:, None, None] + cell * (ops.arange(size + 1, dtype="float32")[:, None] - size / 2)
    pixels = ops.arange(length, dtype="float32")
    overlap = ops.minimum(edges[:, 1:], pixels + 1) - ops.maximum(edges[:, :-1], pixels)  # (B, size, length)
    return ops.maximum(overlap, 0.0) / cell


def crops(images, locations, size, cell):
    """Squares of `size` by `size` cells around the locations, each cell the mean of `cell` by `cell` pixels.

    Args:
        images: Float32 tensor `(B, H, W, C)`.
        locations: Float32 tensor `(B, 2)` of (y, x): the image reaches from -1 to 1.

    Returns:
        Float32 tensor `(B, size, size, C)`.
    """
    _, H, W, _ = ops.shape(images)
    centers = (locations + 1.0) / 2.0 * ops.cast(ops.stack([H, W]), "float32")  # (B, 2), in pixels
    rows = averaging_matrix(centers[:, 0], H, size, cell)  # (B, size, H)
    columns = averaging_matrix(centers[:, 1], W, size, cell)  # (B, size, W)
    averaged = ops.einsum("byh,bhwc->bywc", rows, images)  # (B, size, W, C)
    return ops.einsum("bxw,bywc->byxc", columns, averaged)


@keras.saving.register_keras_serializable(package="keras_attention")
class GlimpseSensor(keras.layers.Layer):
    """A glimpse of an image: square patches around a location, each wider and coarser than the one before.

        width[k]   = size · scale_factor^k                       pixels
        patch[k]   = crop(image, location, width[k]), averaged over scale_factor^k by scale_factor^k pixels
        glimpse    = [patch[0], ..., patch[num_scales - 1]]      along the channels

    A location is (y, x). (0, 0) is the center of the image, (-1, -1) the upper left corner of its first pixel and
    (1, 1) the lower right corner of its last one, so pixel i of an axis of H pixels lies at `(2i + 1) / H - 1`. The
    edges of a patch may fall within pixels, which then count by the part that is covered; the glimpse is a continuous
    function of the location. Outside of the image all is zero. In the paper the sensor is ρ(x, l).

    The gradient of the images is exact. The locations get none: where to look is learned by REINFORCE, as in
    `models.GlimpseClassifier`.

    Args:
        size: Integer, width of a patch after averaging, in cells; that of the first patch in pixels, too.
        num_scales: Integer, number of patches.
        scale_factor: Integer, how many times wider each patch is than the one before.

    Call arguments:
        images: Tensor of numbers, shape `(B, H, W, C)`, of any height and width.
        locations: Float tensor of shape `(B, 2)`.

    Returns:
        Tensor of shape `(B, size, size, num_scales · C)`, the sharpest patch first. Computed in float32.

    Raises:
        ValueError: If the shapes do not fit, or a size is not a positive integer.

    Example:
        >>> sensor = GlimpseSensor(size=1, num_scales=2)
        >>> image = keras.ops.array([[[[1.0], [2.0]], [[3.0], [8.0]]]])
        >>> sensor(image, keras.ops.array([[0.5, -0.5]]))  # the pixel on the left below, and what is around it
        [[[[3.0, 2.0]]]]

    References:
        Mnih, Heess, Graves and Kavukcuoglu, 2014, section 3.1, arXiv:1406.6247.
    """

    def __init__(self, size, num_scales=1, scale_factor=2, **kwargs):
        # Without autocast the locations stay float32: bfloat16 has 256 numbers from 0.5 to 1.
        refuse_autocast(self, kwargs)
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        self.size = check_positive_integer("size", size)
        self.num_scales = check_positive_integer("num_scales", num_scales)
        self.scale_factor = check_positive_integer("scale_factor", scale_factor)

    def build(self, images_shape, locations_shape):
        check_glimpse_shapes(images_shape, locations_shape)
        self.built = True

    def call(self, images, locations):
        check_glimpse_shapes(images.shape, locations.shape)
        images = ops.cast(images, "float32")
        locations = ops.stop_gradient(ops.cast(locations, "float32"))
        cells = [self.scale_factor**scale for scale in range(self.num_scales)]
        patches = [crops(images, locations, self.size, cell) for cell in cells]
        return ops.cast(ops.concatenate(patches, axis=-1), self.compute_dtype)

    def compute_output_shape(self, images_shape, locations_shape):
        check_glimpse_shapes(images_shape, locations_shape)
        channels = None if images_shape[-1] is None else self.num_scales * images_shape[-1]
        return (images_shape[0], self.size, self.size, channels)

    def compute_mask(self, images, previous_mask):
        """None: a glimpse has no positions of a sequence."""
        return None

    def get_config(self):
        return {
            **super().get_config(),
            "size": self.size,
            "num_scales": self.num_scales,
            "scale_factor": self.scale_factor,
        }


def check_glimpse_shapes(images_shape, locations_shape):
    """Raises unless the shapes are `(B, H, W, C)` and `(B, 2)`."""
    check_rank("images", images_shape, 4, "(B, H, W, C)")
    fits = len(images_shape) == 4 and len(locations_shape) == 2 and not sizes_differ(locations_shape[-1], 2)
    if not fits or sizes_differ(images_shape[0], locations_shape[0]):
        raise ValueError(
            "There must be one location (y, x) for each image: shapes (B, H, W, C) and (B, 2). Received images of shape "
            f"{tuple(images_shape)} and locations of shape {tuple(locations_shape)}. Fold further axes into the batch."
        )
