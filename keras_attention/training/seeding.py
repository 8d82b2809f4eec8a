"""Random numbers of an epoch that do not depend on what ran before it."""

import keras
from keras import ops

DRAWS_PER_EPOCH = 2**20
COUNTERS = 2**31  # the smallest range of a seed's counter among the backends


class SeedEachEpoch(keras.callbacks.Callback):
    """Callback that makes dropout a function of the model's seed and the epoch's number, so that training can resume.

    `(seed, counter) = (seed, epoch · 2^20)` in every `keras.random.SeedGenerator` of the model, as an epoch begins

    `keras.callbacks.BackupAndRestore` restores the weights, the optimizer and with its step count the learning rate
    of a schedule, but not the states of the dropouts, which Keras saves in no file: without this callback a resumed
    training drops the units of the first epochs again. With it, a training interrupted in the middle of an epoch and
    resumed ends with the weights of an uninterrupted one, if

    - the model is made anew with the same `seed` (or after the same `keras.utils.set_random_seed`),
    - epoch n reads the same batches in the same order. `keras_attention.data.training_batches` does so with a variable
      `epoch` that is passed here as well; a `shuffle` of `tf.data` begins again with its first order;
    - the backup is made at the ends of epochs, the default. After a backup by `save_freq` in the middle of an epoch
      Keras repeats the whole epoch.

    Its place in the list of callbacks does not matter.

    Args:
        epoch: Integer variable that gets the number of each epoch as it begins, from 0 on, or `None`.

    Example:
        >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dropout(0.5, seed=7), keras.layers.Dense(1)])
        >>> model.compile(optimizer="sgd", loss="mse")
        >>> history = model.fit(np.ones((3, 1)), np.ones((3, 1)), epochs=3, callbacks=[SeedEachEpoch()], verbose=0)
        >>> [int(number) for number in keras.ops.convert_to_numpy(model.layers[0].seed_generator.state)]
        [7, 2097153]
    """

    def __init__(self, epoch=None):
        super().__init__()
        self.epoch = epoch

    def __repr__(self):
        return f"SeedEachEpoch(epoch={self.epoch!r})"

    def on_epoch_begin(self, epoch, logs=None):
        if self.epoch is not None:
            self.epoch.assign(epoch)
        for variable in self.model.variables:
            if variable.name == "seed_generator_state":
                seed, _ = ops.convert_to_numpy(variable)
                variable.assign([seed, epoch * DRAWS_PER_EPOCH % COUNTERS])
