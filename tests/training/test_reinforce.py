"""REINFORCE is exact: over all choices its gradients add up to the gradient of the expected loss."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops
from reference import two_choices
from reference.arrays import normal, to_numpy
from tolerances import FLOAT32

from keras_attention import layers
from keras_attention.alignments import SampledCategorical
from keras_attention.training import ReinforceModel

B, S, D, Q, T = 2, 3, 2, 5, 7


@keras.saving.register_keras_serializable(package="tests")
class Forced(SampledCategorical):
    """In training the positions that a test has set are chosen, one for each row."""

    def __init__(self, rows=B, **kwargs):
        super().__init__(**kwargs)
        self.rows = rows
        self.positions = self.add_weight(
            shape=(rows,), initializer="zeros", dtype="int32", trainable=False, name="positions"
        )

    def sample(self, scores, mask=None, seed=None):
        rows = ops.one_hot(ops.convert_to_tensor(self.positions), scores.shape[-1], dtype=scores.dtype)
        return rows[:, None, :]

    def get_config(self):
        return {**super().get_config(), "rows": self.rows}


@keras.saving.register_keras_serializable(package="tests")
class MaskedByIds(keras.layers.Layer):
    """Passes the first input on, masked where the second is 0."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, inputs):
        return inputs[0]

    def compute_mask(self, inputs, previous_mask):
        return ops.not_equal(inputs[1], 0)


def two_choice_graph(rows=B, kind=dict):
    """`(inputs, outputs, [the two alignments])`; see `reference.two_choices`."""
    question, memory = keras.Input((1, Q), name="question"), keras.Input((S, D), name="memory")
    mask = keras.Input((S,), dtype="bool", name="mask")
    ids = keras.Input((T,), dtype="int32", name="ids")
    alignments = [Forced(rows), Forced(rows)]
    query = keras.layers.Dense(D, bias_initializer="normal")(question)
    first = layers.SoftAttention("dot", alignments[0])(query, memory, value_mask=mask)
    query = keras.layers.Dense(D, bias_initializer="normal")(first)
    second = layers.SoftAttention("dot", alignments[1])(query, memory, value_mask=mask)
    tokens = keras.layers.Reshape((T, 1))(keras.layers.Dense(T, bias_initializer="normal")(second))
    tokens = MaskedByIds(name="tokens")([tokens, ids])
    both = keras.layers.Reshape((2 * D,))(keras.layers.Concatenate()([first, second]))
    size = keras.layers.Dense(1, name="size", bias_initializer="normal")(both)
    inputs = {"question": question, "memory": memory, "mask": mask, "ids": ids}
    return inputs, {"tokens": tokens, "size": size} if kind is dict else [tokens, size], alignments


def two_choice_data(rows=B):
    ids = np.ones((rows, T), "int32")
    ids[-1, 4:] = 0
    return {
        "question": normal(rows, Q, seed=1),
        "memory": normal(rows, S, D, seed=2),
        "mask": np.array([[True, True, True], [True, False, True]])[-rows:],
        "ids": ids,
        "tokens": normal(rows, T, seed=3),
        "size": normal(rows, seed=4),
        "token_weight": np.random.default_rng(5).uniform(0.5, 2.0, (rows, T)).astype("float32"),
        "size_weight": np.random.default_rng(6).uniform(0.5, 2.0, rows).astype("float32"),
    }


def arguments(data, kind=dict):
    """`(x, y, sample_weight)` for `train_on_batch`."""
    x = {name: data[name] for name in ("memory", "mask", "ids")} | {"question": data["question"][:, None]}
    y = {"tokens": data["tokens"][..., None], "size": data["size"][:, None]}
    weight = {"tokens": data["token_weight"], "size": data["size_weight"]}
    return (x, y, weight) if kind is dict else (x, list(y.values()), list(weight.values()))


