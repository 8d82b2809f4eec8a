import gzip

import pytest
import tensorflow_datasets as tfds

from keras_attention.data import CharacterTokenizer, SubwordTokenizer


@pytest.fixture
def write(tmp_path):
    """Writes a file of a name and its content, compressed if the name ends with `.gz`, and returns its path."""

    def write_file(name, content):
        path = tmp_path / name
        content = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return write_file


@pytest.fixture(scope="session")
def tiny_dates(tmp_path_factory):
    """All splits of `localized_dates/tiny` as lists of examples whose values are strings."""
    splits = tfds.load("localized_dates/tiny", data_dir=tmp_path_factory.mktemp("tfds"))
    return {
        split: [{name: value.decode() for name, value in example.items()} for example in examples.as_numpy_iterator()]
        for split, examples in splits.items()
    }


@pytest.fixture
def letters():
    """Tokeniser of the letters a to g, whose ids are 4 to 10."""
    return CharacterTokenizer("abcdefg")


@pytest.fixture(scope="session")
def english():
    """A few sentences in which pieces of words come again and again."""
    animals, places = ("dog", "doglet", "Cat", "catlet", "Bird", "birdlet"), ("house", "houses", "tower", "towers")
    return [f"A {animal} walks to the {place}, walking past {animal}s." for animal in animals for place in places]


@pytest.fixture(scope="session")
def subwords(english):
    return SubwordTokenizer.train(english, vocabulary_size=293, verbose=0)
