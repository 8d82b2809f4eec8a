import keras
import numpy as np
from keras import ops

from keras_attention.training import SeedEachEpoch


def dropout_model():
    dropouts = [keras.layers.Dropout(0.5, seed=seed) for seed in (7, 5)]
    model = keras.Sequential([keras.Input((3,)), *dropouts, keras.layers.Dense(2)])
    model.compile(optimizer="sgd", loss="mse", run_eagerly=True)
    return model


def states(model):
    seeds = [variable for variable in model.variables if variable.name == "seed_generator_state"]
    return [ops.convert_to_numpy(variable).tolist() for variable in seeds]


def fit(model, first, last):
    """The states of the seeds after the epochs `first` ... `last - 1` of three steps."""
    inputs, targets, callbacks = np.ones((3, 3)), np.ones((3, 2)), [SeedEachEpoch()]
    model.fit(inputs, targets, batch_size=1, epochs=last, initial_epoch=first, callbacks=callbacks, verbose=0)
    return states(model)


def test_the_counter_of_every_seed_starts_at_a_place_of_the_epoch():
    assert fit(dropout_model(), 0, 1) == [[7, 3], [5, 3]]
    assert fit(dropout_model(), 0, 3) == [[7, 2 * 2**20 + 3], [5, 2 * 2**20 + 3]]


def test_an_epoch_draws_the_same_whatever_ran_before():
    assert fit(dropout_model(), 0, 3) == fit(dropout_model(), 2, 3)


def test_epochs_without_end_stay_in_the_range_of_the_counter():
    assert fit(dropout_model(), 2**11 + 1, 2**11 + 2) == [[7, 2**20 + 3], [5, 2**20 + 3]]


def test_weights_and_other_variables_are_left_alone():
    model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(3), keras.layers.BatchNormalization()])
    callback = SeedEachEpoch()
    callback.set_model(model)
    before = model.get_weights()
    callback.on_epoch_begin(3)
    for weight, expected in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(weight, expected)


def test_a_variable_gets_the_number_of_the_epoch():
    number = keras.Variable(7, dtype="int32")
    model = dropout_model()
    model.fit(np.ones((2, 3)), np.ones((2, 2)), epochs=4, initial_epoch=1, callbacks=[SeedEachEpoch(number)], verbose=0)
    assert int(number) == 3


def test_a_training_killed_while_its_backup_was_written_ends_as_one_that_never_was(tmp_path):
    def train(epochs, *more):
        model, ones = dropout_model(), (np.ones((3, 3)), np.ones((3, 2)))
        model.set_weights([np.full(weight.shape, 0.1) for weight in model.get_weights()])
        model.fit(*ones, batch_size=1, epochs=epochs, callbacks=[SeedEachEpoch(), *more], verbose=0)
        return model.get_weights()

    backup = keras.callbacks.BackupAndRestore(tmp_path, double_checkpoint=True, delete_checkpoint=False)
    train(3, backup)
    path = tmp_path / "latest.weights.h5"
    path.write_bytes(path.read_bytes()[:100])
    for weight, expected in zip(train(4, backup), train(4), strict=True):
        np.testing.assert_array_equal(weight, expected)


def test_the_repr_says_how_it_was_made():
    assert repr(SeedEachEpoch()) == "SeedEachEpoch(epoch=None)"
