"""The benchmarks run from beginning to end with `--smoke`, and their contenders do the same work."""

import functools
import importlib
import pathlib
import sys

import keras
import numpy as np
import pytest
from integration.example_runs import refusal

from keras_attention.training import ReinforceModel

if keras.backend.backend() != "tensorflow":
    pytest.skip("the benchmarks compare on TensorFlow", allow_module_level=True)

BENCHMARKS = pathlib.Path(__file__).parent.parent.parent / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module


def test_contenders_take_turns_and_a_table_shows_their_ratio(benchmark, monkeypatch, capsys):
    run, attention = benchmark("run"), benchmark("attention")
    padding, causal = attention.COMPARISONS
    monkeypatch.setattr(attention, "COMPARISONS", [padding])
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "1")
    run.main(["attention", "--smoke"])
    printed = capsys.readouterr().out
    assert "TF_ENABLE_ONEDNN_OPTS=1" in printed
    table = printed.split("attention: ")[1]
    ours, peer = (next(line for line in table.splitlines() if line.startswith(name)) for name in ("keras_a", "keras "))
    assert len(peer.split()) == len(ours.split()) + 2, table  # the ratio and the target
    assert f"keras {keras.__version__}" in table
    works = [causal.contenders[name](**causal.sizes["smoke"]) for name in causal.contenders if "keras" in name]
    gradients = [work() for work in works]
    assert len(works) == 2 and gradients[0].shape == gradients[1].shape and np.isfinite(gradients).all()


def test_the_variance_of_each_estimator_is_compared_with_that_without_a_baseline(benchmark, monkeypatch, capsys):
    # A few steps take less time than compiling them.
    compile_eagerly = functools.partialmethod(ReinforceModel.compile, run_eagerly=True)
    monkeypatch.setattr(ReinforceModel, "compile", compile_eagerly)
    benchmark("gradient_variance").main(["--smoke"])
    lines = capsys.readouterr().out.splitlines()
    for name in ("none", "moving_average", "learned", "leave_one_out", "straight_through"):
        (line,) = (line for line in lines if line.startswith(f"{name} "))
        assert np.isfinite([float(column) for column in line.split()[1:]]).all()


@pytest.fixture
def compare(benchmark, monkeypatch, tmp_path):
    """`(times, missing)` of a contender whose body is given."""

    def run_contender(body):
        (tmp_path / "contender.py").write_text(f"def prepare():\n    {body}\n")
        monkeypatch.syspath_prepend(tmp_path)
        side_by_side = benchmark("side_by_side")
        monkeypatch.setitem(side_by_side.ENVIRONMENT, "PYTHONPATH", str(tmp_path))
        monkeypatch.delitem(sys.modules, "contender", raising=False)
        comparison = side_by_side.Comparison("", {"peer": benchmark("contender").prepare}, {"smoke": {}}, calls=3)
        return side_by_side.compare(comparison, "smoke", 2, {})

    return run_contender


def test_the_first_round_is_not_counted_and_the_time_is_that_of_one_call(compare):
    times, missing = compare("import time; print('noise'); return lambda: time.sleep(0.01)")
    assert not missing and len(times["peer"]) == 2
    for answer in times["peer"]:
        assert answer["seconds"] >= 0.01


def test_a_peer_that_is_not_installed_is_left_out_with_the_reason(compare):
    times, missing = compare("import no_such_library")
    assert not times
    assert missing["peer"] == f"No module named 'no_such_library' in {sys.executable}"


def test_a_contender_that_fails_ends_the_run_with_its_message(compare):
    with pytest.raises(SystemExit, match=r"(?s)ValueError: too large.*contender.prepare failed with exit status 1"):
        compare("raise ValueError('too large')")


def test_the_model_from_layers_of_keras_has_our_loss(benchmark):
    training_step, B, T, V = benchmark("training_step"), 3, 5, 11
    sizes = {"V": V, "D": 6, "layers": 2, "N": 2, "dropout": 0.0}
    models = training_step.our_model(**sizes), benchmark("keras_transformer").keras_transformer(**sizes)
    for model in models:
        model.set_weights([by_shape(weight) for weight in model.get_weights()])
    source, target, labels = training_step.batch(B, T, V)
    inputs = {"source": source, "target": target}
    ours = models[0].test_on_batch(inputs, labels)
    theirs = models[1].test_on_batch(inputs, labels, sample_weight=(labels != 0).astype("float32"))
    assert models[0].count_params() == models[1].count_params()
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def by_shape(weight):
    """Numbers that depend on the shape alone, for matrices; vectors stay as they are."""
    return weight if weight.ndim < 2 else np.random.default_rng(weight.shape).normal(size=weight.shape, scale=0.3)


def test_decoding_without_a_cache_writes_our_tokens(benchmark):
    decoding = benchmark("greedy_decoding")
    sizes = {**decoding.SMOKE, "B": 3}
    tokens = decoding.with_cache(**sizes)()
    assert tokens.shape == (3, sizes["T"])
    np.testing.assert_array_equal(decoding.without_cache(**sizes)(), tokens)


@pytest.mark.parametrize(
    "arguments, backend, message",
    [
        (["speed"], "", "'speed' is not among import_time, attention"),
        (["--rounds", "0"], "", "must be a positive integer. Received: 0"),
        (["--torch-python", "nowhere/python"], "", "'nowhere/python' is not a program"),
        ([], "jax", "run it with KERAS_BACKEND=tensorflow, not jax"),
    ],
)
def test_bad_arguments_are_refused_in_words(arguments, backend, message, benchmark, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", backend)
    assert message in refusal(benchmark("run").main, *arguments)
