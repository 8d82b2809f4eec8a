"""Every test starts from the same random numbers."""

import os

if os.environ.get("KERAS_BACKEND") == "jax":
    # JAX compiles every operation of every shape on its own; tiny tensors gain nothing from optimized code.
    os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

# isort: split
import keras
import numpy as np
import pytest

BACKEND = keras.backend.backend()
if BACKEND != "tensorflow":
    collect_ignore = ["data", "serving"]  # TensorFlow only, by design


def pytest_report_header(config):
    left_out = (
        "" if BACKEND == "tensorflow" else "; tests/data and tests/serving, which are TensorFlow only, are left out"
    )
    return f"Keras {keras.__version__} on {BACKEND}{left_out}"


@pytest.fixture(autouse=True)
def seed():
    keras.utils.set_random_seed(7)


@pytest.fixture
def rng():
    return np.random.default_rng(7)
