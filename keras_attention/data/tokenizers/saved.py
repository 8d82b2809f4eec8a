"""Files of tokenisers: JSON with the name of the class, written whole, and errors that name the file."""

import contextlib
import json
import pathlib

from keras_attention.checks.messages import shortened
from keras_attention.data.files.lines import text_of
from keras_attention.files import write_whole


def read_json(path, kind):
    """The dictionary of a file that `kind.save` wrote."""
    content = json.loads(text_of(read_whole(path), path))
    if not isinstance(content, dict) or "tokenizer" not in content:
        raise ValueError("there is no dictionary with 'tokenizer'")
    if content["tokenizer"] != kind.__name__:
        raise ValueError(f"it is of a {shortened(content['tokenizer'])}")
    return content


def load_json(path, kind):
    """The tokeniser in a file that `kind.save` wrote."""
    with written_by(path, kind):
        return kind.from_saved(read_json(path, kind))


@contextlib.contextmanager
def written_by(path, kind):
    """Names the file in errors of reading its tokeniser."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = shortened(str(error), 400).removesuffix(".")
        raise ValueError(
            f"{path} is not a file that `{kind.__name__}.save` wrote: {reason}. Train and save a tokeniser again."
        ) from error


def save_json(path, tokenizer):
    """Writes what `from_saved` of the tokeniser's class reads, with its name."""
    content = {"tokenizer": type(tokenizer).__name__, **tokenizer.saved()}
    write_whole(path, (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode())


def read_whole(path):
    """The bytes that `write_whole` wrote."""
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no tokeniser file at {path}. Write it with `tokenizer.save` first.")
    return path.read_bytes()
