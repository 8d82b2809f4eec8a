"""Every test starts from the same random numbers."""

import os
import tempfile

# Tiny tensors gain nothing from optimized code, and compiling it takes more than twice as long.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
)
if os.environ.get("KERAS_BACKEND") == "jax":
    # An eager recurrent layer is compiled anew at every call; what has been compiled is kept for the length of the run,
    # in a folder that the processes of pytest-xdist inherit.
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        compiled = tempfile.TemporaryDirectory()
        os.environ["JAX_COMPILATION_CACHE_DIR"] = compiled.name
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

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


def pytest_collection_modifyitems(items):
    """The longest files first, so that the processes of pytest-xdist end together."""
    longest = ("test_docs", "test_examples_of_sequences", "test_examples_of_readers")
    items.sort(key=lambda item: item.path.stem not in longest)


@pytest.fixture(autouse=True)
def seed():
    keras.utils.set_random_seed(7)


@pytest.fixture
def rng():
    return np.random.default_rng(7)
