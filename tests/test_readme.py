"""The Python of the README runs as written."""

import pathlib
import re

import keras
import pytest

README = pathlib.Path(__file__).parent.parent / "README.md"


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="the README exports a SavedModel, which needs TensorFlow"
)
def test_the_python_of_the_readme_runs(tmp_path, monkeypatch):
    from keras_attention.data import CharacterTokenizer

    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) >= 5
    source_tokenizer, target_tokenizer = (CharacterTokenizer(map(chr, range(33, 29 + size))) for size in (1000, 1200))
    names = {"source_tokenizer": source_tokenizer, "target_tokenizer": target_tokenizer}
    monkeypatch.chdir(tmp_path)
    exec("\n".join(blocks), names)
    assert (tmp_path / "translator" / "1" / "saved_model.pb").is_file()
    assert tuple(names["weights"].shape) == (2, 3, 5)
