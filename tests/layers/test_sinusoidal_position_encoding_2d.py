import keras
import numpy as np
import pytest
from keras import ops
from reference import positions
from reference.arrays import normal, to_numpy
from tolerances import FLOAT32

from keras_attention.layers import SinusoidalPositionEncoding2D

B, H, W, D = 2, 3, 5, 14  # the halves are odd

# Padding on the right and below, as in a batch of images, and a row, a column and pixels in between.
MASK = np.zeros((B, H, W), bool)
MASK[0, :2, :4] = MASK[1, ::2, [0, 2, 4]] = MASK[1, 0, 1] = True

NORMALIZE = pytest.mark.parametrize("normalize", [True, False])


@NORMALIZE
def test_rows_fill_the_first_half_and_columns_the_second(normalize):
    inputs = normal(B, H, W, D)
    expected = inputs + positions.sinusoids_of_image(np.ones((H, W), bool), D, normalize)
    np.testing.assert_allclose(SinusoidalPositionEncoding2D(normalize)(inputs), expected, atol=FLOAT32)


@NORMALIZE
def test_real_pixels_are_counted_along_each_axis(normalize):
    inputs = normal(B, H, W, D)
    output = to_numpy(SinusoidalPositionEncoding2D(normalize, max_wavelength=50.0)(inputs, mask=MASK))
    for image, mask in enumerate(MASK):
        expected = inputs[image] + positions.sinusoids_of_image(mask, D, normalize, temperature=50.0)
        np.testing.assert_allclose(output[image][mask], expected[mask], atol=FLOAT32)


def test_a_normalized_image_ends_at_a_full_turn_whatever_its_size():
    layer = SinusoidalPositionEncoding2D()
    for size in (2, 19):
        last = to_numpy(layer(np.zeros((size, size, 4), "float32")))[-1, -1]
        np.testing.assert_allclose(last, [0, 1, 0, 1], atol=1e-5)  # sin 2π, cos 2π


@pytest.mark.parametrize("shape", [(H, W, D), (B, 2, H, W, D)])
def test_every_axis_left_of_the_last_three_is_batch(shape):
    layer = SinusoidalPositionEncoding2D()
    expected = layer(np.zeros((1, H, W, D), "float32"))[0]
    np.testing.assert_allclose(layer(np.zeros(shape, "float32")), np.broadcast_to(expected, shape), atol=FLOAT32)


@pytest.mark.parametrize(("policy", "error"), [("mixed_float16", 2**-10), ("mixed_bfloat16", 2**-8)])
def test_half_precision_rounds_the_result_only(policy, error):
    inputs = np.zeros((1, 1024, 2, 32), "float32")
    full = to_numpy(SinusoidalPositionEncoding2D(normalize=False)(inputs))
    half = SinusoidalPositionEncoding2D(normalize=False, dtype=policy)(inputs)
    assert keras.backend.standardize_dtype(half.dtype) == keras.DTypePolicy(policy).compute_dtype
    assert np.abs(to_numpy(ops.cast(half, "float32")) - full).max() <= error


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((B, H, W, 7), r"The width D of `inputs` must be even.* \(2, 3, 5, 7\) \(D=7\)\. Project"),
        ((W, D), r"`inputs` must have at least 3 axes, `\(\.\.\., H, W, D\)`\. Received shape \(5, 14\)"),
    ],
)
def test_inputs_that_are_no_image_are_an_error(shape, message):
    with pytest.raises(ValueError, match=message):
        SinusoidalPositionEncoding2D()(normal(*shape))


def test_a_mask_of_another_size_is_an_error():
    with pytest.raises(ValueError, match=r"`mask` must have one entry for each position, shape \(2, 3, 5\).* \(2, 5\)"):
        SinusoidalPositionEncoding2D()(normal(B, H, W, D), mask=np.ones((B, W), bool))
