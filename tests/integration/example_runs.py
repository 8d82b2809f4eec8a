"""Examples as functions of their command lines, in this process."""

import contextlib
import io

import keras
import pytest
from absl import logging


def run(main, *arguments):
    """What `python examples/NAME.py ...` prints. The settings of this process stay as they were."""
    policy, verbosity, printed = keras.config.dtype_policy(), logging.get_verbosity(), io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            main([str(argument) for argument in arguments])
    finally:
        keras.config.set_dtype_policy(policy)
        logging.set_verbosity(verbosity)
    return printed.getvalue()


def refusal(main, *arguments):
    """The words with which an example ends that cannot go on."""
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), pytest.raises(SystemExit) as end:
        run(main, *arguments)
    return errors.getvalue() + str(end.value)
