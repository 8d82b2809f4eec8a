import keras
import numpy as np
import pytest
from keras import ops

from keras_attention.models.points import check_indices, check_points, checked_inputs

ROWS = [[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [[7.0, 8.0]]]
PADDED = np.array([ROWS[0], [*ROWS[1], [0.0, 0.0], [0.0, 0.0]]], "float32")
MASK = np.array([[True, True, True], [True, False, False]])


def check(inputs, points=PADDED, mask=MASK):
    received = check_points(inputs, feature_dim=2)
    assert received["source"].dtype == "float32" and received["source_mask"].dtype == "bool"
    np.testing.assert_array_equal(received["source"], points)
    np.testing.assert_array_equal(received["source_mask"], mask)


@pytest.mark.parametrize(
    "inputs",
    [
        ROWS,
        tuple(ROWS),
        [np.array(row) for row in ROWS],
        [np.array(row, "int64") for row in ROWS],
        [ops.convert_to_tensor(row) for row in ROWS],
        {"source": ROWS},
        {"source": ROWS, "source_mask": None},
        {"source": PADDED, "source_mask": MASK},
        {"source": PADDED.astype("float64"), "source_mask": MASK.tolist()},
        {"source": ops.convert_to_tensor(PADDED), "source_mask": ops.convert_to_tensor(MASK)},
    ],
)
def test_lists_of_any_lengths_and_arrays_with_a_mask_are_the_same_points(inputs):
    check(inputs)


def test_an_array_without_a_mask_has_no_padding():
    check(PADDED, mask=np.ones((2, 3), bool))
    check(PADDED.tolist(), mask=np.ones((2, 3), bool))
    check(PADDED.astype("int32"), mask=np.ones((2, 3), bool))


def test_a_source_may_be_empty():
    check([[], ROWS[1]], points=[[[0.0, 0.0]], ROWS[1]], mask=[[False], [True]])
    check([np.zeros((0, 2))], points=np.zeros((1, 0, 2)), mask=np.zeros((1, 0)))
    check(np.zeros((0, 3, 2)), points=np.zeros((0, 3, 2)), mask=np.zeros((0, 3)))


@pytest.mark.parametrize(("inputs", "shape"), [([], (0, 0, 2)), ([[], []], (2, 0, 2))])
def test_a_list_may_hold_no_source_and_sources_without_a_position(inputs, shape):
    assert check_points(inputs, 2)["source"].shape == shape


@pytest.mark.parametrize("dtype", ["int32", "uint8"])
def test_a_mask_of_zeros_and_ones_is_a_mask(dtype):
    check({"source": PADDED, "source_mask": MASK.astype(dtype)}, points=PADDED)


def test_padding_may_hold_anything():
    junk = np.where(MASK[..., None], PADDED, np.nan)
    check({"source": junk, "source_mask": MASK}, points=junk)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (PADDED[0], r"`source` must have shape \(B, S, 2\).* Received shape \(3, 2\). Wrap a single source in a list"),
        (PADDED[..., :1], r"of 2 features. Received shape \(2, 3, 1\).* another `feature_dim`"),
        ([1.0, 2.0], r"`source` must have shape \(B, S, 2\).* Received shape \(2,\)"),
        (3.0, r"`source` must have shape \(B, S, 2\).* Received shape \(\)"),
        (
            [[[1.0, 2.0, 3.0]], [[1.0, 2.0]] * 2],
            r"of a list must have shape \(n, 2\). Received shapes \[\(1, 3\), \(2, 2\)\]",
        ),
        ({"points": PADDED}, r'must be a dictionary with "source". Received: \[\'points\'\]'),
        (
            {"source": PADDED, "source_mask": 2 * MASK.astype("int32")},
            r"must be boolean, or integers 0 and 1, of shape \(B, S\), here \(2, 3\).* Received shape \(2, 3\) and dtype int32",
        ),
        ({"source": PADDED, "source_mask": MASK[:, :2]}, r"here \(2, 3\).* Received shape \(2, 2\) and dtype bool"),
        ({"source": ROWS, "source_mask": MASK}, r"list of arrays of the lengths \[3, 1\].* Leave it out"),
        (
            np.where(np.arange(3)[:, None] == 1, np.nan, PADDED),
            r"must be finite in float32. Received source\[0, 1\] = \[nan, nan\]. .* mask it",
        ),
        (
            [[[1.0, 2.0]], [[3.0, 4.0], [np.inf, 5.0]]],
            r"must be finite in float32. Received source\[1, 1\] = \[inf, 5.0\]",
        ),
    ],
)
def test_points_that_cannot_be_read_are_named(inputs, message):
    with pytest.raises(ValueError, match=message):
        check_points(inputs, feature_dim=2)


