import keras
import numpy as np
import pytest
from keras import ops

from keras_attention.training import AverageCheckpoints, average_checkpoints


class Counter(keras.layers.Layer):
    """A layer with an integer weight."""

    def build(self, shape):
        self.count = self.add_weight(shape=(), dtype="int32", initializer="zeros", trainable=False, name="count")

    def call(self, inputs):
        return inputs


def make_model(optimizer="adam", units=3):
    layers = [
        keras.layers.Dense(units),
        keras.layers.Dropout(0.5, seed=7),
        keras.layers.BatchNormalization(),
        Counter(),
    ]
    model = keras.Sequential([keras.Input((5,)), *layers])
    model.compile(optimizer=optimizer, loss="mse", run_eagerly=True)
    return model


def train(model, callbacks=(), epochs=1, **arguments):
    rng = np.random.default_rng(11)
    inputs, targets = rng.normal(size=(7, 5)).astype("float32"), rng.normal(size=(7, 3)).astype("float32")
    return model.fit(inputs, targets, epochs=epochs, callbacks=list(callbacks), verbose=0, **arguments)


def arrays(variables):
    return [np.array(ops.convert_to_numpy(variable)) for variable in variables]


def assert_equal(first, second, **tolerances):
    for one, other in zip(first, second, strict=True):
        np.testing.assert_allclose(one, other, **{"rtol": 0.0, "atol": 0.0, **tolerances})


class Remember(keras.callbacks.Callback):
    """The weights at the end of each epoch."""

    def __init__(self):
        super().__init__()
        self.weights = []

    def on_epoch_end(self, epoch, logs=None):
        self.weights.append(self.model.get_weights())


class Interrupt(keras.callbacks.Callback):
    def __init__(self, epoch):
        super().__init__()
        self.epoch = epoch

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == self.epoch:
            raise KeyboardInterrupt


def mean(lists):
    return [np.mean(np.asarray(each, "float64"), axis=0) for each in zip(*lists, strict=True)]


# === average_checkpoints ===


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """`(paths, weights)` of three models with random weights; the last weight is the integer one."""
    folder, rng, model = tmp_path_factory.mktemp("checkpoints"), np.random.default_rng(7), make_model()
    paths, weights = [], []
    for number in (2, 3, 5):
        floats = [rng.normal(size=weight.shape).astype("float32") for weight in model.get_weights()[:-1]]
        model.set_weights([*floats, np.array(number)])
        model.save_weights(folder / f"{number}.weights.h5")
        paths.append(folder / f"{number}.weights.h5")
        weights.append(model.get_weights())
    return paths, weights


def test_weights_become_the_mean_of_the_files(checkpoints):
    paths, weights = checkpoints
    model = make_model()
    average_checkpoints(model, map(str, paths))
    assert_equal(model.get_weights()[:-1], mean(weights)[:-1], rtol=1e-6, atol=1e-7)


def test_one_file_gives_its_weights(checkpoints):
    paths, weights = checkpoints
    model = make_model()
    average_checkpoints(model, paths[:1])
    assert_equal(model.get_weights()[:-1], weights[0][:-1])


def test_the_sum_of_large_weights_does_not_overflow_or_round(tmp_path):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False, dtype="float16")])
    paths = [tmp_path / f"{index}.weights.h5" for index in range(3)]
    for value, path in zip((60000.0, 60000.0, 0.0), paths, strict=True):
        model.set_weights([np.array([[value]], "float16")])
        model.save_weights(path)
    average_checkpoints(model, paths)
    assert model.get_weights()[0] == 40000.0


@pytest.mark.parametrize("optimizer", ["adam", "sgd", "scaled"])
def test_integers_seeds_and_the_optimizer_stay_as_they_are(optimizer, tmp_path):
    other = make_model()
    train(other, epochs=2)
    other.save_weights(tmp_path / "other.weights.h5")
    model = make_model(
        keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam()) if optimizer == "scaled" else optimizer
    )
    train(model)
    model.layers[-1].count.assign(13)
    seeds = [variable for variable in model.variables if variable.name == "seed_generator_state"]
    kept = [model.layers[-1].count, *seeds, *model.optimizer.variables]
    before = arrays(kept)
    average_checkpoints(model, [tmp_path / "other.weights.h5"])
    assert_equal(arrays(kept), before)
    assert_equal(model.get_weights()[:-1], other.get_weights()[:-1])
    train(model)
    assert model.optimizer.iterations == 2


def test_a_model_that_is_not_compiled_is_averaged_too(checkpoints):
    paths, weights = checkpoints
    model = keras.models.clone_model(make_model())
    average_checkpoints(model, paths)
    assert_equal(model.get_weights()[:-1], mean(weights)[:-1], rtol=1e-6, atol=1e-7)


def test_no_path_is_an_error():
    with pytest.raises(ValueError, match=r"`paths` must name at least one file of weights\. Received none\."):
        average_checkpoints(make_model(), [])


def test_a_missing_file_is_an_error_that_names_it(checkpoints):
    paths, _ = checkpoints
    with pytest.raises(FileNotFoundError, match=r"There is no file at .*7\.weights\.h5\. Received 4 paths"):
        average_checkpoints(make_model(), [*paths, paths[0].with_name("7.weights.h5")])


