"""The path of a glimpse model over an image.

Letters in shapes: T glimpses; H rows and W columns of C channels.
"""

import numpy as np
from matplotlib.patches import Rectangle

from keras_attention.checks.arguments import check_same_number
from keras_attention.checks.points import finite_points
from keras_attention.visualization.figures import new_figure
from keras_attention.visualization.labels import drawable
from keras_attention.visualization.points import ANSWER, COLUMNS, PANEL

FIRST, LAST = "#0072B2", "#E69F00"  # blue and orange: different to every kind of eye


def plot_glimpses(image, locations, size, num_scales=1, scale_factor=2, title=None):
    """An image, the centers of the glimpses as numbers along a line, and around each the square that is seen sharply.

    The first square is blue and the last orange. With several scales the wider squares of the last glimpse are dashed.

    Args:
        image: Tensor or array `(H, W)` or `(H, W, C)` with C of 1, 3 or 4; of three and more channels, colours, either
            integers to 255 or numbers from 0 to 1.
        locations: Tensor or array `(T, 2)` of (y, x), from -1 to 1 within the image: one row of what
            `model.glimpses(images)["locations"]` holds.
        size, num_scales, scale_factor: Integers, as in `layers.GlimpseSensor`.
        title: String, such as the predicted class.

    Returns:
        `matplotlib.figure.Figure`; `figure.savefig("path.png")` writes it, `figure.axes[0]` gives access to it.

    Raises:
        ValueError: An image or locations of another shape, or locations that are not finite.

    Example:
        >>> figure = plot_glimpses(np.eye(28), [[0.0, 0.0], [0.5, -0.3]], size=8)
        >>> figure.savefig("path.png")
    """
    return draw([(image, locations)], [title or ""], size, num_scales, scale_factor)


def plot_glimpses_grid(images, locations, size, num_scales=1, scale_factor=2, titles=None):
    """`plot_glimpses` of several images side by side.

    Args:
        images: Tensor or array `(B, H, W)` or `(B, H, W, C)`; a dozen at most is readable.
        locations: Tensor or array `(B, T, 2)`.
        size, num_scales, scale_factor: As in `plot_glimpses`.
        titles: A title for each; by default they are numbered.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ValueError: As `plot_glimpses`; if there is no image, or the numbers of paths and titles differ.

    Example:
        >>> plot_glimpses_grid(np.ones((2, 28, 28)), np.zeros((2, 6, 2)), size=8).savefig("paths.png")
    """
    titles = [str(number) for number in range(1, len(images) + 1)] if titles is None else list(titles)
    check_same_number("Cut them to the same number.", images=images, paths=locations, titles=titles)
    return draw(list(zip(images, locations, strict=True)), titles, size, num_scales, scale_factor)


def draw(panels, titles, size, num_scales, scale_factor):
    """A figure with a square for each `(image, locations)`."""
    columns = min(len(panels), COLUMNS)
    rows = -(-len(panels) // columns)
    figure = new_figure(PANEL * columns, PANEL * rows)
    titles, fonts = drawable(titles)
    for number, ((image, locations), title) in enumerate(zip(panels, titles, strict=True), start=1):
        axes = figure.add_subplot(rows, columns, number)
        image = checked_image(image)
        axes.imshow(image, cmap="gray", interpolation="nearest")
        draw_path(axes, pixels_of(checked_locations(locations), image.shape), size, num_scales, scale_factor)
        axes.set_title(title, fontfamily=fonts, fontsize=9, parse_math=False)
        axes.set_axis_off()
    return figure


def pixels_of(locations, shape):
    """Locations as (x, y) on the axes of `imshow`, on which the first pixel reaches from -0.5 to 0.5."""
    return ((locations + 1) / 2 * shape[:2] - 0.5)[:, ::-1]


def draw_path(axes, centers, size, num_scales, scale_factor):
    """The line, the squares and the numbers of glimpses at `centers (T, 2)`, in the units of the axes."""
    axes.plot(centers[:, 0], centers[:, 1], color=ANSWER["color"], linewidth=1.0)
    last = len(centers) - 1
    for step, center in enumerate(centers):
        color = LAST if step == last else FIRST
        alpha = 1.0 if step in (0, last) else 0.5
        draw_square(axes, center, size, color=color, alpha=alpha, linewidth=1.5)
        axes.annotate(
            str(step + 1),
            center,
            ha="center",
            va="center",
            fontsize=8,
            color="w",
            bbox={"fc": color, "lw": 0, "pad": 1},
        )
    for scale in range(1, num_scales):
        width = size * scale_factor**scale
        draw_square(axes, centers[-1], width, color=LAST, alpha=0.8, linewidth=1.0, linestyle="--")


def draw_square(axes, center, width, **style):
    axes.add_patch(Rectangle(center - width / 2, width, width, fill=False, **style))


def checked_image(image):
    """The image as Matplotlib takes it: `(H, W, 1)`  ->  `(H, W)`"""
    image = np.asarray(image)
    if image.ndim == 3 and image.shape[-1] == 1:
        image = image[..., 0]
    if not (image.ndim == 2 or (image.ndim == 3 and image.shape[-1] in (3, 4))) or image.size == 0:
        raise ValueError(
            f"`image` must have the shape (H, W) or (H, W, C), C being 1, 3 or 4. Received shape {image.shape}. Choose "
            "one image of the batch, and a channel or colours."
        )
    return image


def checked_locations(locations):
    """The locations as an array of float64."""
    locations = np.asarray(locations)
    if locations.ndim != 2 or locations.shape[1] != 2 or len(locations) == 0:
        raise ValueError(
            "`locations` must have shape (T, 2), one glimpse or more. Received locations of shape "
            f'{locations.shape}. Pass one path, such as `model.glimpses(images)["locations"][0]`.'
        )
    return finite_points("locations", locations)
