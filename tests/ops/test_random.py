from keras_attention.ops.random import split_seed


def test_one_seed_gives_different_seeds_and_always_the_same():
    seeds = split_seed(5, 100)
    assert len(set(seeds)) == 100
    assert seeds == split_seed(5, 100)
    assert not set(seeds) & set(split_seed(6, 100))


def test_seeds_are_non_negative_integers_of_31_bits():
    assert all(type(seed) is int and 0 <= seed < 2**31 for seed in split_seed(7, 1000))


def test_without_a_seed_there_are_none():
    assert split_seed(None, 3) == [None, None, None]
