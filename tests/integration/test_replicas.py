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
from keras_attention.training import ReinforceModel, SmoothedCrossentropy, TokenAccuracy

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


results = []
for label_smoothing in (0.0, 0.1):
    single = train(tf.distribute.get_strategy(), label_smoothing)
    mirrored = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    assert mirrored.num_replicas_in_sync == 2
    results.append({"single": single, "mirrored": train(mirrored, label_smoothing)})
reinforced = {"single": reinforce(tf.distribute.get_strategy()), "mirrored": reinforce(mirrored)}
print(json.dumps({"results": results, "reinforced": reinforced}))
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
