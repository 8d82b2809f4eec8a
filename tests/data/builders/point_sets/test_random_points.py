import numpy as np
import pytest

from keras_attention.data.builders.point_sets.random_points import random_bits, random_point_sets


def test_points_are_those_of_every_other_machine():
    points, lengths = random_point_sets(random_bits(0, 0), 2, range(1, 4), 2)
    assert lengths.tolist() == [2, 3]
    assert (points * 2**24).tolist() == [
        [[4526269, 687421], [277287, 13644410], [15313497, 10177659]],
        [[9120513, 15687912], [13687751, 45944], [14384856, 563472]],
    ]


def test_points_are_float32_multiples_of_two_to_the_minus_24_below_one():
    points, _ = random_point_sets(random_bits(7, 1), 1009, range(5, 6), 2)
    assert points.dtype == "float32" and points.shape == (1009, 5, 2)
    assert points.min() >= 0 and points.max() < 1
    np.testing.assert_array_equal(points * 2**24, np.floor(points * 2**24))


def test_points_fill_the_square_evenly():
    points, _ = random_point_sets(random_bits(0, 0), 20_011, range(5, 6), 2)
    counts, _, _ = np.histogram2d(*points.reshape(-1, 2).T, bins=4, range=[[0, 1], [0, 1]])
    expected = 20_011 * 5 / 16
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert chi_square < 37.7  # 15 degrees of freedom, 0.1 %


@pytest.mark.parametrize("sizes", [range(5, 51), range(3, 12, 2), range(7, 4, -1)])
def test_every_size_of_a_range_is_as_likely_as_the_others(sizes):
    _, lengths = random_point_sets(random_bits(0, 0), 20_011, sizes, 1)
    values, counts = np.unique(lengths, return_counts=True)
    assert values.tolist() == sorted(sizes)
    expected = 20_011 / len(sizes)
    assert ((counts - expected) ** 2 / expected).sum() < 2 * len(sizes) + 20


def test_drawing_in_parts_gives_the_same_sets():
    whole, whole_lengths = random_point_sets(random_bits(3, 2), 13, range(2, 6), 2)
    bits = random_bits(3, 2)
    parts = [random_point_sets(bits, count, range(2, 6), 2) for count in (1, 5, 7)]
    np.testing.assert_array_equal(whole, np.concatenate([points for points, _ in parts]))
    np.testing.assert_array_equal(whole_lengths, np.concatenate([lengths for _, lengths in parts]))


def test_streams_and_seeds_share_no_point():
    sets = [
        random_point_sets(random_bits(seed, stream), 101, range(5, 6), 2)[0] for seed in (0, 1) for stream in (0, 1, 2)
    ]
    assert len(np.unique(np.concatenate(sets).reshape(-1, 2), axis=0)) == 6 * 101 * 5
