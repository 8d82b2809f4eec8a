"""Numbered version folders, as TF Serving reads them: whole, or not there at all."""

import contextlib
import os
import tempfile


def existing_versions(path):
    """The versions in the folder `path`, in rising order: `models/1`, `models/3`, `models/notes` -> `[1, 3]`.

    TF Serving passes over every name that is not a number, and so does this function.
    """
    if not os.path.isdir(path):
        return []
    return sorted(int(name) for name in os.listdir(path) if name.isascii() and name.isdecimal())


def free_version(path, version=None):
    """`version` if `path` does not hold it yet; the number after the last version if `version` is `None`."""
    versions = existing_versions(path)
    if version is None:
        return versions[-1] + 1 if versions else 1
    if isinstance(version, bool) or not isinstance(version, int):
        raise TypeError(f"`version` must be an integer or None. Received version={version!r}.")
    if version < 1:
        raise ValueError(f"`version` must be 1 or more. Received version={version}. Leave it out to take the next one.")
    if version in versions:
        raise ValueError(
            f"`version` must not exist yet. Received version={version}, and {str(path)!r} already holds the versions "
            f"{versions}. Leave `version` out to take {versions[-1] + 1}."
        )
    return version


@contextlib.contextmanager
def new_folder(target):
    """Yield a name to write a folder under, and move that folder to `target` when the block ends without an error.

    The name lies in a hidden folder beside `target`, so the move is one step of the file system. After an error
    neither the hidden folder nor the parent folder, if it was made for this, is left.
    """
    parent = os.path.dirname(target)
    is_new = not os.path.isdir(parent)
    try:
        os.makedirs(parent, exist_ok=True)
        hidden = tempfile.TemporaryDirectory(prefix=".export-", dir=parent)
    except OSError as error:
        raise OSError(
            f"`path` must be a folder that can be made and written to. Received path={parent!r}: {error.strerror}. "
            "Choose another folder or change its permissions."
        ) from error
    try:
        with hidden:
            # One level down, because the hidden folder itself is closed to all other users, TF Serving's included.
            folder = os.path.join(hidden.name, "version")
            yield folder
            os.rename(folder, target)
    except BaseException:
        if is_new:
            with contextlib.suppress(OSError):  # another process may have written there since
                os.rmdir(parent)
        raise
