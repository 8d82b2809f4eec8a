import keras
import numpy as np
import pytest
from keras import ops
from reference.arrays import normal, to_numpy
from tolerances import EXACT, FLOAT32

from keras_attention.layers import LearnedPositionEmbedding2D

B, H, W, D, HEIGHT, WIDTH = 2, 3, 5, 14, 11, 13
ROWS, COLUMNS = normal(HEIGHT, D // 2, seed=1), normal(WIDTH, D // 2, seed=2)


@pytest.fixture
def layer():
    layer = LearnedPositionEmbedding2D(HEIGHT, WIDTH)
    layer.build((B, H, W, D))
    layer.set_weights([ROWS, COLUMNS])
    return layer


def test_the_vectors_of_row_and_column_stand_beside_each_other(layer):
    inputs = normal(B, H, W, D)
    expected = inputs.copy()
    for row in range(H):
        for column in range(W):
            expected[:, row, column] += np.concatenate([ROWS[row], COLUMNS[column]])
    np.testing.assert_allclose(layer(inputs), expected, atol=EXACT)


def test_real_pixels_are_counted_along_each_axis(layer):
    inputs, mask = normal(B, H, W, D), normal(B, H, W, seed=3) > 0
    output = to_numpy(layer(inputs, mask=mask))
    for image, row, column in np.argwhere(mask):
        above, left = mask[image, :row, column].sum(), mask[image, row, :column].sum()
        expected = inputs[image, row, column] + np.concatenate([ROWS[above], COLUMNS[left]])
        np.testing.assert_allclose(output[image, row, column], expected, atol=EXACT)


def test_both_tables_start_with_numbers_of_their_own():
    layer = LearnedPositionEmbedding2D(5, 5, keras.initializers.RandomNormal())
    layer.build((B, H, W, D))
    rows, columns = layer.get_weights()
    assert np.abs(rows - columns).min() > 0


@pytest.mark.parametrize("shape", [(B, HEIGHT + 1, W, D), (B, H, WIDTH + 1, D)])
def test_images_larger_than_the_tables_are_an_error_also_in_a_graph(shape, layer):
    message = (
        rf"at most max_height=11 rows and max_width=13 columns\. Received inputs of shape .*, {shape[1]}, {shape[2]}"
    )
    for inputs in (normal(*shape), keras.Input(shape[1:])):
        with pytest.raises(ValueError, match=message):
            layer(inputs)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision_returns_the_compute_type(policy, layer):
    half = LearnedPositionEmbedding2D(HEIGHT, WIDTH, dtype=policy)
    half.build((B, H, W, D))
    half.set_weights(layer.get_weights())
    output = half(np.zeros((B, H, W, D), "float32"))
    assert keras.backend.standardize_dtype(output.dtype) == keras.DTypePolicy(policy).compute_dtype
    np.testing.assert_allclose(ops.cast(output, "float32"), layer(np.zeros((B, H, W, D), "float32")), atol=0.02)


@pytest.mark.parametrize("name", ["max_height", "max_width"])
def test_sizes_must_be_positive_integers(name):
    with pytest.raises(ValueError, match=rf"`{name}` must be a positive integer\. Received: 0\."):
        LearnedPositionEmbedding2D(**{"max_height": 2, "max_width": 3, name: 0})


def test_the_width_must_be_even(layer):
    with pytest.raises(ValueError, match=r"must be even.* \(2, 3, 5, 7\) \(D=7\)"):
        LearnedPositionEmbedding2D(HEIGHT, WIDTH)(normal(B, H, W, 7))


def test_an_image_without_pixels_is_empty(layer):
    assert layer(np.zeros((B, 0, W, D), "float32")).shape == (B, 0, W, D)
    np.testing.assert_allclose(
        layer(normal(1, 1, 1, D)), normal(1, 1, 1, D) + np.append(ROWS[0], COLUMNS[0]), atol=FLOAT32
    )
