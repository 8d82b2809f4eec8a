import sys

import pytest
import tensorflow_datasets as tfds

from keras_attention.data.builders.delaunay import Delaunay, delaunay_triangulations

pytest.importorskip("scipy", reason="scipy, of the extra `geometry`, is not installed")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    splits = tfds.load("delaunay/tiny", data_dir=tmp_path_factory.mktemp("tfds"), as_supervised=True)
    return {split: list(pairs.as_numpy_iterator()) for split, pairs in splits.items()}


def test_splits_have_the_sizes_of_the_configuration(tiny):
    assert {split: len(pairs) for split, pairs in tiny.items()} == {"train": 61, "validation": 17, "test": 13}


def test_indices_are_the_triangles_of_the_points(tiny):
    for pairs in tiny.values():
        for points, indices in pairs:
            assert delaunay_triangulations(points[None])[0].tolist() == indices.tolist()


def test_corners_run_from_left_to_right_where_the_points_are_sorted(tmp_path):
    builder = tfds.builder("delaunay/5-sorted", data_dir=tmp_path)
    for _, (_, example) in zip(range(101), builder._split_generators(None)["train"], strict=False):
        x = example["points"][example["indices"] - 1, 0].reshape(-1, 3)
        assert (x[:, 1:] >= x[:, :-1]).all()


@pytest.mark.parametrize("name", [config.name for config in Delaunay.BUILDER_CONFIGS])
def test_every_configuration_is_found_by_its_name(name, tmp_path):
    config = tfds.builder(f"delaunay/{name}", data_dir=tmp_path).builder_config
    assert config.name == name
    assert (config.order == "sorted") == name.endswith("-sorted")


def test_version_of_scipy_is_kept_with_the_data(tmp_path):
    assert set(tfds.builder("delaunay/tiny", data_dir=tmp_path).info.metadata["packages"]) == {"numpy", "scipy"}


def test_nothing_is_left_behind_when_scipy_is_missing(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "scipy.spatial", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[geometry\]'"):
        tfds.load("delaunay/tiny", data_dir=tmp_path)
    assert not list(tmp_path.rglob("*1.0.0*"))