def compiled(model, kind=dict, **options):
    losses, loss_weights = {"tokens": "mse", "size": keras.losses.MeanSquaredError()}, {"tokens": 1.0, "size": 0.5}
    if kind is list:
        losses, loss_weights = list(losses.values()), list(loss_weights.values())
    # A step of size one: what a weight loses is its gradient.
    model.compile(keras.optimizers.SGD(1.0), losses, loss_weights=loss_weights, **options)
    return model


def step(model, state, batch):
    """Loss and gradients of a step from `state`, which `set_weights` takes."""
    model.set_weights(state)
    before = [to_numpy(weight) for weight in model.trainable_weights]
    loss = model.train_on_batch(*batch)
    gradients = [old - to_numpy(weight) for old, weight in zip(before, model.trainable_weights, strict=True)]
    return float(np.ravel(loss)[0]), gradients


def mean_step(model, alignments, data, kind=dict, num_samples=1):
    """The mean over all choices of the loss and the gradients of the model's eight weights."""
    state, batch = model.get_weights(), arguments(data, kind)
    weights = [to_numpy(weight).astype("float64") for weight in model.trainable_weights[:8]]
    rows = np.repeat(np.arange(len(data["size"])), num_samples)
    total, sums = 0.0, [0.0] * 8
    positions = [next(i for i, w in enumerate(model.weights) if w is each.positions) for each in alignments]
    for choices in itertools.product(*(two_choices.choices_of(data["mask"][row]) for row in rows)):
        log_probs = [
            two_choices.forward(weights, data["question"][row], data["memory"][row], data["mask"][row], choice)[0]
            for row, choice in zip(rows, choices, strict=True)
        ]
        for index, chosen in zip(positions, zip(*choices, strict=True), strict=True):
            state[index] = np.array(chosen, "int32")
        loss, gradients = step(model, state, batch)
        probability = np.exp(sum(log_probs))
        total += probability * loss
        sums = [mean + probability * found for mean, found in zip(sums, gradients[:8], strict=True)]
    return total, sums


def assert_exact(model, alignments, data, entropy_weight=0.0, **options):
    weights = [to_numpy(weight) for weight in model.trainable_weights[:8]]
    loss, gradients = mean_step(model, alignments, data, **options)
    expected = two_choices.expected_loss([weight.astype("float64") for weight in weights], data)
    np.testing.assert_allclose(loss, expected, rtol=FLOAT32)
    slopes = two_choices.gradient(lambda arrays: two_choices.expected_loss(arrays, data, entropy_weight), weights)
    for found, right in zip(gradients, slopes, strict=True):
        assert np.abs(right).max() > 1e-2
        np.testing.assert_allclose(found, right, atol=FLOAT32)


@pytest.mark.parametrize(
    ("baseline", "kind"), [(None, dict), ("moving_average", list), ("learned", dict)], ids=["none", "moving", "learned"]
)
def test_the_mean_gradient_is_the_gradient_of_the_expected_loss(baseline, kind):
    inputs, outputs, alignments = two_choice_graph(kind=kind)
    model = compiled(ReinforceModel(inputs, outputs, baseline=baseline), kind)
    if baseline == "moving_average":
        model.baseline.total.assign([1.5, 0.75])
        model.baseline.mass.assign([0.5, 0.5])
    if baseline == "learned":
        model.baseline.predictor.layers[-1].bias.assign([1.5, 0.75])
    assert_exact(model, alignments, two_choice_data(), kind=kind)


def test_the_mean_gradient_is_exact_when_the_samples_of_an_example_are_compared():
    inputs, outputs, alignments = two_choice_graph(rows=2)
    model = compiled(ReinforceModel(inputs, outputs, baseline="leave_one_out", num_samples=2))
    assert_exact(model, alignments, two_choice_data(rows=1), num_samples=2)


def test_the_mean_gradient_is_exact_with_an_entropy_bonus_that_the_loss_does_not_show():
    inputs, outputs, alignments = two_choice_graph(rows=1)
    model = compiled(ReinforceModel(inputs, outputs, entropy_weight=0.5))
    assert_exact(model, alignments, two_choice_data(rows=1), entropy_weight=0.5)
