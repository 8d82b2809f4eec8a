"""What Keras does by itself when it trains a Transformer: clipping, accumulation, resuming, the best checkpoint."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attention.models import Transformer
from keras_attention.training import EvaluateBleu, SeedEachEpoch, SmoothedCrossentropy, WarmupInverseSquareRoot

SOURCE = np.array([[4, 5, 6], [7, 8, 0], [9, 10, 11], [5, 4, 0]], "int32")  # B = 4, S = 3
TARGET = np.array([[1, 4, 5, 6], [1, 7, 8, 0], [1, 9, 10, 11], [1, 5, 4, 0]], "int32")  # T = 4
LABELS = np.array([[4, 5, 6, 2], [7, 8, 2, 0], [9, 10, 11, 2], [5, 4, 2, 0]], "int32")  # 7 tokens in each half


# Of a few steps, compiling is what takes longest, except on JAX, where single operations are compiled as well.
EAGER = keras.backend.backend() != "jax"


def make_transformer(optimizer, run_eagerly=EAGER, **arguments):
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 6, "intermediate_dim": 17}
    keras.utils.set_random_seed(3)
    model = Transformer(13, seed=5, **{"dropout": 0.0, "tie_embeddings": True, **sizes, **arguments})
    model.compile(optimizer, SmoothedCrossentropy(0.0), run_eagerly=run_eagerly)
    return model


def train(model, batch_size=4, **arguments):
    inputs = {"source": SOURCE, "target": TARGET}
    return model.fit(inputs, LABELS, batch_size=batch_size, shuffle=False, **{"verbose": 0, **arguments})


def movement(optimizer, **arguments):
    """By how much training changes every weight, as one vector."""
    model = make_transformer(optimizer)
    before = model.get_weights()
    train(model, **arguments)
    return np.concatenate([np.ravel(new - old) for new, old in zip(model.get_weights(), before, strict=True)])


# === Gradients ===


@pytest.fixture(scope="module")
def gradient():
    return movement(keras.optimizers.SGD(1.0))


def test_global_clipnorm_shortens_the_gradient_and_keeps_its_direction(gradient):
    norm = np.linalg.norm(gradient)
    assert norm > 0.3
    clipped = movement(keras.optimizers.SGD(1.0, global_clipnorm=0.3))
    np.testing.assert_allclose(clipped, gradient * 0.3 / norm, rtol=0, atol=1e-6)


def test_a_gradient_below_global_clipnorm_is_not_changed(gradient):
    clipped = movement(keras.optimizers.SGD(1.0, global_clipnorm=1000.0))
    np.testing.assert_allclose(clipped, gradient, rtol=0, atol=1e-6)


def test_two_accumulated_halves_are_one_step_on_the_whole():
    whole = movement(keras.optimizers.SGD(0.1, momentum=0.9), epochs=3)
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9, gradient_accumulation_steps=2)
    assert np.abs(whole).max() > 1e-3
    np.testing.assert_allclose(movement(optimizer, batch_size=2, epochs=3), whole, rtol=0, atol=1e-6)


def test_a_schedule_counts_batches_and_not_updates_when_gradients_are_accumulated():
    """Keras' manual promises the updates. Until it keeps that, `warmup_steps` are batches."""
    schedule = WarmupInverseSquareRoot(hidden_dim=6, warmup_steps=1009)
    optimizer = keras.optimizers.SGD(schedule, gradient_accumulation_steps=2)
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(optimizer, "mse", run_eagerly=True)
    model.fit(np.ones((6, 1)), np.ones((6, 1)), batch_size=1, verbose=0)
    assert int(optimizer.iterations) == 3
    assert float(optimizer.learning_rate) == pytest.approx(float(schedule(6)))


# === Resuming ===


class InterruptInTheMiddle(keras.callbacks.Callback):
    """Raises after the first step of an epoch."""

    def __init__(self, epoch):
        super().__init__()
        self.epoch = epoch

    def on_epoch_begin(self, epoch, logs=None):
        self.is_last = epoch == self.epoch

    def on_train_batch_end(self, batch, logs=None):
        if self.is_last:
            raise KeyboardInterrupt


