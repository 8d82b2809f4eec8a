import io

import numpy as np
import pytest
from keras import ops

from keras_attention.visualization import plot_glimpses, plot_glimpses_grid

H, W, T, SIZE = 7, 11, 3, 2
PATH = [[0.0, 0.0], [-1.0, -1.0], [1.0, 0.5]]
CENTERS = [[5.0, 3.0], [-0.5, -0.5], [7.75, 6.5]]  # (x, y) on the axes, whose first pixel is at 0


def drawn(figure):
    """The figure after everything in it has been drawn once, warnings being errors."""
    figure.savefig(io.BytesIO(), format="png")
    return figure


def image_of(*shape):
    return np.random.default_rng(7).random(shape)


def squares(axes):
    """`(center, width)` of each square."""
    return [
        ([patch.get_x() + patch.get_width() / 2, patch.get_y() + patch.get_height() / 2], patch.get_width())
        for patch in axes.patches
    ]


def test_the_path_is_a_line_with_a_numbered_square_at_each_glimpse():
    (axes,) = drawn(plot_glimpses(image_of(H, W), PATH, SIZE, title="seven")).axes
    (line,) = axes.lines
    np.testing.assert_allclose(line.get_xydata(), CENTERS)
    assert squares(axes) == [(center, SIZE) for center in CENTERS]
    assert {text.get_text(): list(text.xy) for text in axes.texts} == dict(zip("123", CENTERS, strict=True))
    assert axes.get_title() == "seven"
    assert axes.images[0].get_array().shape == (H, W)


def test_the_wider_squares_of_the_last_glimpse_are_dashed():
    (axes,) = drawn(plot_glimpses(image_of(H, W), PATH, SIZE, num_scales=3, scale_factor=3)).axes
    assert squares(axes)[T:] == [(CENTERS[-1], 6), (CENTERS[-1], 18)]
    assert [patch.get_linestyle() for patch in axes.patches[T:]] == ["--", "--"]


@pytest.mark.parametrize("shape", [(H, W, 1), (H, W, 3), (H, W, 4)])
def test_images_with_channels_and_tensors_are_drawn(shape):
    image, path = ops.array(image_of(*shape), "float32"), ops.array(PATH, "float32")
    (axes,) = drawn(plot_glimpses(image, path, SIZE)).axes
    assert axes.images[0].get_array().shape == (shape[:2] if shape[2] == 1 else shape)


def test_images_fill_rows_of_four_and_have_paths_of_their_own():
    paths = np.array([PATH] * 5) * np.arange(5)[:, None, None] / 5
    figure = drawn(plot_glimpses_grid(image_of(5, H, W, 1), paths, SIZE))
    assert figure.axes[0].get_subplotspec().get_gridspec().get_geometry() == (2, 4)
    assert [axes.get_title() for axes in figure.axes] == ["1", "2", "3", "4", "5"]
    ends = [axes.lines[0].get_xydata()[-1].tolist() for axes in figure.axes]
    np.testing.assert_allclose(ends, [[5 + 2.75 * k / 5, 3 + 3.5 * k / 5] for k in range(5)])


def test_a_single_glimpse_is_drawn():
    assert len(squares(drawn(plot_glimpses(image_of(H, W), PATH[:1], SIZE)).axes[0])) == 1


@pytest.mark.parametrize("shape", [(H,), (H, W, 2), (2, H, W, 1), (0, W)])
def test_what_is_no_image_raises(shape):
    with pytest.raises(ValueError, match=r"`image` must have the shape .* Received shape \(.*Choose one image"):
        plot_glimpses(np.zeros(shape), PATH, SIZE)


@pytest.mark.parametrize("path", [[0.0, 0.0], [[0.0, 0.0, 0.0]], [[np.nan, 0.0]], np.zeros((0, 2))])
def test_a_path_has_finite_places(path):
    with pytest.raises(ValueError, match=r"`locations` must (have shape \(T, 2\).*Pass one path|be finite in float64)"):
        plot_glimpses(image_of(H, W), path, SIZE)


def test_the_numbers_of_images_paths_and_titles_agree():
    with pytest.raises(ValueError, match=r"Received 2 images, 1 paths and 2 titles. Cut them to the same number"):
        plot_glimpses_grid(image_of(2, H, W), [PATH], SIZE)
    with pytest.raises(ValueError, match="Received 0 images, 0 paths and 0 titles"):
        plot_glimpses_grid([], [], SIZE)
