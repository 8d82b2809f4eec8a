"""Two chained choices with predictions: over all choices the gradients add up to the gradient of the expected loss."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops
from reference.arrays import normal, to_numpy
from tolerances import FLOAT32

from keras_attention.alignments.estimators import Recorder, record_choice
from keras_attention.layers import HardAttention
from keras_attention.training import ReinforceModel

FIRST, SECOND = 2, 3


@keras.saving.register_keras_serializable(package="tests")
class TwoChoices(keras.layers.Layer):
    """`output = table[first, second]`, `first ~ softmax(logits)`, `second ~ softmax(second_logits[first])`.

    In training the choices that a test has set are made. The first is recorded with a prediction of its own, the second
    with one that depends on the first, in a second axis that is folded into the batch.
    """

    def build(self, inputs_shape):
        make = self.add_weight
        self.first_logits = make((FIRST,), "random_normal", name="first_logits")
        self.second_logits = make((FIRST, SECOND), "random_normal", name="second_logits")
        self.table = make((FIRST, SECOND), "random_normal", name="table")
        self.prediction = make((1,), "random_normal", name="prediction")
        self.predictions = make((FIRST,), "random_normal", name="predictions")
        self.choices = make((2,), "zeros", dtype="int32", trainable=False, name="choices")

    def call(self, inputs, training=None):
        first, second = ops.one_hot(self.choices[0], FIRST), ops.one_hot(self.choices[1], SECOND)
        rows = ops.ones_like(inputs)  # (B, 1)
        log_first = ops.sum(first * ops.log_softmax(self.first_logits))
        log_second = ops.einsum("i,j,ij->", first, second, ops.log_softmax(self.second_logits))
        if training:
            record_choice(log_first * rows, prediction=self.prediction[0] * rows)
            record_choice(log_second * rows[:, 0], prediction=ops.sum(first * self.predictions) * rows[:, 0])
        return ops.einsum("i,j,ij->", first, second, self.table) * inputs

    def compute_output_shape(self, inputs_shape):
        return inputs_shape


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)


@pytest.fixture
def model():
    inputs = keras.Input((1,))
    model = ReinforceModel(inputs, TwoChoices(name="chooser")(inputs), baseline="per_step")
    model.compile(keras.optimizers.SGD(1.0), "mse")
    layer = model.get_layer("chooser")
    for seed, weight in enumerate(layer.trainable_weights):
        weight.assign(normal(*weight.shape, seed=seed))
    return model


def test_the_mean_gradient_is_that_of_the_expected_loss_and_predictions_learn_the_loss(model):
    layer = model.get_layer("chooser")
    state = [to_numpy(weight) for weight in layer.trainable_weights]
    first_logits, second_logits, table, prediction, predictions = state
    inputs, target, weight = np.array([[1.0], [-2.0]]), np.array([[0.5], [3.0]]), np.array([1.0, 0.25])
    errors = table * inputs[..., None] - target[..., None]  # (B, 2, 3)
    rows = weight[:, None, None] * errors**2
    losses = rows.mean(axis=0)
    p_first, p_second = softmax(first_logits), softmax(second_logits)
    joint = p_first[:, None] * p_second

    sums = [0.0] * len(state)
    for first, second in itertools.product(range(FIRST), range(SECOND)):
        for variable, array in zip(layer.trainable_weights, state, strict=True):
            variable.assign(array)
        layer.choices.assign([first, second])
        loss = model.train_on_batch(inputs, target, sample_weight=weight)
        np.testing.assert_allclose(np.ravel(loss)[0], losses[first, second], rtol=FLOAT32)
        after = [to_numpy(variable) for variable in layer.trainable_weights]
        sums = [s + joint[first, second] * (a - b) for s, a, b in zip(sums, state, after, strict=True)]

    given_first = (p_second * losses).sum(axis=1)  # the expected loss after the first choice
    slopes = (2 * weight[:, None, None] * errors * inputs[..., None]).mean(axis=0)
    regression = weight[:, None, None] * (predictions[:, None] - errors**2)  # half of what two choices give together
    first_regression = weight[:, None, None] * (prediction - errors**2)
    for found, expected in zip(
        sums,
        [
            p_first * (given_first - p_first @ given_first),
            joint * (losses - given_first[:, None]),
            joint * slopes,
            [(joint * first_regression.mean(axis=0)).sum()],
            (joint * regression.mean(axis=0)).sum(axis=1),
        ],
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, atol=FLOAT32)


def test_log_probabilities_and_predictions_are_rows_of_choices():
    first, second = normal(2, 3, seed=1), normal(2, seed=2)
    with Recorder() as recorder:
        record_choice(ops.convert_to_tensor(first), prediction=ops.convert_to_tensor(first + 1))
        record_choice(ops.convert_to_tensor(second))
        record_choice(ops.convert_to_tensor(second), prediction=ops.convert_to_tensor(2 * second))
    log_probs, predictions = (to_numpy(rows) for rows in recorder.predicted(2))
    np.testing.assert_allclose(log_probs, np.concatenate([first, second[:, None]], axis=1))
    np.testing.assert_allclose(predictions, np.concatenate([first + 1, 2 * second[:, None]], axis=1))


def test_choices_without_predictions_are_refused():
    query, value = keras.Input((1, 5)), keras.Input((3, 5))
    model = ReinforceModel([query, value], HardAttention()(query, value), baseline="per_step")
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match=r"Received choices without one. Take another baseline, or record"):
        model.train_on_batch([normal(2, 1, 5), normal(2, 3, 5)], normal(2, 1, 5))
