import keras
import numpy as np
import pytest
from keras import ops
from reference import positions
from reference.arrays import normal, to_numpy
from tolerances import FLOAT32

from keras_attention.layers import SinusoidalPositionEncoding

B, T, D = 2, 5, 7


def test_positions_are_added_to_the_inputs():
    inputs = normal(B, T, D)
    expected = inputs + positions.sinusoids(range(T), D)
    np.testing.assert_allclose(SinusoidalPositionEncoding()(inputs), expected, atol=FLOAT32)


def test_an_odd_width_and_a_width_of_one():
    # D19
    encoding = to_numpy(SinusoidalPositionEncoding()(np.zeros((1, 2, 5), "float32")))
    expected = [[0, 1, 0, 1, 0], [0.8415, 0.5403, 0.0251, 0.9997, 0.0006]]
    np.testing.assert_allclose(np.round(encoding[0], 4), expected, atol=FLOAT32)
    encoding = SinusoidalPositionEncoding()(np.zeros((1, 3, 1), "float32"))
    np.testing.assert_allclose(encoding[0], np.sin([[0], [1], [2]]), atol=FLOAT32)


@pytest.mark.parametrize("shape", [(T, D), (B, T, D), (B, 3, T, D)])
def test_every_axis_left_of_the_last_two_is_batch(shape):
    inputs = normal(*shape)
    expected = inputs + positions.sinusoids(range(T), D)
    np.testing.assert_allclose(SinusoidalPositionEncoding()(inputs), expected, atol=FLOAT32)


@pytest.mark.parametrize("as_tensor", [False, True])
def test_positions_can_start_anywhere(as_tensor):
    inputs = normal(B, T, D)
    start_index = ops.convert_to_tensor(300, "int32") if as_tensor else 300
    output = SinusoidalPositionEncoding()(inputs, start_index=start_index)
    np.testing.assert_allclose(output, inputs + positions.sinusoids(range(300, 300 + T), D), atol=1e-4)


def test_encoding_step_by_step_equals_encoding_at_once():
    layer, inputs = SinusoidalPositionEncoding(), normal(B, T, D)
    steps = [to_numpy(layer(inputs[:, t : t + 1], start_index=t)) for t in range(T)]
    np.testing.assert_allclose(np.concatenate(steps, axis=1), layer(inputs), atol=FLOAT32)


def test_given_positions_replace_the_count():
    inputs, chosen = normal(B, T, D), np.array([[0, 1, 2, 0, 1], [7, 7, 3, 2, 900]])
    expected = inputs + np.stack([positions.sinusoids(row, D) for row in chosen])
    np.testing.assert_allclose(SinusoidalPositionEncoding()(inputs, positions=chosen), expected, atol=1e-4)
    shared = SinusoidalPositionEncoding()(inputs, positions=chosen[:1])
    np.testing.assert_allclose(shared, inputs + positions.sinusoids(chosen[0], D), atol=FLOAT32)


MASK = np.array([[False, False, True, True, True], [True, False, False, True, True]])
ROWS = [[2, 3, 4], [0, 3, 4]]


@pytest.mark.parametrize("start_index", [0, 300])
def test_positions_count_the_real_tokens_of_each_row(start_index):
    inputs = normal(B, T, D)
    output = to_numpy(SinusoidalPositionEncoding()(inputs, start_index=start_index, mask=MASK))
    expected = positions.sinusoids(range(start_index, start_index + 3), D)
    for row, real in enumerate(ROWS):
        np.testing.assert_allclose(output[row, real], inputs[row, real] + expected, atol=1e-4)


@pytest.mark.parametrize("as_tensor", [False, True])
def test_the_implicit_mask_is_counted(as_tensor):
    inputs = keras.layers.Masking()(np.where(MASK[..., None], normal(B, T, D), 0.0))
    start = ops.convert_to_tensor(3, "int32") if as_tensor else 3
    output = SinusoidalPositionEncoding()(inputs, start_index=start)
    np.testing.assert_array_equal(to_numpy(output._keras_mask), MASK)
    expected = SinusoidalPositionEncoding()(inputs, start_index=start, mask=MASK)
    np.testing.assert_allclose(output, expected, atol=FLOAT32)


def test_a_mask_of_another_length_is_an_error():
    with pytest.raises(ValueError, match=r"`mask` must have one entry for each position, shape \(2, 5\).* \(2, 3\)"):
        SinusoidalPositionEncoding()(normal(B, T, D), mask=np.ones((B, 3), bool))


def test_the_longest_wavelength_can_be_chosen():
    encoding = SinusoidalPositionEncoding(max_wavelength=50.0)(np.zeros((1, T, D), "float32"))
    np.testing.assert_allclose(encoding[0], positions.sinusoids(range(T), D, max_wavelength=50.0), atol=FLOAT32)


@pytest.mark.parametrize(
    ("policy", "error"),
    [("mixed_float16", 2**-10), ("mixed_bfloat16", 2**-8), ("float16", 2**-10), ("bfloat16", 2**-8)],
)
def test_half_precision_rounds_the_result_only(policy, error):
    # D03
    inputs = np.zeros((1, 1024, 64), "float32")
    full = to_numpy(SinusoidalPositionEncoding()(inputs))
    half = SinusoidalPositionEncoding(dtype=policy)(inputs)
    assert keras.backend.standardize_dtype(half.dtype) == keras.DTypePolicy(policy).compute_dtype
    half = to_numpy(ops.cast(half, "float32"))
    assert np.abs(half - full).max() <= error
    assert np.abs(half[0, 300] - half[0, 301]).max() > 0.1


@pytest.mark.parametrize("max_wavelength", [0, -1.0])
def test_the_longest_wavelength_must_be_above_zero(max_wavelength):
    with pytest.raises(ValueError, match=rf"`max_wavelength` must be a positive number. Received: {max_wavelength}\."):
        SinusoidalPositionEncoding(max_wavelength=max_wavelength)


def test_inputs_need_two_axes_and_a_known_width():
    with pytest.raises(
        ValueError, match=r"`inputs` must have at least 2 axes, `\(\.\.\., T, D\)`. Received shape \(7,\)"
    ):
        SinusoidalPositionEncoding()(normal(7))
    with pytest.raises(ValueError, match=r"`inputs` must have a known last axis.* \(None, 5, None\)"):
        SinusoidalPositionEncoding()(keras.Input((5, None)))
