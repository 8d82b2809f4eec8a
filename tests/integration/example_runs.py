"""Runs of an example in a process of its own."""

import os
import pathlib
import subprocess
import sys

EXAMPLES = pathlib.Path(__file__).parent.parent.parent / "examples"


def run(name, *arguments, **environment):
    return subprocess.run(
        [sys.executable, EXAMPLES / name, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **environment},
        check=False,
    )
