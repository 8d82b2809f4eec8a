import keras
import numpy as np
import pytest
from keras import ops
from reference.arrays import to_numpy

from keras_attention.ops.ids import as_ids, check_ids, rows_of_ids


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "float32", "bfloat16"])
def test_ids_of_any_type_are_int32_with_minus_one_for_what_is_none(dtype):
    ids = as_ids(ops.cast([0, 6, 7, 100], dtype), 7)
    assert keras.backend.standardize_dtype(ids.dtype) == "int32"
    np.testing.assert_array_equal(to_numpy(ids), [0, 6, -1, -1])


@pytest.mark.parametrize("wrong", [-1.0, 0.5, float("nan"), float("inf"), -float("inf"), 1e30])
def test_no_float_is_an_id_unless_it_is_whole_and_in_range(wrong):
    np.testing.assert_array_equal(to_numpy(as_ids(ops.array([wrong, 3.0]), 7)), [-1, 3])
    with pytest.raises(ValueError, match=r"must be whole numbers in \[0, 7\)"):
        check_ids("inputs", ops.array([wrong, 3.0]), 7)


def test_a_half_float_tells_no_ids_apart_from_256_on():
    ids = ops.cast([255, 256], "bfloat16")
    np.testing.assert_array_equal(to_numpy(as_ids(ids, 1000)), [255, -1])
    with pytest.raises(ValueError, match=r"below 256 in bfloat16\. Received 256\.0 among bfloat16 ids"):
        check_ids("inputs", ids, 1000)


def test_an_id_of_more_than_32_bits_is_not_cut_to_another():
    with pytest.raises(ValueError, match=r"Received 4294967301 among int64 ids of shape \(1,\)"):
        check_ids("inputs", np.array([2**32 + 5]), 7)


def test_the_rows_of_a_table_are_scaled_and_nan_for_what_is_no_id():
    rows = to_numpy(
        rows_of_ids(
            lambda ids: ops.take(ops.array([[2.0], [3.0], [5.0]]), ids, axis=0), ops.array([2, 3, -1, 0]), 3, 7.0
        )
    )
    np.testing.assert_array_equal(rows, [[35.0], [np.nan], [np.nan], [14.0]])
