"""Two builders of one process stand for two processes: the second prepares the data while the first is at it."""

import pytest
import tensorflow_datasets as tfds

from keras_attention import data
from keras_attention.data import ParallelText, PointsConfig, Sorting

SIZES = {"train_examples": 5, "validation_examples": 3, "test_examples": 2}


def texts(root):
    for language in ("en", "de"):
        (root / f"train.{language}").write_text("a\nb\n")
    return ParallelText(root, "en", "de", data_dir=root / "data")


def numbers(root, seed=0):
    return Sorting(config=PointsConfig(name="three", points=3, seed=seed, **SIZES), data_dir=root / "data")


def meanwhile(monkeypatch, builder, other):
    """`other` prepares the data after `builder` has found that there is none."""
    split_generators = builder._split_generators

    def late(dl_manager):
        other.download_and_prepare()
        return split_generators(dl_manager)

    monkeypatch.setattr(builder, "_split_generators", late)


@pytest.mark.parametrize("make", [texts, numbers])
def test_data_that_another_process_has_prepared_meanwhile_is_read(make, tmp_path, monkeypatch):
    first, second, third = make(tmp_path), make(tmp_path), make(tmp_path)
    meanwhile(monkeypatch, first, second)
    examples = []
    for builder in (first, second, third):
        builder.download_and_prepare()
        examples.append([repr(example) for example in builder.as_dataset(split="train").as_numpy_iterator()])
    assert examples[0] == examples[1] == examples[2] != []
    assert not list(tmp_path.rglob("*incomplete*"))


def test_every_builder_shares_this():
    from keras_attention.data.builders.prepared_once import PreparedOnce

    public = [getattr(data, name) for name in data.__all__]
    builders = [each for each in public if isinstance(each, type) and issubclass(each, tfds.core.DatasetBuilder)]
    assert len(builders) == 7
    assert all(issubclass(builder, PreparedOnce) for builder in builders)


def test_data_of_other_settings_that_another_process_has_prepared_meanwhile_is_an_error(tmp_path, monkeypatch):
    first = numbers(tmp_path)
    meanwhile(monkeypatch, first, numbers(tmp_path, seed=7))
    with pytest.raises(ValueError, match="was prepared with seed=7 instead of 0"):
        first.download_and_prepare()
    late = numbers(tmp_path / "other")
    numbers(tmp_path / "other", seed=7).download_and_prepare()
    with pytest.raises(ValueError, match="was prepared with seed=7 instead of 0"):
        late.download_and_prepare()


def test_a_builder_prints_what_it_builds_and_where(tmp_path):
    assert repr(numbers(tmp_path)) == f"Sorting('sorting/three/1.0.0', data_dir='{tmp_path / 'data'}')"


def test_other_errors_are_raised(tmp_path, monkeypatch):
    builder = numbers(tmp_path)

    def full(dl_manager):
        raise OSError("no space left")

    monkeypatch.setattr(builder, "_split_generators", full)
    with pytest.raises(OSError, match="no space left"):
        builder.download_and_prepare()