UTM = 5e6 + np.array([[0.1, 3.2], [9.7, 4.4], [5.3, -9.1]])  # metres; float32 knows only halves there


def test_points_that_float32_cannot_tell_apart_are_named_and_what_is_to_be_done():
    lost = np.stack([PADDED[0], np.where(MASK[1][:, None], UTM, 0.0)])
    with pytest.raises(
        ValueError, match=r"keeps 7 digits .*: in row 1 they extend over 13\.5, .* 0\.2 would .*Subtract"
    ):
        check_points(np.stack([UTM - 5e6, UTM - [0, 1]]), feature_dim=2)
    check({"source": lost, "source_mask": MASK}, points=lost.astype("float32"))  # one point, and padding far from it
    for known in (UTM - 5e6, UTM.astype("float32"), np.floor(UTM).astype("int64"), np.full((3, 2), 5e6 + 0.1)):
        np.testing.assert_array_equal(check_points(known[None], 2)["source"][0], known.astype("float32"))


def test_a_number_that_float32_cannot_hold_is_not_finite():
    with pytest.raises(ValueError, match=r"must be finite in float32. Received source\[0, 0\] = \[1e\+300, 1e\+300\]"):
        check_points(np.full((1, 1, 2), 1e300), feature_dim=2)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="ragged tensors are TensorFlow's")
def test_a_ragged_tensor_is_an_error_not_points_at_zero():
    import tensorflow as tf

    with pytest.raises(TypeError, match=r"`source` must be a dense tensor.*source.to_tensor\(\)"):
        check_points(tf.ragged.constant(ROWS, ragged_rank=1), feature_dim=2)


# === Indices ===


@pytest.mark.parametrize("indices", [[[3, 1, 0], [1, 0, 0]], np.array([[3, 1, 0], [1, 0, 0]], "uint8")])
def test_indices_are_positions_of_real_points_or_0(indices):
    received = check_indices(indices, MASK)
    assert received.dtype == "int32" and received.tolist() == [[3, 1, 0], [1, 0, 0]]


def test_there_may_be_no_indices_and_no_points():
    assert check_indices([[], []], MASK).shape == (2, 0)
    assert check_indices(np.zeros((0, 3)), MASK[:0]).shape == (0, 3)
    assert check_indices([[0, 0], [0, 0]], MASK[:, :0]).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([[3, 1], [1]], r"must be of one length. Received rows of \[2, 1\] indices.*pad_sequences"),
        ([3, 1], r"of shape \(B, T\).* Received shape \(2,\).* Wrap a single answer in a list"),
        ([[1.0], [1.0]], r"must be integer indices.* Received shape \(2, 1\) and dtype float"),
        ([[True], [True]], r"must be integer indices.* dtype bool"),
        ([[3, 4], [1, 0]], r"Received 4 in row 0, whose source has 3 of 3 positions that are real"),
        ([[3, -1], [1, 0]], r"Received -1 in row 0"),
        ([[3, 2**40], [1, 0]], r"Received 1099511627776 in row 0"),
        ([[3, 1], [2, 0]], r"Received 2 in row 1, whose source has 1 of 3 positions that are real"),
        (
            [[2, 0, 1], [0, 0, 0]],
            r"0 ends an answer.*`target` \[2, 0, 1\] in row 0, with 1 behind a 0. Positions count from 1",
        ),
    ],
)
def test_indices_that_cannot_be_are_named(indices, message):
    with pytest.raises(ValueError, match=message):
        check_indices(indices, MASK)


def called(**changes):
    return {"source": PADDED, "source_mask": MASK, "target": np.array([[0, 3], [0, 1]], "int32"), **changes}


def test_a_call_may_be_a_list_in_the_order_of_the_names():
    inputs = called()
    assert checked_inputs([inputs["source"], inputs["source_mask"], inputs["target"]]) == inputs


@pytest.mark.parametrize("mask", [MASK[:, :2], MASK[:1], MASK[:, :1], MASK[0]])
def test_a_call_needs_a_mask_of_each_position(mask):
    with pytest.raises(ValueError, match=r"`source_mask` must have one entry for each position, shape \(2, 3\)"):
        checked_inputs(called(source_mask=mask))


def test_a_call_refuses_integers_other_than_0_and_1_in_the_mask():
    with pytest.raises(ValueError, match=r"`source_mask` must be boolean, .*Received 2"):
        checked_inputs(called(source_mask=2 * MASK.astype("int32")))
