"""The options that every example takes, and what they switch on."""

import argparse
import contextlib
import os
import pathlib
import sys
import tempfile
import time

BEGAN = time.monotonic()  # before TensorFlow is imported, which takes a while
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # no messages about drivers that this machine does not have

import keras_attention  # noqa: F401 (before Keras: it says which backends there are)

# isort: split

import keras


def example_parser(description, output, epochs, batch_size):
    """Parser with the options of every example, given their defaults; an example adds its own."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--output", type=writable_folder, default=output, help="folder of the results (default: %(default)s)")
    add("--epochs", type=positive_integer, default=epochs, help="default: %(default)s")
    add("--batch-size", type=positive_integer, default=batch_size, help="default: %(default)s")
    add("--precision", choices=("float32", "mixed_bfloat16", "mixed_float16"), default="float32")
    add("--jit", choices=("auto", "on", "off"), default="auto", help="compile training with XLA")
    add("--strategy", choices=("none", "mirrored"), default="none", help="mirrored: all GPUs of this machine")
    add("--smoke", action="store_true", help="tiny data and one epoch, to see in seconds that everything runs")
    return parser


def set_up(parser):
    """Parses the command line, sets seed and precision, and says which devices the example runs on."""
    if keras.backend.backend() != "tensorflow":
        parser.error(f"it exports a SavedModel; run it with KERAS_BACKEND=tensorflow, not {keras.backend.backend()}")
    arguments = parser.parse_args()
    keras.utils.set_random_seed(1)
    keras.config.set_dtype_policy(arguments.precision)
    # Not to the standard output, which may be the result.
    print(f"Devices: {', '.join(keras.distribution.list_devices())}; precision: {arguments.precision}", file=sys.stderr)
    return arguments


def jit_compile(arguments):
    """`--jit` in the words of `model.compile`."""
    return {"on": True, "off": False, "auto": "auto"}[arguments.jit]


def strategy_scope(arguments):
    """The scope in which the model is made: one device, or a replica on each GPU of this machine."""
    if arguments.strategy == "none":
        return contextlib.nullcontext()
    import tensorflow as tf

    return tf.distribute.MirroredStrategy().scope()


def positive_integer(text):
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be a positive integer. Received: {text}")
    return int(text)


def writable_folder(text):
    folder = pathlib.Path(text)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot be written to ({error}); choose another --output") from error
    return folder
