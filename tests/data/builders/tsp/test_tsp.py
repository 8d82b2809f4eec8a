import sys

import numpy as np
import pytest
import tensorflow_datasets as tfds

from keras_attention.data.builders.point_sets import PointsConfig
from keras_attention.data.builders.tsp import PyVRP, Tsp, TspConfig, shortest_tours


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    splits = tfds.load("tsp/tiny", data_dir=tmp_path_factory.mktemp("tfds"), as_supervised=True)
    return {split: list(pairs.as_numpy_iterator()) for split, pairs in splits.items()}


def config_of_13_points(solver):
    return TspConfig(
        name="own", points=range(11, 14), train_examples=7, validation_examples=1, test_examples=1, solver=solver
    )


def test_splits_have_the_sizes_of_the_configuration(tiny):
    assert {split: len(pairs) for split, pairs in tiny.items()} == {"train": 61, "validation": 17, "test": 13}


def test_indices_are_the_tours_of_the_points(tiny):
    for pairs in tiny.values():
        for points, indices in pairs:
            assert shortest_tours(points[None])[0].tolist() == indices.tolist()


def test_tour_begins_at_the_leftmost_of_sorted_points(tmp_path):
    builder = tfds.builder("tsp/5-sorted", data_dir=tmp_path)
    for _, (_, example) in zip(range(101), builder._split_generators(None)["train"], strict=False):
        assert example["indices"][0] == 1
        assert example["points"][0, 0] == example["points"][:, 0].min()


@pytest.mark.parametrize("name", [config.name for config in Tsp.BUILDER_CONFIGS])
def test_every_configuration_is_found_by_its_name(name, tmp_path):
    config = tfds.builder(f"tsp/{name}", data_dir=tmp_path).builder_config
    assert config.name == name
    assert (config.order == "sorted") == name.endswith("-sorted")


def test_solver_is_used_for_more_than_twelve_points_and_named_in_metadata_and_description(tmp_path):
    pytest.importorskip("pyvrp", reason="pyvrp, of the extra `geometry`, is not installed")
    builder = Tsp(config=config_of_13_points(PyVRP(iterations=20)), data_dir=tmp_path)
    builder.download_and_prepare()
    info = tfds.builder_from_directory(builder.data_dir).info
    assert info.metadata["settings"]["solver"] == "PyVRP(iterations=20, seed=0)"
    assert set(info.metadata["packages"]) == {"numpy", "pyvrp"}
    assert "solver: PyVRP(iterations=20, seed=0)" in info.config_description
    assert {len(example["points"]) for example in builder.as_dataset(split="train").as_numpy_iterator()} == {11, 12, 13}


def test_more_than_twelve_points_without_a_solver_raise():
    with pytest.raises(ValueError, match=r"more than 12 points need a solver. Received 20 points and solver=None"):
        TspConfig(name="own", points=range(5, 21))


def test_bad_number_of_points_raises_before_the_solver_is_asked_for():
    with pytest.raises(TypeError, match=r"Received points=20\.0 of type float"):
        TspConfig(name="own", points=20.0)


def test_configuration_without_a_solver_raises(tmp_path):
    with pytest.raises(TypeError, match=r"`tsp` must be a TspConfig.* Received a PointsConfig"):
        Tsp(config=PointsConfig(name="own", points=5), data_dir=tmp_path)


def test_nothing_is_left_behind_when_pyvrp_is_missing(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyvrp", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[geometry\]'"):
        Tsp(config=config_of_13_points(PyVRP()), data_dir=tmp_path).download_and_prepare()
    assert not list(tmp_path.rglob("*1.0.0*"))


def test_prepared_tours_are_read_without_the_solver(monkeypatch, tmp_path):
    Tsp(config=config_of_13_points(from_left_to_right), data_dir=tmp_path).download_and_prepare()
    monkeypatch.setitem(sys.modules, "pyvrp", None)
    builder = Tsp(config=config_of_13_points(from_left_to_right), data_dir=tmp_path)
    assert len(list(builder.as_dataset(split="train"))) == 7


def from_left_to_right(points):
    return np.argsort(points[:, 0])
