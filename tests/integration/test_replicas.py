"""One device and two replicas of `MirroredStrategy` make the same update.

The logical devices must exist before TensorFlow starts, so the numbers come from a process of its own.
"""

import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest

TRAIN = """
import json
import keras
import numpy as np
import tensorflow as tf
from keras_attention.alignments import SampledCategorical
from keras_attention.layers import SoftAttention
from keras_attention.models import PointerNetwork
from keras_attention.training import ReinforceModel, SmoothedCrossentropy, TokenAccuracy
from keras_attention.training.token_model import TokenModel

device = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(device, [tf.config.LogicalDeviceConfiguration()] * 2)
inputs = np.array([[[1.0], [5.0]], [[2.0], [7.0]], [[3.0], [9.0]], [[10.0], [4.0]]])
weights = np.array([[1.0, 1.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])


def train(strategy, label_smoothing):
    with strategy.scope():
        layer = keras.layers.Dense(2, use_bias=False, kernel_initializer=keras.initializers.Constant([[1.0, 0.0]]))
        model = keras.Sequential([keras.Input((2, 1)), layer])
        model.compile(
            optimizer=keras.optimizers.SGD(0.01),
            loss=SmoothedCrossentropy(label_smoothing),
            weighted_metrics=[TokenAccuracy()],
        )
    history = model.fit(inputs, np.ones((4, 2)), sample_weight=weights, batch_size=4, verbose=0).history
    return {
        "loss": history["loss"][0],
        "accuracy": history["token_accuracy"][0],
        "kernel": layer.get_weights()[0][0].tolist(),
    }


class LeastProbable(SampledCategorical):
    # A choice that the example determines: two replicas draw other samples than one device.

    def sample(self, scores, mask=None, seed=None):
        return self.mode(-scores, mask)


def reinforce(strategy):
    # Two steps, the second with the baseline of the first.
    with strategy.scope():
        query, value = keras.Input((1, 2)), keras.Input((2, 2))
        kernel = keras.initializers.Constant([[1.0, 0.5], [0.0, 2.0]])
        projection = keras.layers.Dense(2, use_bias=False, kernel_initializer=kernel)
        context = SoftAttention("dot", LeastProbable())(projection(query), value)
        model = ReinforceModel([query, value], context, entropy_weight=0.1)
        model.compile(optimizer=keras.optimizers.SGD(0.01), loss="mse")
    query = inputs.reshape(4, 1, 2)
    value = np.stack([inputs[:, :, 0], inputs[::-1, :, 0] - 3.0], axis=1)
    history = model.fit([query, value], np.ones((4, 1, 2)), epochs=2, batch_size=4, verbose=0).history
    return {
        "loss": history["loss"],
        "kernel": projection.get_weights()[0].tolist(),
        "baseline": (model.baseline.total.numpy() / model.baseline.mass.numpy()).tolist(),
    }


def masked(strategy, kind, loss, weights):
    # One real token on one replica, four on the other.
    with strategy.scope():
        ids = keras.Input((None,), dtype="int32")
        table = np.array([[-20.0, 20.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
        votes = keras.layers.Embedding(3, 3, mask_zero=True, weights=[table], trainable=False)(ids)
        dense = keras.layers.Dense(3, kernel_initializer="identity")
        model = kind(ids, dense(votes))
        model.compile(keras.optimizers.SGD(1.0), loss, metrics=[TokenAccuracy()], run_eagerly=True)
    data = {"x": np.array([[1, 0, 0, 0], [2, 2, 2, 2]]), "y": np.zeros((2, 4), "int32"), "sample_weight": weights}
    evaluated = model.evaluate(**data, verbose=0, return_dict=True)
    history = model.fit(**data, verbose=0).history
    return {
        "evaluated": evaluated["loss"],
        "loss": history["loss"][0],
        "accuracy": history["token_accuracy"][0],
        "bias": dense.get_weights()[1].tolist(),
    }


def point(strategy, as_data_set):
    keras.utils.set_random_seed(3)
    with strategy.scope():
        model = PointerNetwork(encoder=keras.layers.Dense(5, kernel_initializer="ones"), hidden_dim=5)
        model.compile(keras.optimizers.SGD(0.1), SmoothedCrossentropy(), run_eagerly=True)
    mask = np.array([[True, True, True], [True, False, False]])
    indices = np.array([[0, 2, 1, 3], [0, 1, 0, 0]])
    x = {"source": np.arange(12.0).reshape(2, 3, 2) / 7.0, "source_mask": mask, "target": indices}
    y = np.array([[2, 1, 3, 0], [1, 0, 0, 0]])
    data = (tf.data.Dataset.from_tensors((x, y)),) if as_data_set else (x, y)
    history = model.fit(*data, validation_data=data if len(data) == 2 else data[0], verbose=0).history
    return [*history["loss"], *history["val_loss"], model.evaluate(*data, verbose=0)]


results = []
for label_smoothing in (0.0, 0.1):
    single = train(tf.distribute.get_strategy(), label_smoothing)
    mirrored = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    assert mirrored.num_replicas_in_sync == 2
    results.append({"single": single, "mirrored": train(mirrored, label_smoothing)})
reinforced = {"single": reinforce(tf.distribute.get_strategy()), "mirrored": reinforce(mirrored)}
single, sparse = tf.distribute.get_strategy(), keras.losses.SparseCategoricalCrossentropy
token_weights = np.array([[2.0] * 4, [0.5] * 4])
of_tokens = {
    "smoothed": masked(mirrored, keras.Model, SmoothedCrossentropy(0.0), None),
    "any": masked(mirrored, TokenModel, sparse(from_logits=True), None),
    "reinforced": masked(mirrored, ReinforceModel, sparse(from_logits=True), None),
    "weighted": masked(mirrored, TokenModel, sparse(from_logits=True), token_weights),
    "mean of weights": masked(mirrored, TokenModel, sparse(True, reduction="mean_with_sample_weight"), token_weights),
}
pointed = [point(single, False), point(mirrored, False), point(mirrored, True)]
print(json.dumps({"results": results, "reinforced": reinforced, "of_tokens": of_tokens, "pointed": pointed}))
"""


