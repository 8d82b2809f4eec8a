"""`ruff` finds nothing to mend in the tree."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent


@pytest.mark.parametrize("arguments", [("check",), ("format", "--check")], ids=" ".join)
def test_ruff_finds_nothing_to_mend(arguments):
    command = [sys.executable, "-m", "ruff", *arguments, "--no-cache", "."]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
