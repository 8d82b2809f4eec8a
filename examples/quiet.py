"""Keeps off the screen what TensorFlow and its companions tell their developers; errors and all other words are shown."""

import contextlib
import io
import os
import re
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read by TensorFlow when it is imported

# Written before TensorFlow knows of the level above, and by the sentencepiece inside tensorflow-text.
NOISE = re.compile(
    rb"WARNING: All log messages before absl|I\d{4} |To enable the following instructions|normalizer\.cc"
)


@contextlib.contextmanager
def without_noise():
    """Leaves NOISE out of what libraries write to the standard error meanwhile; everything else follows at the end."""
    sys.stderr.flush()
    screen = os.dup(2)
    with tempfile.TemporaryFile() as written:
        os.dup2(written.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(screen, 2)
            os.close(screen)
            written.seek(0)
            with open(2, "wb", closefd=False) as shown:
                shown.writelines(line for line in written if not NOISE.match(line))


@contextlib.contextmanager
def data_in(folder):
    """Says where TensorFlow Datasets keeps prepared data, in place of its words about a download that there is none of."""
    import tensorflow_datasets as tfds

    print(f"Data: {folder}, made if it is not there yet")
    if not sys.stderr.isatty():
        tfds.disable_progress_bar()
    with contextlib.redirect_stdout(io.StringIO()):
        yield


with without_noise():
    import keras_attention  # noqa: F401 (before Keras: it says which backends there are)

    # isort: split
    import tensorflow


def quiet_loggers():
    """Errors only from the loggers of TensorFlow and absl, whose warnings are about what Keras and TFDS do inside."""
    from absl import logging

    logging.set_verbosity(logging.ERROR)
    tensorflow.get_logger().setLevel("ERROR")
