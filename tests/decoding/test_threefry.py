import numpy as np
import pytest
from keras import ops

from keras_attention.decoding.threefry import rotate_left, threefry, threefry_uniform


def words(*values):
    """int32 scalars of the same bits as the given unsigned words."""
    return [ops.convert_to_tensor(np.array(value, "uint32").view("int32")) for value in values]


def unsigned(tensors):
    return [int(np.uint32(int(tensor) % 2**32)) for tensor in tensors]


# Known answers published with the paper's library Random123, file `kat_vectors`, lines "threefry2x32 20".
@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_words_equal_the_published_answers(counter, key, expected):
    assert unsigned(threefry(words(*key), words(*counter))) == list(expected)


@pytest.mark.parametrize("count", [1, 13, 31])
@pytest.mark.parametrize("word", [0x80000001, 0x7FFFFFFF, 0xDEADBEEF])
def test_bits_that_leave_at_the_left_come_back_at_the_right(word, count):
    expected = (word << count | word >> (32 - count)) % 2**32
    assert unsigned([rotate_left(words(word)[0], count)]) == [expected]


def test_counters_broadcast_to_a_number_for_each_pair():
    key, rows, step = words(5, 7), ops.arange(3, dtype="int32"), words(11)[0]
    together = ops.convert_to_numpy(threefry_uniform(key, (rows, step)))
    apart = [float(threefry_uniform(key, (rows[row], step))) for row in range(3)]
    assert together.dtype == "float32"
    assert together.tolist() == apart


def test_numbers_are_even_over_the_unit_interval():
    rows, steps = ops.arange(1_009, dtype="int32")[:, None], ops.arange(101, dtype="int32")
    numbers = ops.convert_to_numpy(threefry_uniform(words(0, 0), (rows, steps)))
    assert numbers.min() >= 0.0
    assert numbers.max() < 1.0
    counts = np.histogram(numbers, bins=17, range=(0, 1))[0]
    expected = numbers.size / 17
    assert np.sum((counts - expected) ** 2 / expected) < 39.3  # chi-square of 16 degrees of freedom, p = 0.001
    for neighbours in (numbers[1:] * numbers[:-1], numbers[:, 1:] * numbers[:, :-1]):
        assert abs(neighbours.mean() - 0.25) < 5 * np.sqrt(7 / 144 / numbers.size)  # variance 1/9 - 1/16
