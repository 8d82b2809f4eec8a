import keras
import numpy as np
import pytest
from reference import positions
from reference.arrays import to_numpy
from tolerances import FLOAT32

from keras_attention.ops import sinusoids
from keras_attention.ops.positions import (
    order_real_first,
    places_real_first,
    real_positions,
    reordered,
    right_padded,
)

MASK = np.array([[True, True, True, False, False], [False, False, True, False, True], [False] * 5])

# === Positions ===


def test_a_position_is_the_number_of_real_tokens_before_it():
    found = to_numpy(real_positions(MASK))
    assert found.dtype == "int32"
    for row, mask in enumerate(MASK):
        assert found[row][mask].tolist() == list(range(mask.sum()))


def test_padding_has_the_position_of_a_real_token():
    assert to_numpy(real_positions(MASK))[~MASK].tolist() == [2, 2] + [0] * 8


# === Real tokens side by side ===


def test_real_tokens_come_first_in_their_order():
    assert to_numpy(order_real_first(MASK)).tolist() == [[0, 1, 2, 3, 4], [2, 4, 0, 1, 3], [0, 1, 2, 3, 4]]
    assert to_numpy(right_padded(MASK)).sum(axis=1).tolist() == [3, 2, 0]


def test_each_position_knows_its_place_among_them():
    assert to_numpy(places_real_first(MASK)).tolist() == [[0, 1, 2, 3, 4], [2, 3, 0, 4, 1], [0, 1, 2, 3, 4]]


@pytest.mark.parametrize("sizes", [(3,), (3, 2), (0,), (3, 0)], ids=str)
def test_rows_of_any_leading_axes_are_moved_and_moved_back(sizes, rng):
    mask, tensor = rng.random((*sizes, 5)) < 0.5, rng.normal(size=(*sizes, 5, 7)).astype("float32")
    together = to_numpy(reordered(tensor, order_real_first(mask)))
    np.testing.assert_array_equal(together[to_numpy(right_padded(mask))], tensor[mask])
    np.testing.assert_array_equal(to_numpy(reordered(together, places_real_first(mask))), tensor)


# === Sinusoids ===


def test_an_odd_width_interleaves_and_ends_with_a_sine():
    # D19
    table = np.round(to_numpy(sinusoids(np.array([0, 1]), 5)), 4)
    np.testing.assert_allclose(table, [[0, 1, 0, 1, 0], [0.8415, 0.5403, 0.0251, 0.9997, 0.0006]], atol=FLOAT32)


def test_neighbouring_positions_far_out_differ():
    # D03
    table = np.round(to_numpy(sinusoids(np.array([300, 301]), 4)), 4)
    expected = [[-0.9998, -0.0221, 0.1411, -0.9900], [-0.5588, 0.8293, 0.1312, -0.9914]]
    np.testing.assert_allclose(table, expected, atol=FLOAT32)


@pytest.mark.parametrize("width", [1, 2, 7, 16])
def test_table_equals_the_loop(width):
    chosen = [0, 1, 2, 17, 300, 1023]
    table = to_numpy(sinusoids(np.array(chosen), width))
    # float32 angles near 1000 are exact to 3e-5.
    np.testing.assert_allclose(table, positions.sinusoids(chosen, width), atol=1e-4)


def test_width_one_is_the_sine_of_the_position():
    np.testing.assert_allclose(sinusoids(np.array([0, 1, 2]), 1), np.sin([[0], [1], [2]]), atol=FLOAT32)


def test_the_longest_wavelength_can_be_chosen():
    expected = positions.sinusoids([1, 5], 6, max_wavelength=50.0)
    np.testing.assert_allclose(sinusoids(np.array([1, 5]), 6, max_wavelength=50.0), expected, atol=FLOAT32)


def test_positions_may_have_any_shape_and_the_table_is_float32():
    table = sinusoids(np.arange(2 * 3 * 5).reshape(2, 3, 5), 7)
    assert table.shape == (2, 3, 5, 7)
    assert keras.backend.standardize_dtype(table.dtype) == "float32"
    np.testing.assert_allclose(to_numpy(table).reshape(30, 7), positions.sinusoids(range(30), 7), atol=FLOAT32)
