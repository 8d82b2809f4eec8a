"""What every example shares: its options, what they switch on, and errors that are a sentence and no traceback."""

import argparse
import contextlib
import pathlib
import sys
import tempfile
import time

BEGAN = time.monotonic()  # before TensorFlow is imported, which takes a while

from argument_types import positive_integer
from quiet import quiet_loggers  # before Keras

# isort: split

import keras


def example_parser(description, output, epochs, batch_size):
    """Parser with the options of every example, given their defaults; an example adds its own."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--output", type=pathlib.Path, default=output, help="folder of the results (default: %(default)s)")
    add("--epochs", type=positive_integer, default=epochs, help="default: %(default)s")
    add("--batch-size", type=positive_integer, default=batch_size, help="default: %(default)s")
    add("--precision", choices=("float32", "mixed_bfloat16", "mixed_float16"), default="float32")
    add("--jit", choices=("auto", "on", "off"), default="auto", help="compile training with XLA")
    add("--strategy", choices=("none", "mirrored"), default="none", help="mirrored: all GPUs of this machine")
    add(
        "--smoke",
        action="store_true",
        help="tiny data and one epoch, to see in seconds that everything runs; written into the folder `smoke` of the output",
    )
    return parser


def set_up(parser, argv=None):
    """Parses the command line, sets seed and precision, and says which devices the example runs on."""
    if keras.backend.backend() != "tensorflow":
        parser.error(f"it exports a SavedModel; run it with KERAS_BACKEND=tensorflow, not {keras.backend.backend()}")
    arguments = parser.parse_args(argv)
    if arguments.smoke:
        arguments.output /= "smoke"  # what a real run has written stays as it is, and no server sees the version
    make_writable(arguments.output, parser)
    quiet_loggers()
    keras.utils.set_random_seed(1)
    keras.config.set_dtype_policy(arguments.precision)
    # Not to the standard output, which may be the result.
    print(f"Devices: {', '.join(keras.distribution.list_devices())}; precision: {arguments.precision}", file=sys.stderr)
    return arguments


def make_writable(folder, parser):
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        parser.error(f"{folder} cannot be written to ({error}); choose another --output")


def run(main, advice="The same command begins again."):
    """Runs an example as a program, which Ctrl-C ends with a sentence."""
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(f"\nInterrupted. {advice}")


@contextlib.contextmanager
def in_words():
    """What is wrong with a file, or with a setting for it, ends the example as a sentence."""
    try:
        yield
    except (ImportError, OSError, ValueError) as error:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {error}")


def read_text(path):
    """The text of a UTF-8 file."""
    with in_words():
        try:
            return path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} must be in UTF-8. Received bytes that are not: {error}.") from error


def jit_compile(arguments):
    """`--jit` in the words of `model.compile`."""
    return {"on": True, "off": False, "auto": "auto"}[arguments.jit]


def strategy_scope(arguments):
    """The scope in which the model is made: one device, or a replica on each GPU of this machine.

    Its initial weights are the same whatever was drawn before: data that are prepared at the first run draw, too.
    """
    keras.utils.set_random_seed(1)
    if arguments.strategy == "none":
        return contextlib.nullcontext()
    import tensorflow as tf

    return tf.distribute.MirroredStrategy().scope()
