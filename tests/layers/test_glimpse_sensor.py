import functools

import keras
import numpy as np
import pytest
from compiled import compiled
from keras import ops
from reference import glimpses
from reference.arrays import normal, to_numpy
from reference.gradients import gradient
from tolerances import EXACT, FLOAT32

from keras_attention.layers import GlimpseSensor

B, H, W, C = 2, 7, 11, 3


@functools.cache
def sensor_of(*arguments, **options):
    """The sensor as a function, which JAX compiles once for each shape."""
    return compiled(GlimpseSensor.__call__, GlimpseSensor(*arguments, **options))


def location_of(*pixels):
    """Where the corner of a pixel `(row, column)` lies."""
    return np.array([pixels], "float32") / (H, W) * 2 - 1


@pytest.mark.parametrize("size, num_scales, scale_factor", [(1, 1, 2), (2, 3, 2), (5, 2, 3)])
def test_a_glimpse_equals_the_loop_at_any_location(size, num_scales, scale_factor, rng):
    locations = np.array([[0, 0], [-1, -1], [1, 1], [-1, 1], [1.3, -0.2], [-5, 0], [0.7, 9]], "float32")
    locations = np.concatenate([locations, rng.uniform(-1.2, 1.2, (6, 2)).astype("float32")])
    images = normal(len(locations), H, W, C)
    found = sensor_of(size, num_scales, scale_factor)(images, locations)
    expected = [
        glimpses.glimpse(image, location.astype("float64"), size, num_scales, scale_factor)
        for image, location in zip(images, locations, strict=True)
    ]
    np.testing.assert_allclose(found, expected, atol=FLOAT32)


def test_a_glimpse_at_whole_pixels_is_a_slice_of_the_image():
    images = normal(1, H, W, C)
    glimpse = sensor_of(size=3)(images, location_of(3.5, 5.5))  # the centers of pixels 3 and 5
    np.testing.assert_allclose(glimpse, images[:, 2:5, 4:7], atol=FLOAT32)
    glimpse = sensor_of(size=4)(images, location_of(2, 5))
    np.testing.assert_allclose(glimpse, images[:, :4, 3:7], atol=FLOAT32)


def test_the_second_scale_is_the_average_pooling_of_a_patch_twice_as_wide():
    images = normal(1, H, W, C)
    glimpse = to_numpy(sensor_of(size=3, num_scales=2)(images, location_of(3, 5)))
    pooled = images[:, :6, 2:8].reshape(1, 3, 2, 3, 2, C).mean(axis=(2, 4))
    np.testing.assert_allclose(glimpse[..., C:], pooled, atol=FLOAT32)


def test_the_edges_of_the_image_are_at_minus_one_and_one():
    images = np.ones((1, H, W, 1), "float32")
    corners = [[-1, -1], [1, 1], [-1, 0], [0, 1]]
    glimpse = sensor_of(size=1, num_scales=1)(np.repeat(images, 4, axis=0), np.array(corners, "float32"))
    np.testing.assert_allclose(glimpse[:, 0, 0, 0], [0.25, 0.25, 0.5, 0.5], atol=FLOAT32)


@pytest.mark.parametrize("location", [[-100.0, 0.0], [0.0, 7.0], [np.inf, 0.0], [0.0, -np.inf], [1e38, -1e38]])
def test_outside_of_the_image_all_is_zero(location):
    glimpse = sensor_of(size=2, num_scales=2)(normal(1, H, W, C), np.array([location], "float32"))
    np.testing.assert_allclose(glimpse, 0.0, atol=EXACT)


def test_an_image_of_one_pixel_is_seen_at_every_scale():
    glimpse = to_numpy(sensor_of(size=1, num_scales=3)(np.full((1, 1, 1, 1), 16.0, "float32"), np.zeros((1, 2))))
    assert glimpse.ravel().tolist() == [16.0, 4.0, 1.0]