def expected(label_smoothing):
    """Logits (x, 0) with target 1: crossentropy[1] = log(1 + e^x) and crossentropy[0] = log(1 + e^-x), by hand."""
    x, tokens = np.array([1.0, 5.0, 2.0, 3.0, 10.0]), 8
    share = 1 - label_smoothing / 2
    loss = np.sum(share * np.log1p(np.exp(x)) + (1 - share) * np.log1p(np.exp(-x))) / tokens
    slope = np.sum((1 / (1 + np.exp(-x)) - (1 - share)) * x) / tokens
    return loss, [1 - 0.01 * slope, 0.01 * slope]


@pytest.fixture(scope="module")
def trained():
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    process = subprocess.run(
        [sys.executable, "-c", TRAIN], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout.splitlines()[-1])


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="MirroredStrategy is TensorFlow's")
def test_two_replicas_make_the_update_of_one_device(trained):
    for label_smoothing, runs in zip((0.0, 0.1), trained["results"], strict=True):
        loss, kernel = expected(label_smoothing)
        for run in (runs["single"], runs["mirrored"]):
            assert run["loss"] == pytest.approx(loss, rel=1e-5)
            assert run["accuracy"] == 0.0
            assert run["kernel"] == pytest.approx(kernel, rel=1e-5)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="MirroredStrategy is TensorFlow's")
def test_two_replicas_credit_choices_as_one_device(trained):
    single, mirrored = trained["reinforced"]["single"], trained["reinforced"]["mirrored"]
    assert np.abs(np.array(single["kernel"]) - [[1.0, 0.5], [0.0, 2.0]]).max() > 1e-2
    for name, value in single.items():
        np.testing.assert_allclose(mirrored[name], value, rtol=1e-5)


# A token is probable by e^2 / (e^2 + 2) on one replica, and by a third four times on the other.
ALONE, THIRD = np.exp(2) / (np.exp(2) + 2), 1 / 3


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="MirroredStrategy is TensorFlow's")
@pytest.mark.parametrize("case", ["smoothed", "any", "reinforced"])
def test_every_real_token_counts_alike_whichever_replica_has_it(trained, case):
    run = trained["of_tokens"][case]
    loss = -(np.log(ALONE) + 4 * np.log(THIRD)) / 5
    assert loss == pytest.approx(0.927, abs=1e-3)
    assert run["loss"] == pytest.approx(loss, rel=1e-5)
    assert run["evaluated"] == pytest.approx(loss, rel=1e-5)
    assert run["accuracy"] == 1.0
    update = ((1 - ALONE) + 4 * (1 - THIRD)) / 5
    assert update == pytest.approx(0.576, abs=1e-3)
    assert run["bias"] == pytest.approx([update, -update / 2, -update / 2], rel=1e-5)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="MirroredStrategy is TensorFlow's")
@pytest.mark.parametrize(("case", "normaliser"), [("weighted", 5), ("mean of weights", 4)])
def test_weights_of_tokens_count_alike_whichever_replica_has_them(trained, case, normaliser):
    run = trained["of_tokens"][case]
    assert run["loss"] == pytest.approx(-(2 * np.log(ALONE) + 4 * 0.5 * np.log(THIRD)) / normaliser, rel=1e-5)
    assert run["bias"][0] == pytest.approx((2 * (1 - ALONE) + 4 * 0.5 * (1 - THIRD)) / normaliser, rel=1e-5)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="MirroredStrategy is TensorFlow's")
def test_a_boolean_mask_is_shared_among_replicas_from_arrays_and_from_a_data_set(trained):
    single, *mirrored = trained["pointed"]
    for losses in mirrored:
        assert losses == pytest.approx(single, rel=1e-5)
