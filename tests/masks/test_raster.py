import numpy as np
import pytest
from reference.arrays import to_numpy

from keras_attention.masks import Causal, Raster


def test_raster_order_alone_is_causal():
    np.testing.assert_array_equal(to_numpy(Raster((3, 5)).mask(15)), to_numpy(Causal().mask(15)))


@pytest.mark.parametrize("neighborhood", [(0, 0), (1, 2), (2, 0), (7, 7)])
def test_a_pixel_sees_the_rows_above_and_what_is_to_its_left(neighborhood):
    height, width = 3, 5
    rows, columns = neighborhood
    expected = np.zeros((height, width, height, width), bool)
    for y, x, v, u in np.ndindex(*expected.shape):
        is_before = v < y or (v == y and u <= x)
        expected[y, x, v, u] = is_before and y - v <= rows and abs(x - u) <= columns
    mask = to_numpy(Raster((height, width), neighborhood).mask(height * width))
    np.testing.assert_array_equal(mask.reshape(expected.shape), expected)


def test_the_beginning_of_an_image_is_a_raster_too():
    raster = Raster((3, 5), (1, 1))
    np.testing.assert_array_equal(to_numpy(raster.mask(2, 7)), to_numpy(raster.mask(15))[:, 5:7, :7])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((4,), ValueError, r"`shape` must be two integers, of rows and columns\. Received: 4"),
        (((0, 3),), ValueError, r"`shape` must be at least 1\. Received shape=0"),
        (((2, 3), (1, 0.5)), TypeError, r"`neighborhood` must be an integer\. Received neighborhood=0\.5"),
        (((2, 3), (-1, 1)), ValueError, r"`neighborhood` must be at least 0\. Received neighborhood=-1"),
    ],
)
def test_an_image_has_two_axes(arguments, error, message):
    with pytest.raises(error, match=message):
        Raster(*arguments)


def test_an_image_has_as_many_slots_as_pixels():
    with pytest.raises(
        ValueError, match=r"`key_length` must be at most .*, 2 · 3 = 6\. Received key_length=7 for Raster\(\(2, 3\)\)"
    ):
        Raster((2, 3)).mask(1, 7)
