"""The Python of the README runs as written."""

import pathlib
import re

import keras
import pytest
from small_text import write_small_text

README = pathlib.Path(__file__).parent.parent / "README.md"


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="the README exports a SavedModel, which needs TensorFlow"
)
def test_the_python_of_the_readme_runs(tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) >= 5
    monkeypatch.chdir(tmp_path)
    write_small_text(tmp_path / "translation" / "smoke" / "text")  # as the example does before
    names = {}
    exec("\n".join(blocks), names)
    assert (tmp_path / "translator" / "1" / "saved_model.pb").is_file()
    assert tuple(names["context"].shape) == (2, 3, 11)
    assert tuple(names["weights"].shape) == (2, 2, 1, 5)
