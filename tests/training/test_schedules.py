import doctest

import keras
import numpy as np
import pytest
from keras import ops

from keras_attention.training import WarmupInverseSquareRoot, schedules


def paper(step_num, hidden_dim, warmup_steps, scale=1.0):
    """Equation (3) as printed, for step_num from one."""
    return scale * hidden_dim**-0.5 * min(step_num**-0.5, step_num * warmup_steps**-1.5)


def rate_of(optimizer):
    return float(ops.convert_to_numpy(optimizer.learning_rate))


@pytest.mark.parametrize("step", [0, 1, 998, 3998, 3999, 4000, 99_999])
def test_rates_equal_equation_three(step):
    rate = WarmupInverseSquareRoot(hidden_dim=512, scale=0.5)(step)
    assert float(rate) == pytest.approx(paper(step + 1, 512, 4000, 0.5), rel=1e-6)
    assert keras.backend.standardize_dtype(rate.dtype) == "float32"


def test_the_repr_says_how_it_was_made():
    expected = "WarmupInverseSquareRoot(hidden_dim=512, warmup_steps=4000, scale=0.5)"
    assert repr(WarmupInverseSquareRoot(512, scale=0.5)) == expected


def test_peak_of_the_base_model_is_the_published_one():
    schedule = WarmupInverseSquareRoot(hidden_dim=512, warmup_steps=4000)
    assert float(schedule(3999)) == pytest.approx(6.9877e-4, rel=1e-4)
    assert float(schedule(3998)) < float(schedule(3999)) > float(schedule(4000))


def test_first_update_moves_the_weights_by_the_first_rate():
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")])
    schedule = WarmupInverseSquareRoot(hidden_dim=4, warmup_steps=4)
    model.compile(optimizer=keras.optimizers.SGD(schedule), loss="mae")
    weights = [1.0]
    for _ in range(6):  # the gradient of |w - 100| is -1
        model.fit(np.array([[1.0]]), np.array([[100.0]]), verbose=0)
        weights.append(float(model.get_weights()[0][0, 0]))
    np.testing.assert_allclose(np.diff(weights), [paper(number, 4, 4) for number in range(1, 7)], rtol=1e-4)


NO_COMPILER = pytest.mark.skipif(
    keras.backend.backend() == "torch", reason="torch.compile needs a C++ compiler and warns of its own deprecations"
)


@pytest.mark.parametrize("jit_compile", [False, pytest.param(True, marks=NO_COMPILER)])
def test_compiled_model_keeps_schedule_and_step_in_its_file(tmp_path, jit_compile):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.compile(keras.optimizers.Adam(WarmupInverseSquareRoot(7, 5, 2.0)), loss="mse", jit_compile=jit_compile)
    model.fit(np.ones((6, 3)), np.ones((6, 2)), batch_size=2, verbose=0)
    assert rate_of(model.optimizer) == pytest.approx(paper(4, 7, 5, 2.0), rel=1e-6)
    model.save(tmp_path / "model.keras")
    restored = keras.models.load_model(tmp_path / "model.keras")
    assert rate_of(restored.optimizer) == pytest.approx(paper(4, 7, 5, 2.0), rel=1e-6)
    restored.fit(np.ones((2, 3)), np.ones((2, 2)), verbose=0)
    assert rate_of(restored.optimizer) == pytest.approx(paper(5, 7, 5, 2.0), rel=1e-6)


def test_config_round_trip():
    schedule = WarmupInverseSquareRoot(128, warmup_steps=17, scale=1.5)
    config = keras.optimizers.schedules.serialize(schedule)
    assert config["registered_name"] == "keras_attention>WarmupInverseSquareRoot"
    restored = keras.optimizers.schedules.deserialize(config)
    assert restored.get_config() == {"hidden_dim": 128, "warmup_steps": 17, "scale": 1.5}


@pytest.mark.parametrize("name", ["hidden_dim", "warmup_steps"])
@pytest.mark.parametrize("value", [0, -3, 2.5, "512"])
def test_sizes_must_be_positive_integers(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be a positive integer. Received: {value!r}"):
        WarmupInverseSquareRoot(**{"hidden_dim": 512, name: value})


@pytest.mark.parametrize("value", [0.0, -1.0, "1"])
def test_scale_must_be_positive(value):
    with pytest.raises(ValueError, match=f"`scale` must be a positive number. Received: {value!r}"):
        WarmupInverseSquareRoot(512, scale=value)


def test_the_example_of_the_manual_is_true():
    assert doctest.testmod(schedules).failed == 0
