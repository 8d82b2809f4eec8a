"""Every example of a public docstring runs and gives what it says."""

import doctest
import importlib

import keras
import numpy as np
import pytest
from keras import ops
from literals import literal, plain

FOLDERS = ["alignments", "decoding", "layers", "masks", "models", "positions", "scores", "training"]


def documented():
    for folder in FOLDERS:
        module = importlib.import_module(f"keras_attention.{folder}")
        for name in module.__all__:
            if name != "get":
                yield pytest.param(getattr(module, name), id=f"{folder}.{name}")


@pytest.mark.parametrize("documented_object", list(documented()))
def test_the_example_of_the_docstring_runs_and_gives_what_it_says(documented_object):
    examples = doctest.DocTestParser().get_examples(documented_object.__doc__)
    assert examples, f"{documented_object.__name__} has no example"
    module = importlib.import_module(documented_object.__module__)
    names = {
        **vars(importlib.import_module("keras_attention.layers")),
        **vars(importlib.import_module("keras_attention.masks")),
        **vars(module),
        "keras": keras,
        "ops": ops,
        "np": np,
    }
    for example in examples:
        if not example.want:
            exec(example.source, names)
            continue
        expected = literal(example.want)
        if expected is not None:
            value = plain(eval(example.source, names))
            np.testing.assert_equal(value, expected)
