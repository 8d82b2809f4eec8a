import pytest
import tensorflow_datasets as tfds

from keras_attention.data.builders.convex_hull import ConvexHull, convex_hulls


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    splits = tfds.load("convex_hull/tiny", data_dir=tmp_path_factory.mktemp("tfds"), as_supervised=True)
    return {split: list(pairs.as_numpy_iterator()) for split, pairs in splits.items()}


def test_splits_have_the_sizes_of_the_configuration(tiny):
    assert {split: len(pairs) for split, pairs in tiny.items()} == {"train": 61, "validation": 17, "test": 13}


def test_indices_are_the_hulls_of_the_points(tiny):
    for pairs in tiny.values():
        for points, indices in pairs:
            assert convex_hulls(points[None])[0].tolist() == indices.tolist()


def test_number_of_points_is_drawn_for_each_example(tiny):
    assert {len(points) for points, _ in tiny["train"]} == {3, 4, 5, 6, 7}


def test_examples_are_those_of_every_other_machine(tiny):
    points, indices = tiny["train"][0]
    assert (points * 2**24).tolist() == [
        [4526269, 687421],
        [277287, 13644410],
        [15313497, 10177659],
        [12238921, 9120513],
        [15687912, 13687751],
        [45944, 14384856],
    ]
    assert indices.tolist() == [1, 3, 5, 6, 2]


@pytest.mark.parametrize("name", [config.name for config in ConvexHull.BUILDER_CONFIGS])
def test_every_configuration_is_found_by_its_name(name, tmp_path):
    config = tfds.builder(f"convex_hull/{name}", data_dir=tmp_path).builder_config
    assert config.name == name
    assert (config.order == "sorted") == name.endswith("-sorted")


def test_default_configuration_is_that_of_the_paper(tmp_path):
    config = tfds.builder("convex_hull", data_dir=tmp_path).builder_config
    assert (config.name, config.points, config.train_examples) == ("5", 5, 1_000_000)
