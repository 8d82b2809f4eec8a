"""The mean of the last checkpoints of a training."""

import pathlib
import re

import keras
import numpy as np
from keras import ops

from keras_attention.checks.arguments import check_positive_integer
from keras_attention.files import whole_file


def average_checkpoints(model, paths):
    """Sets the weights of a model to their mean over files of weights.

    `weight = mean over paths of weight in the file`, summed in float64

    Only floating-point weights change, not integers, random states and the optimizer. After an error no weight has changed.

    Args:
        model: A built `keras.Model`, compiled or not.
        paths: List of one or more files that `model.save_weights` or `keras.callbacks.ModelCheckpoint` with
            `save_weights_only=True` wrote, of the same model. (Keras notices weights that a file lacks, but not those
            that it has beyond the model's.)

    Raises:
        FileNotFoundError: If a file does not exist.
        ValueError: If there is no path, or a file does not hold the model's weights.

    Example:
        >>> import tempfile
        >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
        >>> paths = [f"{tempfile.mkdtemp()}/{value}.weights.h5" for value in (3, 5)]
        >>> for value, path in zip((3.0, 5.0), paths):
        ...     model.set_weights([np.array([[value]])])
        ...     model.save_weights(path)
        >>> average_checkpoints(model, paths)
        >>> float(model.get_weights()[0][0, 0])
        4.0

    References:
        Vaswani et al., 2017, section 6.1, arXiv:1706.03762.
    """
    paths = [pathlib.Path(path) for path in paths]
    if not paths:
        raise ValueError("`paths` must name at least one file of weights. Received none.")
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(
                f"`paths` must name files that `model.save_weights` wrote. There is no file at {path}. "
                f"Received {len(paths)} paths."
            )
    averaged = [weight for weight in model.weights if keras.backend.is_float_dtype(weight.dtype)]
    before = values(model.weights)
    sums = [0.0] * len(averaged)
    try:
        for path in paths:
            load_weights(model, path)
            sums = [total + value.astype("float64") for total, value in zip(sums, values(averaged), strict=True)]
    finally:
        assign(model.weights, before)
    assign(averaged, [total / len(paths) for total in sums])


def load_weights(model, path):
    """`model.load_weights` without the optimizer, whose state such a file may hold too, and with one kind of error."""
    optimizer = getattr(model, "optimizer", None)
    try:
        if optimizer is not None:
            model.optimizer = None
        model.load_weights(path)
    except (KeyError, OSError, ValueError) as error:
        raise ValueError(
            f"Every file must hold the weights of this model, {model.name!r}. {path} does not: {error} "
            "Make the model with the arguments of the saved one."
        ) from error
    finally:
        if optimizer is not None:
            model.optimizer = optimizer


def values(variables):
    """Copies of the variables' values as NumPy arrays."""
    return [np.array(ops.convert_to_numpy(variable)) for variable in variables]


def assign(variables, arrays):
    for variable, array in zip(variables, arrays, strict=True):
        variable.assign(array)


class AverageCheckpoints(keras.callbacks.Callback):
    """Callback that keeps the weights of the last epochs in files and, when training ends, gives the model their mean.

    `weight = mean over the last epochs of weight at the end of the epoch`

    The last epochs wander around an optimum; their mean lies nearer to it. The paper averages the last 5
    checkpoints, which were written every 10 minutes.

    Files are named `epoch_0001.weights.h5` and so on, as Keras counts epochs on the screen. Each is written whole or
    not at all. The mean is read from the files, so that a resumed training averages the same epochs as one that was
    never interrupted. A training that ends early, by `EarlyStopping` for example, has its mean, too, but not after
    an error. Callbacks that follow in the list, and everything after `fit`, see the mean.

    An optimizer's `use_ema=True` is another mean: it takes in every step with weights that fall exponentially,
    holds a copy of the weights in memory, and has to be chosen, with its rate, before the training. This one counts a
    few epochs alike, costs disk only, and can be computed afterwards from other files by `average_checkpoints`.

    Args:
        folder: Folder of this training alone: files of other epochs than its last ones are deleted from it.
        last: Integer, number of epochs to keep.

    Raises:
        ValueError: If `last` is not positive; at the end of training, if a file is of another model.

    Example:
        >>> import tempfile
        >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
        >>> model.compile(optimizer="sgd", loss="mse")
        >>> averaging = AverageCheckpoints(tempfile.mkdtemp(), last=2)
        >>> history = model.fit(np.ones((3, 1)), np.ones((3, 1)), epochs=3, callbacks=[averaging], verbose=0)
        >>> [path.name for path in averaging.paths()]
        ['epoch_0002.weights.h5', 'epoch_0003.weights.h5']

    References:
        Vaswani et al., 2017, section 6.1, arXiv:1706.03762.
    """

    def __init__(self, folder, last=5):
        super().__init__()
        self.folder = pathlib.Path(folder)
        self.last = check_positive_integer("last", last)

    def __repr__(self):
        return f"AverageCheckpoints({str(self.folder)!r}, last={self.last})"

    def on_epoch_end(self, epoch, logs=None):
        number = epoch + 1
        with whole_file(self.folder / f"epoch_{number:04d}.weights.h5") as partial:
            self.model.save_weights(partial)
        for each, path in self.numbered_paths():
            if not number - self.last < each <= number:
                path.unlink()

    def on_train_end(self, logs=None):
        if paths := self.paths():  # none if no epoch has ended yet
            average_checkpoints(self.model, paths)

    def paths(self):
        """The files that are averaged, in the order of their epochs."""
        return [path for _, path in self.numbered_paths()]

    def numbered_paths(self):
        """Pairs of an epoch's number and its file, in rising order."""
        matches = [(re.fullmatch(r"epoch_(\d+)\.weights\.h5", path.name), path) for path in self.folder.glob("epoch_*")]
        return sorted((int(match[1]), path) for match, path in matches if match)
