"""REINFORCE is exact: over all choices its gradients add up to the gradient of the expected loss."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops
from reference import two_choices
from reference.arrays import normal, to_numpy
from reference.gradients import gradient
from tolerances import FLOAT32

from keras_attention import layers, models
from keras_attention.alignments import SampledCategorical
from keras_attention.training import (
    Enumeration,
    LearnedBaseline,
    MovingAverage,
    ReinforceModel,
    SeedEachEpoch,
    SmoothedCrossentropy,
)
from keras_attention.training.reinforce.credit import score_function_surrogate

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
        assert np.abs(right).max() > 1e-3
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


@pytest.mark.parametrize("entropy_weight", [0.0, 0.5])
def test_all_choices_give_the_expected_loss_and_its_gradient_in_one_step(entropy_weight):
    inputs, outputs, _ = two_choice_graph()
    model = compiled(ReinforceModel(inputs, outputs, num_samples=Enumeration(S * S), entropy_weight=entropy_weight))
    data = two_choice_data()
    weights = [to_numpy(weight).astype("float64") for weight in model.trainable_weights]
    loss, gradients = step(model, model.get_weights(), arguments(data))
    np.testing.assert_allclose(loss, two_choices.expected_loss(weights, data), rtol=FLOAT32)
    slopes = two_choices.gradient(lambda arrays: two_choices.expected_loss(arrays, data, entropy_weight), weights)
    for found, right in zip(gradients, slopes, strict=True):
        np.testing.assert_allclose(found, right, atol=FLOAT32)


def test_the_number_of_all_choices_must_be_right():
    inputs, outputs, _ = two_choice_graph()
    model = compiled(ReinforceModel(inputs, outputs, num_samples=Enumeration(S)))
    with pytest.raises(ValueError, match=r"how many joint choices there are: 9\. Received: 3\."):
        model.train_on_batch(*arguments(two_choice_data()))


def test_the_repr_of_all_choices_says_how_many():
    assert repr(Enumeration(9)) == "Enumeration(count=9)"


def test_metrics_see_the_most_probable_of_all_choices():
    model, _ = one_choice(num_samples=Enumeration(S))
    value = keras.metrics.MeanMetricWrapper(lambda y_true, y_pred: y_pred, name="value")
    model.compile(keras.optimizers.SGD(0.0), linear_loss, metrics=[value])
    model.set_weights([np.array([[0.0, 2.0, 1.0]], "float32"), *model.get_weights()[1:]])
    results = model.train_on_batch(np.array([[7.0, -2.0, 11.0]]), np.zeros((1, 1)), return_dict=True)
    assert float(results["value"]) == -2.0


@pytest.mark.parametrize("num_samples", [2, Enumeration(S)], ids=["samples", "all"])
def test_a_sum_over_the_batch_counts_each_example_once(num_samples):
    losses = []
    for samples in (1, num_samples):
        model, _ = one_choice(num_samples=samples, rows=2 if samples == 2 else 1)
        model.compile(keras.optimizers.SGD(0.0), keras.losses.MeanSquaredError(reduction="sum"))
        losses.append(float(np.ravel(model.train_on_batch(np.full((1, S), 3.0), np.zeros((1, 1))))[0]))
    np.testing.assert_allclose(losses, [9.0, 9.0], rtol=FLOAT32)


def test_outputs_keep_their_names_beside_recorded_log_probabilities(tmp_path):
    inputs = keras.Input((S,))
    first, second = keras.layers.Dense(1, name="first")(inputs), keras.layers.Dense(1, name="second")(inputs)
    log_probs = keras.layers.Dense(1, name="log_probs")(inputs)
    model = ReinforceModel(inputs, [first, second], log_probs=log_probs)
    model.save(tmp_path / "model.keras")
    for each in (model, keras.saving.load_model(tmp_path / "model.keras")):
        assert each.output_names == ["first", "second"]
        each.compile("sgd", {"first": "mse", "second": "mse"})
        each.train_on_batch(np.ones((2, S)), {"first": np.ones((2, 1)), "second": np.ones((2, 1))})


def test_outside_of_its_own_training_a_model_makes_one_choice_for_each_example():
    model, _ = one_choice(num_samples=2)
    assert model(np.ones((1, S)), training=True).shape == (1, 1)


# === One step by hand ===


def test_the_surrogate_of_one_choice_by_hand():
    # Reward 2 against 0.5, losses being negative rewards: log p = -log 3, its gradient the selection less the marginals.
    alignment, selection = SampledCategorical(), np.array([[0.0, 1.0, 0.0]], "float32")

    def surrogate(logits):
        log_prob = alignment.log_prob(selection, logits)
        return ops.sum(score_function_surrogate(ops.array([-2.0]), ops.array([-0.5]), log_prob))

    logits = np.zeros((1, 3), "float32")
    np.testing.assert_allclose(surrogate(ops.convert_to_tensor(logits)), 1.6479, atol=1e-4)
    np.testing.assert_allclose(gradient(surrogate, logits), [[0.5, -1.0, 0.5]], atol=FLOAT32)


def one_choice(baseline=None, estimator=None, rows=1, dtype=None, **options):
    """Reads one of the S numbers of `values (B, S)` by learned logits, the same for every row; the output is `(B, 1)`."""
    values = keras.Input((S,), name="values")
    ones = keras.layers.Lambda(lambda tensor: ops.ones_like(tensor[:, None, :1]))(values)
    scores = keras.layers.Dense(S, use_bias=False, kernel_initializer="zeros", dtype=dtype)(ones)
    alignment = Forced(rows) if estimator is None else SampledCategorical(estimator, seed=3)
    chosen = keras.layers.Dot((2, 1), dtype="float32")([alignment(scores), keras.layers.Reshape((S, 1))(values)])
    model = ReinforceModel(values, keras.layers.Reshape((1,))(chosen), baseline=baseline, **options)
    return model, alignment


def linear_loss(y_true, y_pred):
    return y_pred[:, 0]


def test_a_step_moves_the_logits_by_the_credit_times_the_gradient_of_the_log_probability():
    model, alignment = one_choice(MovingAverage())
    model.compile(keras.optimizers.SGD(1.0), linear_loss)
    model.baseline.total.assign([-0.25])
    model.baseline.mass.assign([0.5])
    alignment.positions.assign([1])
    loss = model.train_on_batch(np.array([[7.0, -2.0, 11.0]]), np.zeros((1, 1)))
    np.testing.assert_allclose(loss, -2.0, atol=FLOAT32)
    np.testing.assert_allclose(model.trainable_weights[0], [[-0.5, 1.0, -0.5]], atol=FLOAT32)
    np.testing.assert_allclose(model.baseline.total, [0.9 * -0.25 + 0.1 * -2.0], atol=FLOAT32)
    np.testing.assert_allclose(model.baseline.mass, [0.9 * 0.5 + 0.1], atol=FLOAT32)


def square_loss(y_true, y_pred):
    return ops.square(y_pred[:, 0])


@pytest.mark.parametrize(("estimator", "unbiased"), [("reinforce", True), ("straight_through", False)])
def test_the_mean_of_many_gradients_is_right_for_reinforce_and_wrong_for_straight_through(estimator, unbiased):
    count, values = 3001, np.array([[1.0, -2.0, 3.0]], "float32")
    model, _ = one_choice("leave_one_out", estimator, num_samples=2)
    model.compile(keras.optimizers.SGD(1.0), square_loss)
    rows = []
    for _ in range(17):
        model.set_weights([np.zeros((1, S), "float32"), *model.get_weights()[1:]])
        model.train_on_batch(np.repeat(values, count, axis=0), np.zeros((count, 1)))
        rows.append(-to_numpy(model.trainable_weights[0])[0])
    squares = values[0] ** 2
    expected = (squares - squares.mean()) / 3  # of the mean square under softmax([0, 0, 0])
    deviations = np.std(rows, axis=0, ddof=1) / np.sqrt(len(rows))
    z = np.abs(np.mean(rows, axis=0) - expected) / deviations
    assert (z < 4).all() if unbiased else (z > 20).any()


# === What is refused ===


def test_choices_that_nobody_records_cannot_be_enumerated():
    model, _ = one_choice(estimator="straight_through", num_samples=Enumeration(S))
    model.compile("sgd", linear_loss)
    with pytest.raises(ValueError, match=r"no choice was recorded\. Received `num_samples=Enumeration\(3\)`"):
        model.train_on_batch(np.ones((1, S)), np.zeros((1, 1)))


def test_a_baseline_belongs_to_one_model():
    baseline = MovingAverage()
    one_choice(baseline)
    with pytest.raises(ValueError, match="A baseline belongs to one model"):
        one_choice(baseline)


@pytest.mark.parametrize("weight", ["0.1", None, float("nan")])
def test_an_entropy_weight_that_is_no_number_is_refused(weight):
    with pytest.raises(ValueError, match=r"`entropy_weight` must be a finite number, 0\.0 for none\. Received: "):
        one_choice(entropy_weight=weight)


def test_more_losses_than_predictions_are_refused():
    model, _ = one_choice("learned")
    model.compile("sgd", [["mse", "mae"]])
    with pytest.raises(ValueError, match=r"predicts 1 losses, .* Received a loss number 2"):
        model.train_on_batch(np.ones((1, S)), np.zeros((1, 1)))


def test_a_loss_that_returns_a_scalar_is_refused():
    model, _ = one_choice()
    model.compile("sgd", lambda y_true, y_pred: ops.mean(y_pred))
    with pytest.raises(ValueError, match=r"the loss 'lambda', which returns a scalar, shape \(\)"):
        model.train_on_batch(np.ones((1, S)), np.zeros((1, 1)))


def test_a_loss_that_does_all_by_itself_is_refused():
    class Whole(keras.losses.Loss):
        def __call__(self, y_true, y_pred, sample_weight=None):
            return ops.mean(y_pred)

    model, _ = one_choice()
    model.compile("sgd", Whole(name="whole"))
    with pytest.raises(ValueError, match="The loss 'whole' must compute a value for each example in its method `call`"):
        model.train_on_batch(np.ones((1, S)), np.zeros((1, 1)))


def test_choices_without_a_compiled_loss_are_refused():
    query = keras.Input((1, D))
    penalized = keras.layers.Dense(1, activity_regularizer="l2")(layers.HardAttention()(query, query))
    model = ReinforceModel(query, penalized)
    model.compile("sgd")
    with pytest.raises(ValueError, match=r"Choices learn from the losses given to `compile`. Received none"):
        model.train_on_batch(np.ones((1, 1, D)))


def test_one_sample_has_no_others_to_be_compared_with():
    with pytest.raises(ValueError, match="Received num_samples=1"):
        one_choice("leave_one_out")


def test_an_unknown_baseline_is_named_with_the_known_ones():
    with pytest.raises(ValueError, match=r'Unknown baseline: "mean". Known: "by_choice", "learned", "leave_one_out"'):
        one_choice("mean")


def test_more_losses_than_averages_are_refused():
    model, _ = one_choice(MovingAverage())
    model.compile("sgd", ["mse", "mae"])
    with pytest.raises(ValueError, match=r"keeps 1 baselines, one for each output. Received a loss number 2"):
        model.train_on_batch(np.ones((1, S)), np.zeros((1, 1)))


def test_a_network_with_too_few_predictions_is_refused():
    inputs, outputs, _ = two_choice_graph()
    network = keras.Model(inputs, keras.layers.Dense(1)(keras.layers.Flatten()(inputs["memory"])))
    with pytest.raises(
        ValueError, match=r"one prediction for each loss, shape \(None, 2\). Received shape \(None, 1\)"
    ):
        ReinforceModel(inputs, outputs, baseline=LearnedBaseline(network))


def test_the_default_network_does_not_read_ids_of_any_length():
    ids = keras.Input((None,), dtype="int32")
    outputs = keras.layers.GlobalAveragePooling1D()(keras.layers.Embedding(11, 3)(ids))
    with pytest.raises(ValueError, match=r"inputs of shapes \[\(None, None\)\]. Pass a network"):
        ReinforceModel(ids, outputs, baseline="learned")


# === Losses ===


@pytest.mark.parametrize(
    "loss", ["mse", "MeanAbsoluteError", keras.losses.mean_squared_error], ids=["name", "class", "fn"]
)
@pytest.mark.parametrize("target_shape", [(B,), (B, 1), (B, 1, 1)], ids=str)
def test_losses_are_called_as_keras_calls_them(loss, target_shape):
    targets, values = normal(*target_shape), normal(B, S, seed=1)
    found = []
    model, _ = one_choice(rows=B)
    plain = keras.Model(model.input, model.output)
    for each in (model, plain):
        each.compile("sgd", loss)
        found.append(each.test_on_batch(values, targets))
    np.testing.assert_allclose(*found, rtol=FLOAT32)


# === Baselines ===


def losses_of_first_choices(model, data):
    """Squared errors of tokens `(B, T)` and sizes `(B,)` when position 0 is chosen twice, as it is from the start."""
    weights = [to_numpy(weight) for weight in model.trainable_weights[:8]]
    found = [
        two_choices.forward(weights, data["question"][row], data["memory"][row], data["mask"][row], (0, 0))[1:]
        for row in range(B)
    ]
    tokens, sizes = (np.array(values) for values in zip(*found, strict=True))
    return (tokens - data["tokens"]) ** 2, (sizes - data["size"]) ** 2


def test_moving_averages_are_of_the_losses_as_keras_weighs_and_masks_them():
    inputs, outputs, _ = two_choice_graph()
    model, data = compiled(ReinforceModel(inputs, outputs)), two_choice_data()
    token_losses, size_losses = losses_of_first_choices(model, data)
    model.train_on_batch(*arguments(data))
    expected = [
        np.average(token_losses, weights=data["token_weight"] * (data["ids"] != 0)),
        np.average(size_losses, weights=data["size_weight"]),
    ]
    np.testing.assert_allclose(model.baseline.total, 0.1 * np.array(expected), rtol=1e-4)
    np.testing.assert_allclose(model.baseline.mass, [0.1, 0.1], atol=FLOAT32)


def test_a_batch_in_which_nothing_counts_leaves_no_trace_in_the_average():
    model, _ = one_choice("moving_average")
    model.compile("sgd", "mse")
    model.train_on_batch(np.ones((1, S)), np.zeros((1, 1)), sample_weight=np.zeros((1,)))
    np.testing.assert_allclose(model.baseline.mass, [0.0], atol=FLOAT32)


def test_sample_weights_of_examples_reach_every_token_as_without_reinforce():
    # SmoothedCrossentropy spreads weights (B,) over the tokens, which Keras itself aligns with the last axis.
    values, logits = keras.Input((S,)), keras.Input((B, 3))
    scores = keras.layers.Dense(S)(keras.layers.Reshape((1, S))(values))
    weight = keras.layers.Reshape((1, 1))(keras.layers.Lambda(lambda rows: rows[..., 0])(Forced(B)(scores)))
    outputs = keras.layers.Multiply()([logits, weight])
    model = ReinforceModel([values, logits], outputs)
    model.compile("sgd", SmoothedCrossentropy(0.0))
    data = [normal(B, S), normal(B, B, 3)], np.array([[0, 1], [2, 0]])
    sample_weight = np.array([2.0, 0.5], "float32")
    expected = SmoothedCrossentropy(0.0)(data[1], data[0][1], sample_weight)  # position 0 is forced
    np.testing.assert_allclose(model.train_on_batch(*data, sample_weight), expected, rtol=FLOAT32)


def test_the_learned_baseline_learns_by_its_own_regression_alone():
    inputs, outputs, _ = two_choice_graph()
    network = keras.Model(inputs, keras.layers.Dense(2)(keras.layers.Flatten()(inputs["memory"])))
    model, data = compiled(ReinforceModel(inputs, outputs, baseline=LearnedBaseline(network))), two_choice_data()
    assert len(model.trainable_weights) == 10
    kernel, bias = (to_numpy(weight) for weight in network.trainable_weights)
    predictions = data["memory"].reshape(B, -1) @ kernel + bias
    token_losses, size_losses = losses_of_first_choices(model, data)
    _, gradients = step(model, model.get_weights(), arguments(data))
    shares = data["token_weight"] * (data["ids"] != 0) / (data["ids"] != 0).sum()
    of_bias = [
        (shares * 2 * (predictions[:, :1] - token_losses)).sum(),
        (0.5 / B * data["size_weight"] * 2 * (predictions[:, 1] - size_losses)).sum(),
    ]
    np.testing.assert_allclose(gradients[9], of_bias, rtol=1e-4)


# === Graphs of all kinds ===


def one_choice_gradient(model, alignment):
    alignment.positions.assign([2])
    model.compile(keras.optimizers.SGD(1.0), linear_loss)
    model.train_on_batch(np.array([[7.0, -2.0, 5.0]], "float32"), np.zeros((1, 1)))
    return -to_numpy(model.trainable_weights[0])[0]


RIGHT = 5.0 * (np.array([0.0, 0.0, 1.0]) - 1 / 3)  # loss times the gradient of the log-probability


def test_choices_of_a_nested_model_are_credited():
    inner, alignment = one_choice()
    inputs = keras.Input((S,))
    model = ReinforceModel(inputs, keras.Model(inner.input, inner.output)(inputs), baseline=None)
    np.testing.assert_allclose(one_choice_gradient(model, alignment), RIGHT, atol=FLOAT32)


def test_a_reinforce_model_inside_another_leaves_its_choices_to_the_outer_one():
    inner, alignment = one_choice("leave_one_out", num_samples=2)
    inputs = keras.Input((S,))
    model = ReinforceModel(inputs, inner(inputs), baseline=None)
    np.testing.assert_allclose(one_choice_gradient(model, alignment), RIGHT, atol=FLOAT32)


@keras.saving.register_keras_serializable(package="tests")
class ChoiceByHand(keras.layers.Layer):
    """Reads position 2 and returns the log-probability of that as a second output."""

    def build(self, shape):
        self.logits = self.add_weight(shape=(S,), initializer="zeros")
        self.built = True

    def call(self, values):
        log_prob = ops.log_softmax(self.logits)[2]
        return values[:, 2:], ops.broadcast_to(log_prob, (ops.shape(values)[0], 1))

    def compute_output_shape(self, shape):
        return (shape[0], 1), (shape[0], 1)


def test_a_layer_with_a_loop_gives_its_log_probabilities_itself(tmp_path):
    values = keras.Input((S,))
    outputs, log_probs = ChoiceByHand()(values)
    model = ReinforceModel(values, outputs, baseline=None, log_probs=log_probs)
    model.save(tmp_path / "model.keras")
    for each in (model, keras.saving.load_model(tmp_path / "model.keras")):
        each.compile(keras.optimizers.SGD(1.0), linear_loss)
        each.train_on_batch(np.array([[7.0, -2.0, 5.0]], "float32"), np.zeros((1, 1)))
        np.testing.assert_allclose(each.trainable_weights[0], -RIGHT, atol=FLOAT32)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="compiling a Transformer once is enough")
def test_every_scoring_weight_of_a_transformer_learns_by_its_choices():
    transformer = models.Transformer(
        11,
        num_layers=1,
        num_heads=2,
        hidden_dim=4,
        intermediate_dim=3,
        dropout=0.0,
        alignment=SampledCategorical(seed=3),
    )
    model = ReinforceModel(transformer.input, transformer(transformer.input))
    model.compile(keras.optimizers.SGD(1.0), SmoothedCrossentropy(0.0))
    ids = np.array([[4, 5, 6, 0], [7, 8, 9, 10]])
    before = {weight.path: to_numpy(weight) for weight in transformer.trainable_weights}
    loss = model.train_on_batch({"source": ids, "target": ids[:, :3]}, ids[:, 1:])
    assert np.isfinite(loss)
    scoring = [
        weight for weight in transformer.trainable_weights if weight.path.endswith(("query/kernel", "key/kernel"))
    ]
    assert len(scoring) == 6
    for weight in scoring:
        moved = to_numpy(weight) - before[weight.path]
        assert np.isfinite(moved).all() and moved.any(), weight.path
    alignments = [attention.alignment for attention in attentions(transformer)]
    assert len({alignment.seed for alignment in alignments}) == 3


def attentions(transformer):
    encoder, decoder = transformer.encoder_blocks[0], transformer.decoder_blocks[0]
    return encoder.self_attention, decoder.self_attention, decoder.cross_attention


@keras.saving.register_keras_serializable(package="tests")
class Reader(ReinforceModel):
    """A model with a constructor of its own."""

    def __init__(self, units, name=None):
        query = keras.Input((1, D))
        outputs = keras.layers.Dense(units)(layers.HardAttention(seed=5)(query, query))
        super().__init__(query, outputs, baseline=None, name=name)
        self.units = units

    def get_config(self):
        return {"units": self.units, "name": self.name}


def test_a_subclass_with_a_constructor_of_its_own_is_saved_and_loaded(tmp_path):
    model, data = Reader(3), normal(B, 1, D)
    model.compile("sgd", "mse")
    model.fit(data, normal(B, 1, 3), verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert type(loaded) is Reader
    np.testing.assert_allclose(loaded.predict_on_batch(data), model.predict_on_batch(data), atol=0.0)
    loaded.fit(data, normal(B, 1, 3), verbose=0)


def test_a_model_without_choices_trains_as_any_other():
    inputs = keras.Input((S,))
    model = ReinforceModel(inputs, keras.layers.Dense(1, kernel_initializer="zeros")(inputs), num_samples=2)
    model.compile(keras.optimizers.SGD(1.0), "mse")
    model.train_on_batch(np.array([[1.0, 2.0, 3.0]]), np.array([[0.5]]))
    np.testing.assert_allclose(model.trainable_weights[0], [[1.0], [2.0], [3.0]], atol=FLOAT32)


def test_metrics_see_one_sample_of_each_example_and_evaluate_none():
    model, alignment = one_choice("leave_one_out", num_samples=2, rows=4)
    model.compile("sgd", "mse", metrics=["mae"])
    alignment.positions.assign([0, 1, 2, 0])
    values = np.array([[1.0, 10.0, 100.0], [2.0, 20.0, 200.0]])
    _, metric = model.train_on_batch(values, np.zeros((2, 1)))
    np.testing.assert_allclose(metric, (1.0 + 200.0) / 2, rtol=FLOAT32)
    assert model.predict_on_batch(values).shape == (2, 1)
    assert model.test_on_batch(values, np.zeros((2, 1)))[1] in (1.5, 15.0, 150.0)


# === One behaviour ===


def hard_model(**options):
    query, value = keras.Input((1, D), name="query"), keras.Input((None, D), name="value")
    context = layers.HardAttention("bilinear", seed=5)(query, value)
    outputs = keras.layers.Dense(1, name="first")(context), keras.layers.Dense(3, name="second")(context)
    return ReinforceModel(
        {"query": query, "value": value}, dict(zip(("first", "second"), outputs, strict=True)), **options
    )


def hard_data(rows=4):
    x = {"query": normal(rows, 1, D, seed=1), "value": normal(rows, S, D, seed=2)}
    return x, {"first": normal(rows, 1, 1, seed=3), "second": normal(rows, 1, 3, seed=4)}


@pytest.mark.parametrize("options", [{}, {"baseline": "learned", "num_samples": 2}], ids=["moving", "learned"])
def test_training_goes_on_after_loading_as_if_it_had_never_stopped(options, tmp_path):
    model = hard_model(**options)
    model.compile("adam", {"first": "mse", "second": keras.losses.LogCosh(reduction="sum")}, metrics={"first": ["mae"]})
    fit = {"verbose": 0, "shuffle": False, "batch_size": 2, "callbacks": [SeedEachEpoch()]}
    model.fit(*hard_data(), epochs=1, **fit)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert {name: loaded.get_config()[name] for name in ("baseline", "num_samples", "entropy_weight")} == {
        name: model.get_config()[name] for name in ("baseline", "num_samples", "entropy_weight")
    }
    assert set(loaded.loss) == {"first", "second"}
    histories = [each.fit(*hard_data(), initial_epoch=1, epochs=2, **fit).history for each in (model, loaded)]
    assert histories[0] == histories[1]
    for weight, other in zip(model.trainable_weights, loaded.trainable_weights, strict=True):
        np.testing.assert_allclose(weight, other, atol=0.0)
    for weight, other in zip(model.baseline.weights, loaded.baseline.weights, strict=True):
        np.testing.assert_allclose(weight, other, atol=0.0)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="JAX compiles every step; torch takes minutes")
def test_a_step_compiled_by_xla_is_the_same_on_the_same_choices():
    found = []
    for options in ({"run_eagerly": True}, {"jit_compile": True}):
        keras.utils.set_random_seed(7)
        inputs, outputs, _ = two_choice_graph()
        model = compiled(ReinforceModel(inputs, outputs, baseline="learned", entropy_weight=0.25), **options)
        found.append(step(model, model.get_weights(), arguments(two_choice_data())))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=FLOAT32)
    for first, second in zip(found[0][1], found[1][1], strict=True):
        np.testing.assert_allclose(first, second, atol=FLOAT32)


def test_tiny_credits_survive_half_precision():
    # Gradients of 1e-8 are zero in float16 unless the loss is scaled, which `compile` does for a model of that policy.
    found = []
    for policy in ("float32", "mixed_float16"):
        keras.config.set_dtype_policy(policy)
        try:
            model, alignment = one_choice()
        finally:
            keras.config.set_dtype_policy("float32")
        alignment.positions.assign([2])
        model.compile(keras.optimizers.SGD(1e6), lambda y_true, y_pred: 2.0**-25 * y_pred[:, 0])
        loss = model.train_on_batch(np.array([[7.0, -2.0, 5.0]], "float32"), np.zeros((1, 1)))
        np.testing.assert_allclose(loss, 5.0 * 2.0**-25, rtol=1e-3)
        found.append(to_numpy(model.trainable_weights[0]))
    assert found[0].any()
    np.testing.assert_allclose(found[1], found[0], rtol=0.02)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="a SavedModel is written by TensorFlow")
def test_the_exported_model_makes_the_most_probable_choice(tmp_path):
    import tensorflow as tf

    model = hard_model(num_samples=2)
    x, _ = hard_data()
    model.export(tmp_path, verbose=False)
    served = tf.saved_model.load(tmp_path)
    outputs = served.serve(x)
    expected = model.predict_on_batch(x)
    for name, output in expected.items():
        np.testing.assert_allclose(outputs[name], output, atol=FLOAT32)
