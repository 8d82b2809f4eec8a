"""Numbered version folders, as TF Serving reads them: whole, or not there at all."""

import contextlib
import fcntl
import functools
import os
import shutil
import tempfile

from keras_attention.checks.arguments import check_at_least

HIDDEN = ".export-"


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
    version = check_at_least("version", version, 1)
    if version in versions:
        raise ValueError(
            f"`version` must not exist yet. Received version={version}, and {str(path)!r} already holds the versions "
            f"{versions}. Leave `version` out to take {versions[-1] + 1}."
        )
    return version


@contextlib.contextmanager
def new_version(path, version=None):
    """Yield `(folder, move)`: a name to write a version under, and the function that moves it to its place when it is whole.

    `move()` returns the place: `path/version`, or where `version` is `None` the next free number at that moment, so that
    two exports at once take two numbers. The folder lies in a hidden one inside `path`, so the move is one step of the file
    system. After an error neither the hidden folder nor `path`, if it was made for this, is left. The folders of killed
    exports are removed first.
    """
    path = os.path.abspath(path)
    free_version(path, version)  # raises before any work is done
    is_new = not os.path.isdir(path)
    try:
        with contextlib.ExitStack() as stack:
            try:
                os.makedirs(path, exist_ok=True)
                hidden = stack.enter_context(hidden_folder(path))
            except OSError as error:
                raise OSError(
                    f"`path` must be a folder that can be made and written to. Received path={path!r}: {error.strerror}. "
                    "Choose another folder or change its permissions."
                ) from error
            # One level down, because the hidden folder itself is closed to all other users, TF Serving's included.
            folder = os.path.join(hidden, "version")
            yield folder, functools.partial(move_to_version, folder, path, version)
    except BaseException:
        if is_new:
            with contextlib.suppress(OSError):  # another process may have written there since
                os.rmdir(path)
        raise


def move_to_version(folder, path, version):
    """Moves a whole folder to `path/version`, or to the next free number, and returns where it is."""
    with locked(path):
        target = os.path.join(path, str(free_version(path, version)))
        os.rename(folder, target)
    return target


# === Hidden folders ===


@contextlib.contextmanager
def hidden_folder(path):
    """Yield a folder inside `path` that is locked as long as its process lives, and remove it in the end."""
    with contextlib.ExitStack() as stack:
        with locked(path):  # no other export takes the new folder for one without an owner
            clear_left_folders(path)
            hidden = tempfile.mkdtemp(prefix=HIDDEN, dir=path)
            stack.enter_context(locked(hidden))
            stack.callback(shutil.rmtree, hidden)
        yield hidden


def clear_left_folders(path):
    """Removes the hidden folders whose process has ended without removing them: those that nobody has locked."""
    for name in os.listdir(path):
        if name.startswith(HIDDEN):
            folder = os.path.join(path, name)
            try:
                with locked(folder, wait=False):
                    shutil.rmtree(folder)
            # Another export is at work there or has just removed it, it is of another user, or it is not a folder.
            except (BlockingIOError, FileNotFoundError, PermissionError, NotADirectoryError):
                continue


@contextlib.contextmanager
def locked(folder, wait=True):
    """The lock of a folder, which its process loses when it ends, however it ends. `BlockingIOError` if it is taken."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
