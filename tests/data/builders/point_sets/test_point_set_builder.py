import pickle

import numpy as np
import pytest
import tensorflow_datasets as tfds

from keras_attention.data.builders.point_sets import PointsConfig, PointSetBuilder
from keras_attention.data.builders.point_sets.point_set_builder import package_versions

COUNTS = {"train": 61, "validation": 17, "test": 13}


class RightToLeft(PointSetBuilder, skip_registration=True):
    """The answer is the positions from the last to the first, without the first one."""

    DESCRIPTION = "From the last point to the second."
    BUILDER_CONFIGS = [PointsConfig(name="ten", points=10)]  # noqa: RUF012 (a name TFDS reads)
    PACKAGES = ("numpy", "no-such-package")

    def label(self, points):
        N, n = points.shape[:2]
        return np.tile(np.arange(n, 1, -1, dtype="int32"), (N, 1))


class InPairs(RightToLeft, skip_registration=True):
    EXAMPLES_AT_ONCE = 2


class Failing(RightToLeft, skip_registration=True):
    def label(self, points):
        raise RuntimeError("no answer")


def config(name="own", points=range(1, 6), **settings):
    counts = {f"{split}_examples": count for split, count in COUNTS.items()}
    return PointsConfig(name=name, points=points, **{**counts, **settings})


def examples(builder, split="train"):
    """`[([[0.4, 0.6], [0.1, 0.1]], [2]), ...]`: points and indices as lists, as they would be written."""
    generator = builder._split_generators(None)[split]
    return [(example["points"].tolist(), example["indices"].tolist()) for _, example in generator]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    builder = RightToLeft(config=config(), data_dir=tmp_path_factory.mktemp("tfds"))
    builder.download_and_prepare()
    return builder


def test_splits_have_the_sizes_of_the_configuration(prepared):
    assert {split: info.num_examples for split, info in prepared.info.splits.items()} == COUNTS


def test_examples_are_float32_points_and_int32_positions(prepared):
    spec = prepared.as_dataset(split="train").element_spec
    assert (spec["points"].shape, spec["points"].dtype.name) == ((None, 2), "float32")
    assert (spec["indices"].shape, spec["indices"].dtype.name) == ((None,), "int32")


def test_examples_are_read_in_the_order_in_which_they_were_made(prepared):
    read = [
        (points.tolist(), indices.tolist())
        for points, indices in prepared.as_dataset(split="test", as_supervised=True).as_numpy_iterator()
    ]
    assert read == examples(prepared, "test")


def test_every_example_has_the_answer_of_its_points(prepared):
    for points, indices in prepared.as_dataset(split="train", as_supervised=True).as_numpy_iterator():
        assert indices.tolist() == list(range(len(points), 1, -1))


def test_every_number_of_points_occurs(prepared):
    assert {len(points) for points, _ in examples(prepared)} == {1, 2, 3, 4, 5}


def test_no_two_splits_share_a_point(tmp_path):
    builder = RightToLeft(config=config(points=3), data_dir=tmp_path)
    points = [tuple(point) for split in COUNTS for example in examples(builder, split) for point in example[0]]
    assert len(set(points)) == len(points) == 3 * sum(COUNTS.values())


def test_examples_do_not_depend_on_how_many_are_labelled_at_once(prepared, tmp_path):
    assert examples(InPairs(config=config(), data_dir=tmp_path)) == examples(prepared)


def test_larger_split_begins_with_the_examples_of_a_smaller_one(prepared, tmp_path):
    larger = RightToLeft(config=config(train_examples=101), data_dir=tmp_path)
    assert examples(larger)[: COUNTS["train"]] == examples(prepared)
    assert examples(larger, "test") == examples(prepared, "test")


def test_another_seed_gives_other_examples(prepared, tmp_path):
    other = RightToLeft(config=config(seed=1), data_dir=tmp_path)
    assert not set(map(str, examples(other))) & set(map(str, examples(prepared)))


def test_sorted_points_are_the_random_ones_by_x_and_then_y(prepared, tmp_path):
    in_order = RightToLeft(config=config(order="sorted"), data_dir=tmp_path)
    assert [points for points, _ in examples(in_order)] == [sorted(points) for points, _ in examples(prepared)]


def test_settings_and_package_versions_are_kept_with_the_data(prepared):
    read = tfds.builder_from_directory(prepared.data_dir)
    assert read.info.metadata["settings"] == config().settings()
    assert read.info.metadata["packages"] == {"numpy": np.__version__}
    assert "points: range(1, 6)" in read.info.config_description
    assert read.info.splits["train"].num_examples == COUNTS["train"]


def test_versions_of_packages_that_are_not_installed_are_left_out():
    assert package_versions(("no-such-package", "numpy")) == {"numpy": np.__version__}


def test_prepared_data_is_opened_again_by_the_same_settings(prepared):
    again = RightToLeft(config=config(), data_dir=prepared.data_dir_root)
    assert again.info.splits["train"].num_examples == COUNTS["train"]


def test_prepared_data_with_other_settings_raises(prepared):
    message = "prepared with points='range.1, 6.' instead of 7, seed=0 instead of 3. .* name other than 'own'"
    with pytest.raises(ValueError, match=message):
        RightToLeft(config=config(points=7, seed=3), data_dir=prepared.data_dir_root)


def test_name_of_a_predefined_configuration_cannot_get_other_settings(tmp_path):
    with pytest.raises(ValueError, match="Cannot name a custom BuilderConfig the same as an available"):
        RightToLeft(config=config(name="ten"), data_dir=tmp_path)


def test_configuration_of_another_kind_raises(tmp_path):
    with pytest.raises(TypeError, match=r"`right_to_left` must be a PointsConfig.* Received a BuilderConfig"):
        RightToLeft(config=tfds.core.BuilderConfig(name="own"), data_dir=tmp_path)


def test_nothing_is_left_behind_when_labelling_fails(tmp_path):
    builder = Failing(config=config(), data_dir=tmp_path)
    with pytest.raises(RuntimeError, match="no answer"):
        builder.download_and_prepare()
    assert not list(tmp_path.rglob("*1.0.0*"))


def test_builder_can_be_pickled(prepared):
    again = pickle.loads(pickle.dumps(prepared))
    assert again.builder_config.settings() == config().settings()
    assert again.data_dir == prepared.data_dir