def test_the_gradient_of_the_images_is_exact(rng):
    images, locations = normal(B, H, W, C), rng.uniform(-1.2, 1.2, (B, 2)).astype("float32")
    sensor, factors = sensor_of(size=2, num_scales=2), normal(B, 2, 2, 2 * C, seed=1)
    found = gradient(lambda images: ops.sum(sensor(images, locations) * factors), images)
    # A glimpse is linear in the image: its value at one pixel of size one is the gradient of that pixel.
    for b, row, column, c in [(0, 3, 5, 1), (1, 4, 4, 0), (1, 0, 10, 2)]:
        pixel = np.zeros((H, W, C))
        pixel[row, column, c] = 1.0
        expected = (glimpses.glimpse(pixel, locations[b].astype("float64"), 2, 2, 2) * factors[b]).sum()
        np.testing.assert_allclose(found[b, row, column, c], expected, atol=FLOAT32)
    assert np.abs(found).max() > FLOAT32


def test_locations_get_no_gradient():
    sensor = sensor_of(size=2)
    assert not gradient(lambda locations: ops.sum(sensor(normal(B, H, W, C), locations)), normal(B, 2)).any()


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_the_place_of_a_glimpse_is_exact_in_half_precision(policy):
    images = np.arange(257.0, dtype="float32").reshape(1, 1, 257, 1)
    locations = np.array([[0.0, (2 * 251 + 1) / 257 - 1]], "float32")
    glimpse = sensor_of(size=1, dtype=policy)(images, locations)
    assert keras.backend.standardize_dtype(glimpse.dtype) == policy.removeprefix("mixed_")
    np.testing.assert_allclose(ops.cast(glimpse, "float32"), [[[[251.0]]]], rtol=1e-3)


def test_integer_images_are_read_as_numbers():
    image = np.arange(H * W, dtype="uint8").reshape(1, H, W, 1)
    assert to_numpy(sensor_of(size=1)(image, location_of(3.5, 5.5))).ravel().tolist() == [3 * W + 5]


def test_one_model_sees_images_of_every_size():
    images, locations = keras.Input((None, None, C)), keras.Input((2,))
    sensor = GlimpseSensor(size=3, num_scales=2)
    model = keras.Model([images, locations], sensor(images, locations))
    assert model.output.shape == (None, 3, 3, 2 * C)
    for shape in ((B, H, W, C), (5, 13, 2, C)):
        arrays = normal(*shape), normal(shape[0], 2)
        np.testing.assert_allclose(model.predict_on_batch(arrays), sensor(*arrays), atol=FLOAT32)


@pytest.mark.parametrize("shape", [(0, H, W, C), (B, 0, W, C), (B, H, 0, C)])
def test_empty_images_give_empty_or_zero_glimpses(shape):
    glimpse = sensor_of(size=2)(np.ones(shape, "float32"), np.zeros((shape[0], 2), "float32"))
    assert glimpse.shape == (shape[0], 2, 2, C)
    assert not to_numpy(glimpse).any()


@pytest.mark.parametrize(
    "images, locations, message",
    [
        ((H, W, C), (B, 2), r"`images` must have at least 4 axes, `\(B, H, W, C\)`. Received shape \(7, 11, 3\)"),
        ((B, H, W, C), (B, 3), r"one location \(y, x\) for each image.*locations of shape \(2, 3\)"),
        ((B, H, W, C), (5, 2), r"one location \(y, x\) for each image.*locations of shape \(5, 2\)"),
        ((B, 1, H, W, C), (B, 2), r"Received images of shape \(2, 1, 7, 11, 3\).*Fold further axes"),
    ],
)
def test_shapes_that_do_not_fit(images, locations, message):
    with pytest.raises(ValueError, match=message):
        GlimpseSensor(size=2)(np.zeros(images), np.zeros(locations))


@pytest.mark.parametrize("argument", ["size", "num_scales", "scale_factor"])
@pytest.mark.parametrize("value, error", [(0, ValueError), (2.5, ValueError)])
def test_sizes_are_positive_integers(argument, value, error):
    with pytest.raises(error, match=f"`{argument}` must be a positive integer. Received: {value}"):
        GlimpseSensor(**{"size": 3, argument: value})


def test_images_of_another_rank_are_refused_after_the_first_call_too():
    sensor = GlimpseSensor(size=2)
    sensor(np.zeros((1, 3, 5, 2)), np.zeros((1, 2)))
    message = r"one location \(y, x\) for each image.* Received images of shape \(1, 7, 3, 5, 2\)"
    for make in (np.zeros, lambda shape: keras.Input(batch_shape=shape)):
        with pytest.raises(ValueError, match=message):
            sensor(make((1, 7, 3, 5, 2)), make((1, 2)))
