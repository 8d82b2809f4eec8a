"""A training that goes on where it was interrupted: which run a folder holds, and how far it has come."""

import hashlib
import json
import shutil

from keras_attention.files import write_whole


def digest(*contents):
    """Eight hexadecimal digits that stand for what lists, strings and numbers hold."""
    return hashlib.sha256(repr(contents).encode()).hexdigest()[:8]


def claim(folder, settings, smoke):
    """Notes in `run.json` what the run of this folder is; ends the example where the folder holds another one.

    Args:
        folder: `pathlib.Path`.
        settings: Dictionary of all that decides the result, ready for JSON: numbers, strings, digests of the data.
        smoke: Boolean; what an earlier smoke run has left is deleted.
    """
    file, checkpoints = folder / "run.json", folder / "checkpoints"
    if smoke and checkpoints.exists():
        shutil.rmtree(checkpoints)
    if checkpoints.exists() or ((folder / "model.keras").exists() and not smoke):
        held = json.loads(file.read_text()) if file.exists() else {}
        changed = [name for name in {**held, **settings} if held.get(name) != settings.get(name)]
        if changed:
            values = "; ".join(f"{name} {held.get(name)}, now {settings.get(name)}" for name in changed)
            raise SystemExit(
                f"{folder} holds another run ({values}). Choose another --output, or delete {folder} to begin anew there."
            )
    write_whole(file, json.dumps(settings, indent=1).encode())


def resume(model, averaging):
    """Gives the model the state after the last epoch whose checkpoint is there; returns the number of that epoch, or 0.

    The checkpoints of `AverageCheckpoints` hold the optimizer, too, and each is written whole or not at all: a run that
    was killed while it wrote has the one before.
    """
    number, path = max(averaging.numbered_paths(), default=(0, None))
    if path is not None:
        try:
            model.optimizer.build(model.trainable_variables)
            model.load_weights(path)
        except (KeyError, OSError, ValueError) as error:
            raise SystemExit(
                f"{path} cannot be read: {error}. Delete this file; the same command then goes on from the epoch before."
            ) from error
    return number
