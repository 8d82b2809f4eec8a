"""Saved models come back: here, from weights alone, and in a process that only imports the package."""

import json
import subprocess
import sys
import textwrap

import keras
import numpy as np
import pytest
from contract.calls import functional, results
from contract.cases import LAYER_CASES, each
from tolerances import EXACT, FLOAT32


def model_outputs(model, arguments):
    return keras.tree.flatten(results(model, arguments))


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """A folder with a `.keras` file, a weights file, inputs and outputs for each case."""
    folder = tmp_path_factory.mktemp("saved")
    for case in LAYER_CASES:
        model = functional(case, case.make())
        arguments = case.masked(case.arrays(), case.padding_masks())
        model.save(folder / f"{case}.keras")
        model.save_weights(folder / f"{case}.weights.h5")
        np.savez(folder / f"{case}.inputs.npz", **arguments)
        np.savez(folder / f"{case}.outputs.npz", *model_outputs(model, arguments))
    return folder


def outputs_of(saved, case):
    with np.load(saved / f"{case}.outputs.npz") as outputs:
        return [outputs[name] for name in outputs]


@each(LAYER_CASES)
def test_keras_file_reloads_to_the_same_outputs(case, saved):
    model = keras.saving.load_model(saved / f"{case}.keras")
    arguments = case.masked(case.arrays(), case.padding_masks())
    for output, expected in zip(model_outputs(model, arguments), outputs_of(saved, case), strict=True):
        np.testing.assert_allclose(output, expected, atol=EXACT)


files_alone = pytest.mark.skipif(
    keras.backend.backend() == "jax", reason="TensorFlow shows that a file holds all that it takes to read it"
)


@each(LAYER_CASES)
@files_alone
def test_weights_file_reloads_to_the_same_outputs(case, saved):
    keras.utils.set_random_seed(11)  # other initial weights
    model = functional(case, case.make())
    model.load_weights(saved / f"{case}.weights.h5")
    arguments = case.masked(case.arrays(), case.padding_masks())
    for output, expected in zip(model_outputs(model, arguments), outputs_of(saved, case), strict=True):
        np.testing.assert_allclose(output, expected, atol=EXACT)


READER = """
    import json, pathlib, sys

    import keras
    import numpy as np

    import keras_attention

    differences = {}
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.keras")):
        try:
            model = keras.saving.load_model(path)
            inputs = dict(np.load(path.with_suffix(".inputs.npz")))
            expected = np.load(path.with_suffix(".outputs.npz"))
            tensors = {name: keras.ops.convert_to_tensor(array) for name, array in inputs.items()}
            outputs = keras.tree.flatten(model(tensors))
            pairs = zip(outputs, [expected[name] for name in expected], strict=True)
            differences[path.stem] = max(
                float(np.abs(keras.ops.convert_to_numpy(output) - array).max()) for output, array in pairs
            )
        except Exception as error:
            differences[path.stem] = str(error)
    print(json.dumps(differences))
"""


@pytest.fixture(scope="session")
def differences(saved):
    """Case -> largest difference of the outputs in a new process, or the error there."""
    command = [sys.executable, "-c", textwrap.dedent(READER), str(saved)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout.splitlines()[-1])


@each(LAYER_CASES)
@files_alone
def test_keras_file_loads_in_a_process_that_only_imports_the_package(case, differences):
    assert isinstance(differences[str(case)], float), differences[str(case)]
    assert differences[str(case)] <= FLOAT32