def trained(folder, interrupted):
    """Everything that four epochs of two steps leave in the model, interrupted in the third epoch or not."""

    def model():
        schedule = WarmupInverseSquareRoot(hidden_dim=6, warmup_steps=5)
        return make_transformer(keras.optimizers.Adam(schedule), run_eagerly=False, dropout=0.3)

    def callbacks():
        return [SeedEachEpoch(), keras.callbacks.BackupAndRestore(folder)]

    if interrupted:
        with pytest.raises(KeyboardInterrupt):
            train(model(), batch_size=2, epochs=4, callbacks=[*callbacks(), InterruptInTheMiddle(2)])
    model = model()
    history = train(model, batch_size=2, epochs=4, callbacks=callbacks())
    assert history.epoch == ([2, 3] if interrupted else [0, 1, 2, 3])
    variables = [*model.variables, *model.optimizer.variables]
    return [np.array(ops.convert_to_numpy(variable)) for variable in variables]


def test_a_resumed_training_equals_one_that_was_never_interrupted(tmp_path):
    whole = trained(tmp_path / "whole", interrupted=False)
    resumed = trained(tmp_path / "resumed", interrupted=True)
    for expected, result in zip(whole, resumed, strict=True):
        np.testing.assert_allclose(result, expected, rtol=0, atol=1e-6)


def test_keras_alone_does_not_restore_the_seeds_of_dropout(tmp_path):
    """Should this fail one day, `SeedEachEpoch` has become superfluous."""

    def model():
        return keras.Sequential([keras.Input((1,)), keras.layers.Dropout(0.5, seed=7), keras.layers.Dense(1)])

    used, fresh = model(), model()
    used(np.ones((2, 1)), training=True)
    used.save_weights(tmp_path / "used.weights.h5")
    fresh.load_weights(tmp_path / "used.weights.h5")
    states = [ops.convert_to_numpy(each.layers[0].seed_generator.state).tolist() for each in (used, fresh)]
    assert states == [[7, 1], [7, 0]]


# === The best checkpoint ===


class Letters:
    """A tokeniser without TensorFlow: id 4 is "a"."""

    def tokenize(self, texts):
        ids = [[ord(letter) - ord("a") + 4 for letter in text] for text in texts]
        return Padded(keras.utils.pad_sequences(ids, padding="post"))

    def detokenize(self, ids):
        rows = [list(row) for row in ids]
        rows = [row[: row.index(2)] if 2 in row else row for row in rows]
        return ["".join(chr(token - 4 + ord("a")) for token in row if token > 3) for row in rows]


class Padded:
    def __init__(self, ids):
        self.ids = ids

    def to_tensor(self):
        return self.ids


def test_the_checkpoint_with_the_best_bleu_is_the_best(tmp_path):
    """The model learns to copy, until a learning rate far too high destroys it."""
    texts = Letters().detokenize(SOURCE)
    assert texts == ["abc", "de", "fgh", "ba"]
    model = make_transformer("adam", run_eagerly=False, hidden_dim=16, normalize_first=True)
    bleu = EvaluateBleu(texts, texts, Letters(), Letters(), max_length=5, tokenize="char", max_ngram_order=2)
    path = tmp_path / "best.weights.h5"
    options = {"monitor": "val_bleu", "mode": "max", "save_best_only": True, "save_weights_only": True}
    checkpoint = keras.callbacks.ModelCheckpoint(path, **options)
    rates = keras.callbacks.LearningRateScheduler(lambda epoch, rate: 0.02 if epoch < 3 else 10.0)
    # Ten steps of the same batch are one epoch.
    inputs = {name: np.tile(ids, (10, 1)) for name, ids in (("source", SOURCE), ("target", TARGET))}
    labels, callbacks = np.tile(LABELS, (10, 1)), [rates, bleu, checkpoint]
    history = model.fit(inputs, labels, batch_size=4, shuffle=False, epochs=5, callbacks=callbacks, verbose=0)
    scores = history.history["val_bleu"]
    assert max(scores) > 30
    assert scores[-1] < max(scores) - 10
    model.load_weights(path)
    assert bleu.evaluate(model, verbose=0)[0].score == max(scores)
