"""Files that are whole or not there at all; Python alone, for every folder."""

import contextlib
import os
import pathlib


@contextlib.contextmanager
def whole_file(path):
    """A path beside `path` to write to. What stands there moves to `path` when the block ends, and goes after an error.

    It has the ending of `path`, by which some writers choose the format. Missing folders are made.
    """
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"partial.{path.name}")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def write_whole(path, content):
    """Writes bytes beside the file and then moves them to its place."""
    with whole_file(path) as partial:
        partial.write_bytes(content)