@pytest.mark.parametrize("wrong", ["of another model", "no file of weights"])
def test_a_file_that_does_not_fit_is_an_error_that_changes_nothing(checkpoints, tmp_path, wrong):
    path = tmp_path / "wrong.weights.h5"
    if wrong == "of another model":
        make_model(units=13).save_weights(path)
    else:
        path.write_text("seven")
    model = make_model()
    before = model.get_weights()
    with pytest.raises(
        ValueError, match=rf"must hold the weights of this model, '{model.name}'\. .*wrong\.weights\.h5"
    ):
        average_checkpoints(model, [*checkpoints[0], path])
    assert_equal(model.get_weights(), before)


# === AverageCheckpoints ===


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_last_epochs_are_kept_and_averaged(tmp_path):
    model, remember, averaging = make_model(), Remember(), AverageCheckpoints(tmp_path / "new" / "folder", last=3)
    train(model, [remember, averaging], epochs=5)
    assert names(tmp_path / "new" / "folder") == [f"epoch_000{number}.weights.h5" for number in (3, 4, 5)]
    assert_equal(model.get_weights(), mean(remember.weights[2:]), rtol=1e-6, atol=1e-7)
    assert np.abs(model.get_weights()[0] - remember.weights[-1][0]).max() > 1e-4


def test_fewer_epochs_than_the_last_are_all_averaged(tmp_path):
    model, remember = make_model(), Remember()
    train(model, [remember, AverageCheckpoints(tmp_path)], epochs=2)
    assert_equal(model.get_weights(), mean(remember.weights), rtol=1e-6, atol=1e-7)


def test_a_resumed_training_averages_the_epochs_before_the_interruption(tmp_path):
    model, remember = make_model(), Remember()
    with pytest.raises(KeyboardInterrupt):
        train(model, [remember, AverageCheckpoints(tmp_path, last=3), Interrupt(3)], epochs=5)
    train(model, [remember, AverageCheckpoints(tmp_path, last=3)], epochs=4, initial_epoch=3)
    assert len(remember.weights) == 4
    assert_equal(model.get_weights(), mean(remember.weights[1:]), rtol=1e-6, atol=1e-7)


def test_an_interrupted_training_leaves_the_weights_of_its_last_step(tmp_path):
    model, remember = make_model(), Remember()
    with pytest.raises(KeyboardInterrupt):
        train(model, [remember, AverageCheckpoints(tmp_path, last=3), Interrupt(2)], epochs=5)
    assert_equal(model.get_weights(), remember.weights[-1])


def test_a_training_that_stops_early_is_averaged(tmp_path):
    model, remember = make_model(), Remember()
    stop = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: setattr(model, "stop_training", epoch == 2))
    train(model, [remember, AverageCheckpoints(tmp_path, last=2), stop], epochs=5)
    assert len(remember.weights) == 3
    assert_equal(model.get_weights(), mean(remember.weights[1:]), rtol=1e-6, atol=1e-7)


def test_files_of_an_earlier_training_never_enter_the_mean(tmp_path):
    train(make_model(), [AverageCheckpoints(tmp_path, last=2)], epochs=7)
    (tmp_path / "epoch_notes.txt").write_text("not ours")
    model, remember = make_model(), Remember()
    train(model, [remember, AverageCheckpoints(tmp_path, last=2)], epochs=1)
    assert names(tmp_path) == ["epoch_0001.weights.h5", "epoch_notes.txt"]
    assert_equal(model.get_weights(), remember.weights[0])


def test_epochs_are_ordered_by_number(tmp_path):
    for number in ("9999", "10001", "10000"):
        (tmp_path / f"epoch_{number}.weights.h5").touch()
    expected = [f"epoch_{number}.weights.h5" for number in (9999, 10000, 10001)]
    assert [path.name for path in AverageCheckpoints(tmp_path).paths()] == expected


def test_a_write_that_fails_leaves_the_files_as_they_were(tmp_path, monkeypatch):
    model, averaging = make_model(), AverageCheckpoints(tmp_path, last=2)
    train(model, [averaging], epochs=3)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def half_a_file(path):
        path.write_text("half")
        raise OSError("No space left on device")

    monkeypatch.setattr(model, "save_weights", half_a_file)
    with pytest.raises(OSError, match="No space left"):
        averaging.on_epoch_end(3)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_training_for_no_epoch_leaves_the_model_as_it_is(tmp_path):
    model = make_model()
    before = model.get_weights()
    train(model, [AverageCheckpoints(tmp_path / "none")], epochs=0)
    assert_equal(model.get_weights(), before)


@pytest.mark.parametrize("last", [0, -3])
def test_last_that_is_not_positive_is_an_error(last):
    with pytest.raises(ValueError, match=rf"`last` must be a positive integer\. Received: {last}"):
        AverageCheckpoints("anywhere", last=last)


def test_the_repr_of_the_callback_says_how_it_was_made():
    assert repr(AverageCheckpoints("epochs", last=3)) == "AverageCheckpoints('epochs', last=3)"
