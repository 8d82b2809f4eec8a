"""Rotary positions: numbers by hand and from the formula, layouts, images, distances, half precision."""

import keras
import numpy as np
import pytest
from compiled import compiled
from reference.arrays import normal, to_numpy
from reference.position_schemes import rotary_angles, turned
from tolerances import EXACT, FLOAT32

from keras_attention.layers import MultiHeadAttention
from keras_attention.positions import Rotary

B, N, T, H = 2, 3, 5, 14

LAYOUTS = {
    "halves": ({}, [(pair, pair + 7) for pair in range(7)]),
    "interleaved": ({"interleaved": True}, [(2 * pair, 2 * pair + 1) for pair in range(7)]),
    "partial": ({"rotary_dim": 6}, [(0, 3), (1, 4), (2, 5)]),
    "scaled": ({"rotary_dim": 4, "interleaved": True, "scaling_factor": 2.5}, [(0, 1), (2, 3)]),
    "grid": ({"rotary_dim": 8, "grid": (17, 19)}, [(0, 4), (1, 5), (2, 6), (3, 7)]),
    "grid-interleaved": (
        {"rotary_dim": 12, "grid": (17, 19), "interleaved": True, "max_wavelength": 100.0},
        [(2 * pair, 2 * pair + 1) for pair in range(6)],
    ),
}
HIGHEST = 17 * 19  # position, of the last pixel of the grid


def rotate(scheme, tensor, positions):
    return to_numpy(compiled(Rotary.rotate, scheme)(*map(keras.ops.convert_to_tensor, (tensor, positions))))


@pytest.mark.parametrize(
    ("position", "features", "expected"),
    [
        (0, [1.0, 2.0], [1.0, 2.0]),
        (1, [1.0, 0.0], [0.5403023, 0.8414710]),
        (3, [2.0, 1.0], [-2.1211050, -0.7077525]),
        (-1, [1.0, 0.0], [0.5403023, -0.8414710]),
    ],
)
def test_two_features_are_turned_by_the_position_in_radians(position, features, expected):
    for layout in (False, True):
        scheme = Rotary(interleaved=layout)
        output = rotate(scheme, np.array([[[features]]], "float32"), np.array([[position]], "int32"))
        np.testing.assert_allclose(output[0, 0, 0], expected, atol=FLOAT32)


def test_the_second_pair_of_four_features_turns_a_hundred_times_slower():
    output = rotate(Rotary(), np.array([[[[0.0, 1.0, 0.0, 0.0]]]], "float32"), np.array([[50]], "int32"))
    np.testing.assert_allclose(output[0, 0, 0], [0.0, np.cos(0.5), 0.0, np.sin(0.5)], atol=FLOAT32)


@pytest.mark.parametrize(("options", "pairs"), LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("rows", [1, B])
def test_rotation_equals_the_formula_for_any_positions(options, pairs, rows):
    tensor = normal(B, N, T, H)
    positions = np.random.default_rng(3).integers(0, HIGHEST, (rows, T), dtype="int32")
    columns = options.get("grid", (None, None))[1]
    numbers = {name: options[name] for name in ("max_wavelength", "scaling_factor") if name in options}
    expected = np.empty(tensor.shape)
    for b, n, t in np.ndindex(B, N, T):
        angles = rotary_angles(positions[b % rows, t], 2 * len(pairs), columns=columns, **numbers)
        expected[b, n, t] = turned(tensor[b, n, t], angles, pairs)
    np.testing.assert_allclose(rotate(Rotary(**options), tensor, positions), expected, atol=1e-4)  # float32 angles


@pytest.mark.parametrize("scaling_factor", [1.0, 4.0])
def test_halves_are_those_of_keras_hub(scaling_factor):
    keras_hub = pytest.importorskip("keras_hub", reason="keras_hub is not installed")
    tensor = normal(B, N, T, H)
    theirs = keras_hub.layers.RotaryEmbedding(
        max_wavelength=500, scaling_factor=scaling_factor, sequence_axis=2, feature_axis=-1
    )
    expected = theirs(tensor, start_index=11)
    positions = np.arange(11, 11 + T, dtype="int32")[None]
    output = rotate(Rotary(max_wavelength=500, scaling_factor=scaling_factor), tensor, positions)
    np.testing.assert_allclose(output, to_numpy(expected), atol=FLOAT32)


@pytest.mark.parametrize("options", [options for options, _ in LAYOUTS.values()], ids=LAYOUTS)
def test_length_is_kept_and_the_other_features_stay(options):
    tensor = normal(B, N, T, H)
    output = rotate(Rotary(**options), tensor, np.arange(T, dtype="int32")[None])
    np.testing.assert_allclose(np.linalg.norm(output, axis=-1), np.linalg.norm(tensor, axis=-1), rtol=FLOAT32)
    W = options.get("rotary_dim", H)
    np.testing.assert_allclose(output[..., W:], tensor[..., W:], atol=EXACT)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_far_from_the_start_is_float32_inside(dtype):
    tensor = keras.ops.cast(normal(B, N, T, H), dtype)
    positions = keras.ops.convert_to_tensor(np.arange(5001, 5001 + T, dtype="int32")[None])
    output = compiled(Rotary.rotate, Rotary())(tensor, positions)
    assert keras.backend.standardize_dtype(output.dtype) == dtype
    expected = keras.ops.cast(compiled(Rotary.rotate, Rotary())(keras.ops.cast(tensor, "float32"), positions), dtype)
    np.testing.assert_array_equal(*(to_numpy(keras.ops.cast(each, "float32")) for each in (output, expected)))


# === Errors ===


@pytest.mark.parametrize(
    ("options", "key_dim", "received"),
    [
        ({}, 5, r"multiple of 2 and at most .*rotary_dim=None and a head of 5 features"),
        ({"rotary_dim": 6}, 5, r"multiple of 2 and at most .*rotary_dim=6 and a head of 5 features"),
        ({"grid": (3, 5)}, 6, r"each of two axes: .*multiple of 4.*rotary_dim=None and a head of 6 features"),
    ],
)
def test_features_that_make_no_pairs_are_an_error(options, key_dim, received):
    with pytest.raises(ValueError, match=received):
        MultiHeadAttention(N, key_dim, position=Rotary(**options)).build((B, T, 7), (B, T, 7))


@pytest.mark.parametrize("rotary_dim", [3, 0, -2])
def test_an_odd_or_empty_rotary_dim_is_an_error(rotary_dim):
    with pytest.raises(ValueError, match=rf"`rotary_dim` must be a positive even integer.*Received: {rotary_dim}"):
        Rotary(rotary_dim=rotary_dim)


@pytest.mark.parametrize("grid", [(3,), (3, 5, 7), 3])
def test_a_grid_needs_height_and_width(grid):
    with pytest.raises(ValueError, match=r"`grid` must be \(height, width\)"):
        Rotary(grid=grid)


def test_a_position_outside_the_grid_is_an_error():
    with pytest.raises(ValueError, match=r"3 rows and 5 columns must be 0 to 14\. Received positions from 11 to 15"):
        Rotary(grid=(3, 5)).rotate(np.ones((1, 1, 5, 4), "float32"), np.arange(11, 16, dtype="int32")[None])
