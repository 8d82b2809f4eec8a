"""What an example cannot do it says in a sentence, and nothing of TensorFlow stands before it."""

import argparse
import os
import pathlib
import random
import subprocess
import sys

import keras
import numpy as np
import pytest

if keras.backend.backend() == "torch":
    pytest.skip("the examples are tried with TensorFlow and refused with JAX", allow_module_level=True)

import classify_documents
import command_line
import glimpse_digits
import pointer_geometry
import pointer_tasks
import translate_dates
import translate_text
import tsp_reinforce
from integration.example_runs import refusal

from keras_attention.data import convex_hulls, write_points

BACKEND = keras.backend.backend()
tensorflow_only = pytest.mark.skipif(BACKEND != "tensorflow", reason="the examples read and export with TensorFlow")


@pytest.mark.skipif(BACKEND == "tensorflow", reason="the refusal of another backend")
def test_another_backend_is_refused(tmp_path):
    assert "run it with KERAS_BACKEND=tensorflow, not jax" in refusal(translate_dates.main, "--output", tmp_path)


@tensorflow_only
@pytest.mark.parametrize(
    "example, arguments, words",
    [
        (translate_dates, ["--epochs", 0], "must be a positive integer. Received: 0"),
        (translate_dates, ["--precision", "float12"], "invalid choice: 'float12'"),
        (translate_dates, ["--output", os.devnull], "choose another --output"),
        (translate_text, [], "one of --data DIR, --translate FILE, --interactive and --smoke is needed"),
        (translate_text, ["--data", "nothere"], "There is no folder nothere"),
        (translate_text, ["--interactive"], "a trained model is needed"),
        (classify_documents, ["--data", "nothere"], "There is no folder nothere"),
        (classify_documents, ["--test-fold", 11], "invalid choice: 11"),
        (classify_documents, ["--word-encoder", "rnn"], "invalid choice: 'rnn'"),
        (classify_documents, ["--dropout", 1], "must be a number, from 0 on and below 1. Received: 1"),
        (classify_documents, ["--classify", "nothere"], "--classify needs a trained model"),
        (pointer_geometry, ["--evaluate", "nofile"], "No such file or directory: 'nofile'"),
        (pointer_geometry, ["--data", "nofile"], "No such file or directory: 'nofile'"),
        (pointer_geometry, ["--points", "9-5"], "increasing order"),
        (pointer_geometry, ["--learning-rate", "nan"], "must be a number, positive. Received: nan"),
        (tsp_reinforce, ["--samples", 1], "--samples 2 or more"),
        (glimpse_digits, ["--data", "nothere"], "nothere"),
        (glimpse_digits, ["--shift", -1], "must be 0 or a positive integer. Received: -1"),
        (glimpse_digits, ["--batch-size", 100_000], "--batch-size must be at most 1437"),
    ],
)
def test_an_example_refuses_in_words(example, arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert words in refusal(example.main, *arguments)


@tensorflow_only
def test_a_file_in_another_encoding_is_named(tmp_path):
    path = tmp_path / "old.txt"
    path.write_bytes("für".encode("latin-1"))
    (tmp_path / "served" / "1").mkdir(parents=True)
    words = refusal(lambda _: command_line.read_text(path))
    assert f"{path} must be in UTF-8" in words


@tensorflow_only
def test_interruption_ends_with_what_the_same_command_does():
    def interrupted():
        raise KeyboardInterrupt

    assert "Interrupted. It goes on." in refusal(lambda _: command_line.run(interrupted, "It goes on."))


@tensorflow_only
@pytest.mark.parametrize(
    "task, points, indices, expected",
    [
        # Sorted by x the points are b c a d: leftmost first, counter-clockwise.
        ("hull", [[2, 0], [0, 0], [1, 1], [3, 1]], [1, 2, 3, 4], [1, 3, 4, 2]),
        ("tsp", [[2, 0], [0, 0], [1, 1], [3, 1]], [4, 3, 2, 1], [1, 3, 4, 2]),
        ("delaunay", [[2, 0], [0, 0], [1, 1]], [3, 1, 2], [1, 2, 3]),
        ("sort", [[3], [1], [2]], [2, 3, 1], [2, 3, 1]),
    ],
)
def test_examples_of_a_file_are_written_as_those_of_the_data_set(task, points, indices, expected):
    example = {"points": np.array(points, "float32"), "indices": np.array(indices, "int32")}
    ordered = pointer_tasks.in_order(pointer_tasks.TASKS[task], example)
    np.testing.assert_array_equal(ordered["indices"], expected)
    if task != "sort":
        assert (np.diff(ordered["points"][:, 0]) > 0).all()


@tensorflow_only
def test_of_the_examples_of_a_file_a_fifth_is_for_the_tests(tmp_path):
    hull = pointer_tasks.TASKS["hull"]
    sizes, rng = [3] * 10 + [7] * 10, np.random.default_rng(1)
    points = [rng.random((size, 2), "float32") for size in sizes]
    examples = [{"points": each, "indices": convex_hulls(each[None])[0]} for each in points]
    write_points(tmp_path / "hulls.txt", examples)
    splits, points = pointer_tasks.splits_of_file(hull, tmp_path / "hulls.txt")
    assert {name: len(split) for name, split in splits.items()} == {"train": 16, "validation": 2, "test": 2}
    assert points == range(3, 8)


@tensorflow_only
@pytest.mark.parametrize(
    "task, count, words",
    [
        (
            "tsp",
            10,
            r"hulls.txt, example 1: [1, 2, 3] is no answer that --task asks for, one of the kind 'permutation'",
        ),
        ("hull", 7, "hulls.txt must have 10 examples or more. Received 7."),
        ("hull", 0, "hulls.txt has no example."),
    ],
)
def test_a_file_that_cannot_be_learned_is_refused(task, count, words, tmp_path):
    points = np.array([[0, 0], [1, 0], [0, 1], [0.2, 0.2]], "float32")
    path = tmp_path / "hulls.txt"
    write_points(path, [{"points": points, "indices": np.array([1, 2, 3])}] * count)
    assert words in refusal(pointer_geometry.main, "--task", task, "--data", path, "--output", tmp_path)


def run_apart(**variables):
    """The example in a process of its own, with environment variables."""
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"} | variables
    command = [sys.executable, pathlib.Path(translate_text.__file__)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@tensorflow_only
def test_an_unknown_backend_is_named():
    result = run_apart(KERAS_BACKEND="nonsense")
    assert "Unknown Keras backend: 'nonsense'. keras_attention runs on" in result.stderr.splitlines()[-1]


@tensorflow_only
def test_nothing_of_tensorflow_stands_before_the_words():
    result = run_apart()
    assert result.returncode == 2
    devices, usage, *_ = result.stderr.splitlines()
    assert devices.startswith("Devices: ")
    assert usage.startswith("usage: translate_text.py")


@tensorflow_only
def test_a_model_starts_from_the_same_weights_whatever_was_drawn_before():
    arguments = argparse.Namespace(strategy="none")
    kernels = []
    for number_of_draws in (0, 3):
        keras.utils.set_random_seed(1)
        [random.random() for _ in range(number_of_draws)]
        with command_line.strategy_scope(arguments):
            layer = keras.layers.Dense(5)
            layer.build((None, 3))
        kernels.append(layer.kernel.numpy())
    np.testing.assert_array_equal(*kernels)
