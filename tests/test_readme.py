"""The Python of the README runs as written."""

import pathlib
import re

import keras
import numpy as np
import pytest

README = pathlib.Path(__file__).parent.parent / "README.md"


def write_text(folder):
    """The folder of the README: sentences of random words."""
    rng = np.random.default_rng(1)
    folder.mkdir()
    for name, count in (("train.en", 300), ("train.de", 300), ("val.en", 7), ("val.de", 7)):
        words = ["".join(rng.choice(list("abcdefgh"), rng.integers(3, 9))) for _ in range(500)]
        lines = [" ".join(rng.choice(words, rng.integers(2, 7))) for _ in range(count)]
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="the README exports a SavedModel, which needs TensorFlow"
)
def test_the_python_of_the_readme_runs(tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) >= 5
    monkeypatch.chdir(tmp_path)
    write_text(tmp_path / "text")
    names = {}
    exec("\n".join(blocks), names)
    assert (tmp_path / "translator" / "1" / "saved_model.pb").is_file()
    assert tuple(names["context"].shape) == (2, 3, 11)
    assert tuple(names["weights"].shape) == (2, 2, 1, 5)
