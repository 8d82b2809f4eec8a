"""Files that version 0.1 saved (commit d2b235d) load with the same outputs, and their weights into new models.

`version_0_1` holds a `.keras` file of every case of that version, inputs with padding on the right, and the outputs.
"""

import functools
import pathlib
import zipfile

import keras
import numpy as np
import pytest
from contract.calls import functional, results
from contract.cases import LAYER_CASES
from tolerances import FLOAT32

FOLDER = pathlib.Path(__file__).parent / "version_0_1"
FILES = sorted(FOLDER.glob("*.keras"))
CASES = {str(case): case for case in LAYER_CASES}


@functools.cache
def arrays():
    with np.load(FOLDER / "arrays.npz") as file:
        return dict(file)


def inputs_and_outputs(name):
    saved = [(key.split("/")[1:], array) for key, array in arrays().items() if key.split("/")[0] == name]
    inputs = {argument: array for (kind, argument), array in saved if kind == "inputs"}
    return inputs, [array for (kind, _), array in saved if kind == "outputs"]


def check(model, name):
    inputs, expected = inputs_and_outputs(name)
    for output, array in zip(keras.tree.flatten(results(model, inputs)), expected, strict=True):
        np.testing.assert_allclose(output, array, atol=FLOAT32)


def each_file(files):
    return pytest.mark.parametrize("path", files, ids=lambda path: path.stem)


@each_file(FILES)
def test_a_file_of_version_0_1_loads_with_the_same_outputs(path):
    check(keras.saving.load_model(path), path.stem)


@each_file([path for path in FILES if path.stem in CASES])
def test_the_weights_of_version_0_1_load_into_a_new_model(path, tmp_path):
    model = functional(CASES[path.stem], CASES[path.stem].make())
    with zipfile.ZipFile(path) as file:
        model.load_weights(file.extract("model.weights.h5", tmp_path))
    check(model, path.stem)


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="test_compiled.py trains a Transformer, which takes long")
def test_a_loaded_transformer_trains_on(rng):
    model = keras.saving.load_model(FOLDER / "compiled-Transformer.keras")
    inputs, _ = inputs_and_outputs("compiled-Transformer")
    history = model.fit(inputs, rng.integers(4, 19, inputs["target"].shape), verbose=0)
    assert set(history.history) == {"loss", "token_accuracy", "sequence_accuracy"}
