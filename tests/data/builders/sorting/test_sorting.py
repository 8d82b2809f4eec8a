import numpy as np
import pytest
import tensorflow_datasets as tfds

from keras_attention.data.builders.point_sets import PointsConfig
from keras_attention.data.builders.sorting import Sorting


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    splits = tfds.load("sorting/tiny", data_dir=tmp_path_factory.mktemp("tfds"), as_supervised=True)
    return {split: list(pairs.as_numpy_iterator()) for split, pairs in splits.items()}


def test_splits_have_the_sizes_of_the_configuration(tiny):
    assert {split: len(pairs) for split, pairs in tiny.items()} == {"train": 61, "validation": 17, "test": 13}


def test_indices_sort_the_numbers(tiny):
    for pairs in tiny.values():
        for points, indices in pairs:
            assert points.shape == (len(indices), 1)
            assert sorted(indices) == list(range(1, len(points) + 1))
            assert (np.diff(points[indices - 1, 0]) >= 0).all()


@pytest.mark.parametrize("name", [config.name for config in Sorting.BUILDER_CONFIGS])
def test_every_configuration_is_found_by_its_name_and_in_random_order(name, tmp_path):
    config = tfds.builder(f"sorting/{name}", data_dir=tmp_path).builder_config
    assert (config.name, config.order) == (name, "random")


def test_sorted_numbers_raise(tmp_path):
    with pytest.raises(ValueError, match=r"must come in random order. Received .* order='sorted'"):
        Sorting(config=PointsConfig(name="own", points=5, order="sorted"), data_dir=tmp_path)
