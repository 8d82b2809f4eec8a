"""Every test starts from the same random numbers."""

import collections
import contextlib
import functools
import gc
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
    # JAX makes a context of MLIR for each compilation, a quarter of its time: one serves them all.
    with contextlib.suppress(ImportError, AttributeError):
        from jax._src.interpreters import mlir

        mlir.make_ir_context = functools.cache(mlir.make_ir_context)

# isort: split
import keras
import numpy as np
import pytest

BACKEND = keras.backend.backend()
if BACKEND != "tensorflow":
    # TensorFlow only, by design; and what reads no tensor, or tensors as `visualization/test_heat_maps.py` does.
    of_tensorflow = ["data", "serving"]
    of_no_backend = [
        "checks",
        "contract/test_arguments.py",
        "evaluation/test_polygons.py",
        "evaluation/test_triangulations.py",
        "test_docstrings.py",
        "test_extras.py",
        "test_files.py",
        "test_imports.py",
        "test_style.py",
        "visualization/test_documents.py",
        "visualization/test_glimpses.py",
        "visualization/test_labels.py",
        "visualization/test_points.py",
    ]
    collect_ignore = of_tensorflow + of_no_backend


def pytest_report_header(config):
    left_out = (
        ""
        if BACKEND == "tensorflow"
        else f"; left out are {', '.join(of_tensorflow)}, which are TensorFlow only, and what does not depend on the "
        f"backend: {', '.join(of_no_backend)}"
    )
    return f"Keras {keras.__version__} on {BACKEND}{left_out}"


# A few tests of each take longer than hundreds elsewhere.
LONGEST = (
    "test_docs",
    "test_examples_of_sequences",
    "test_examples_of_readers",
    "test_compiled",
    "test_models",
    "test_saving",
    "test_replicas",
    "test_serving_a_transformer",
    "test_serving_a_pointer_network",
    "test_examples_resuming",
    "test_benchmarks",
)


def pytest_configure(config):
    config.option.loadscopereorder = False  # pytest-xdist would put the files of few tests last, the longest among them


def pytest_collection_modifyitems(items):
    """The longest files first, then those of many tests, so that the processes of pytest-xdist end together."""
    counts = collections.Counter(item.path for item in items)

    def order(item):
        name = item.path.stem
        place = LONGEST.index(name) if name in LONGEST else len(LONGEST)
        return place, -counts[item.path], str(item.path)

    items.sort(key=order)


def pytest_collection_finish():
    """Libraries and tests are no garbage: the collector, which Keras calls often, need not look at them again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def seed():
    keras.utils.set_random_seed(7)


@pytest.fixture
def rng():
    return np.random.default_rng(7)
