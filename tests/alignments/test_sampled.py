"""Any alignment made hard: over all selections its REINFORCE gradients add up to the gradient of the expected loss."""

import functools
import itertools
import math

import keras
import numpy as np
import pytest
from compiled import compiled
from keras import ops
from reference import attention, linear_chain, monotonic, sparse_weights, trees
from reference.arrays import normal, to_numpy
from tolerances import EXACT, FLOAT32

from keras_attention import alignments, layers
from keras_attention.alignments import Alignment, Estimator, LinearChain, Monotonic, Sampled
from keras_attention.alignments.estimators import Recorder
from keras_attention.saving.lookup import copy_of
from keras_attention.training import MovingAverage, ReinforceModel

B, T, S = 2, 3, 5

# === The expected loss and its gradient, by enumeration ===


def on_off(rows, columns):
    return np.array(list(itertools.product([0.0, 1.0], repeat=rows * columns))).reshape(-1, rows, columns)


def one_hot_rows(rows, columns):
    return np.array([monotonic.selection(walk, columns) for walk in itertools.product(range(columns), repeat=rows)])


def sigmoid(scores):
    return 1.0 / (1.0 + np.exp(-scores))


def by_bernoulli(selection, scores):
    return np.where(selection > 0, sigmoid(scores), sigmoid(-scores)).prod()


def by_chain(selection, scores, pairwise):
    total = 1.0
    for row, states in zip(scores, selection.astype(int), strict=True):
        unary = np.stack([np.zeros_like(row), row], axis=-1)
        everywhere = np.ones(len(row), bool)
        log_partition = linear_chain.enumerated(unary, pairwise, everywhere)["log_partition"]
        total *= math.exp(linear_chain.score(states, unary, pairwise, everywhere) - log_partition)
    return total


def by_walk(selection, scores, offset):
    walk = [int(row.argmax()) if row.any() else None for row in selection]
    return monotonic.probability(walk, sigmoid(scores + offset), np.ones(scores.shape, bool))


def by_tree(selection, scores):
    everything = np.ones(scores.shape, bool)
    _, found, probabilities = trees.log_partition_and_probabilities(scores, everything, single_root=True)
    return probabilities[(found == selection).all(axis=(-2, -1))].sum()


def by_softmax(selection, scores):
    return (selection * attention.softmax(scores)).sum(axis=-1).prod()


def by_sink(selection, scores, logit):
    scores = np.concatenate([scores, np.full((len(scores), 1), logit)], axis=-1)
    return by_softmax(np.concatenate([selection, 1.0 - selection.sum(axis=-1, keepdims=True)], axis=-1), scores)


def by_sparsemax(selection, scores):
    return (selection * sparse_weights.entmax(scores, 2.0)).sum(axis=-1).prod()


def by_adaptive_entmax(selection, scores, logit):
    return (selection * sparse_weights.entmax(scores, 1.01 + 0.99 * sigmoid(logit))).sum(axis=-1).prod()


WALKS = np.array([monotonic.selection(walk, 3) for walk in monotonic.walks(2, 3)])
DISTRIBUTIONS = {  # how to make it; all selections; probability of one, given the scores and the alignment's own weight
    "sigmoid": (alignments.Bernoulli, on_off(2, 3), by_bernoulli),
    "linear_chain": (lambda: LinearChain(pairwise_initializer="glorot_normal"), on_off(2, 3), by_chain),
    "monotonic": (lambda: Monotonic(initial_offset=-0.5), WALKS, by_walk),
    "dependency_tree": (alignments.DependencyTree, one_hot_rows(3, 3), by_tree),
    "sparsemax": (alignments.Sparsemax, one_hot_rows(2, 3), by_sparsemax),
    "adaptive_entmax": (alignments.AdaptiveEntmax, one_hot_rows(2, 3), by_adaptive_entmax),
    "sink": (alignments.AttentionSink, one_hot_rows(2, 4)[..., :-1], by_sink),
    "softmax": (alignments.Categorical, one_hot_rows(2, 3), by_softmax),
}


def finite_differences(function, arrays):
    slopes = [np.zeros_like(array) for array in arrays]
    for array, slope in zip(arrays, slopes, strict=True):
        for index in np.ndindex(array.shape):
            middle, ends = array[index], []
            for change in (1e-6, -1e-6):
                array[index] = middle + change
                ends.append(function(*arrays))
            array[index] = middle
            slope[index] = (ends[0] - ends[1]) / 2e-6
    return slopes


class Scores(keras.layers.Layer):
    """Scores that are weights, the same for all examples."""

    def __init__(self, values):
        super().__init__()
        self.scores = self.add_weight(shape=values.shape, initializer=lambda *_, **__: values, name="scores")

    def call(self, inputs):
        return ops.broadcast_to(self.scores, (ops.shape(inputs)[0], *self.scores.shape))


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_mean_gradient_over_all_selections_is_that_of_the_expected_loss(name):
    make, selections, probability = DISTRIBUTIONS[name]
    values, target = normal(*selections.shape[1:]), normal(*selections.shape[1:], seed=1)
    alignment = Sampled(make())
    alignment.alignment.sample = lambda scores, mask, seed: ops.convert_to_tensor(selections, scores.dtype)
    inputs = keras.Input((1,))
    weights = keras.layers.Flatten()(alignment(Scores(values)(inputs)))
    model = ReinforceModel(inputs, weights, baseline=MovingAverage())
    model.compile(keras.optimizers.SGD(1.0), "mse")  # a step of size one: what a weight loses is its gradient
    model.baseline.total.assign([0.75])
    model.baseline.mass.assign([0.5])
    before = [to_numpy(weight).astype("float64") for weight in model.trainable_weights]
    losses = ((selections - target) ** 2).mean(axis=(-2, -1))

    def expected_loss(*arrays):
        return sum(loss * probability(each, *arrays) for loss, each in zip(losses, selections, strict=True))

    slopes = finite_differences(expected_loss, [array.copy() for array in before])
    count = len(selections)
    probabilities = np.array([probability(each, *before) for each in selections])
    np.testing.assert_allclose(probabilities.sum(), 1.0, atol=FLOAT32)
    y = np.broadcast_to(target.reshape(1, -1), (count, target.size))
    # Each selection once, weighed by its probability: Keras takes the mean over the rows.
    loss = model.train_on_batch(np.zeros((count, 1)), y, sample_weight=(count * probabilities).astype("float32"))
    np.testing.assert_allclose(np.ravel(loss)[0], expected_loss(*before), rtol=FLOAT32)
    for old, weight, slope in zip(before, model.trainable_weights, slopes, strict=True):
        assert np.abs(slope).max() > 1e-3
        np.testing.assert_allclose(old - to_numpy(weight), slope, atol=FLOAT32)


# === What it gives ===


def recorded(sampled, scores, mask):
    with Recorder() as recorder:
        selection = sampled(scores, mask=mask, training=True)
    return selection, recorder.log_prob(B), recorder.entropy(B)


def values_of(alignment, selection, scores, mask):
    return (
        alignment.log_prob(selection, scores, mask),
        alignment.entropy(scores, mask),
        alignment.marginals(scores, mask),
        alignment.mode(scores, mask),
    )


@pytest.mark.parametrize("name", ["linear_chain", "monotonic", "sparsemax"])  # of rows, of all queries, with zeros
def test_it_gives_the_mode_at_inference_and_records_a_sample_in_training(name):
    alignment, plain = (DISTRIBUTIONS[name][0]() for _ in range(2))
    sampled, scores = Sampled(alignment, seed=3), normal(B, T, T)
    mask = np.arange(T) < np.array([[[T]], [[2]]])
    sampled.build(scores.shape)
    plain.build(scores.shape)
    for own, weight in zip(alignment.weights, plain.trainable_weights, strict=False):
        weight.assign(own)
    selection, log_prob, entropy = to_numpy(compiled(recorded, sampled)(scores, mask))
    assert set(np.unique(selection)) <= {0.0, 1.0} and not (selection * ~mask).any()
    expected = to_numpy(compiled(values_of, plain)(selection, scores, mask))
    for found, values in zip((log_prob, entropy), expected[:2], strict=True):
        np.testing.assert_allclose(found, values.reshape(B, -1).sum(axis=-1), atol=FLOAT32)
    for found, values in zip(compiled(values_of, sampled)(selection, scores, mask), expected, strict=True):
        np.testing.assert_allclose(found, values, atol=EXACT)
    np.testing.assert_allclose(compiled(Sampled.__call__, sampled)(scores, mask), expected[-1], atol=EXACT)


def test_the_softmax_is_drawn_from_as_by_sampled_categorical():
    scores, both = normal(B, T, S), (Sampled("softmax", seed=5), alignments.SampledCategorical(seed=5))
    for layer in both:
        layer.build(scores.shape)
    for _ in range(2):
        draws = [to_numpy(compiled(type(layer).__call__, layer, training=True)(scores)) for layer in both]
        np.testing.assert_array_equal(*draws)


# === Step by step ===


@functools.cache
def walks():
    alignment = Sampled(Monotonic(initial_offset=0.0), seed=3)
    alignment.build((101, 7, S))
    return alignment


def recorded_step(alignment, scores, mask, state):
    with Recorder() as recorder:
        row, state = alignment.step(scores, mask, state, training=True)
    return row, recorder.log_prob(len(mask)), state


def walked(alignment, scores, mask, lengths):
    """The walks of `step`, the log-probability of all steps, and the last state."""
    state, weights, log_prob, begin = alignment.initial_state((len(mask), S)), [], 0.0, 0
    for length in lengths:
        rows = slice(begin, begin + length)
        row, of_step, state = compiled(recorded_step, alignment)(scores[:, rows], mask[:, rows], state)
        weights.append(to_numpy(row))
        log_prob = log_prob + to_numpy(of_step)
        begin += length
    return np.concatenate(weights, axis=1), log_prob, state


@pytest.mark.parametrize("lengths", [[1] * 7, [3, 3, 1]])
def test_walks_are_drawn_step_by_step(lengths):
    mask = np.ones((101, 7, S), bool)
    mask[:50, [0, 3]] = False
    mask[:50, 5, 1:] = False  # behind most walks
    scores, alignment = np.broadcast_to(normal(7, S), mask.shape), walks()
    drawn, log_prob, state = walked(alignment, scores, mask, lengths)
    expected = to_numpy(compiled(Sampled.log_prob, alignment)(drawn, scores, mask))
    assert (expected > -100).all()  # possible
    np.testing.assert_allclose(log_prob, expected, atol=FLOAT32)
    goes_on = to_numpy(state["weights"]).any(axis=-1)
    assert goes_on.any() and not goes_on.all() and len(np.unique(log_prob)) > 13


def test_after_a_diverged_step_a_drawn_walk_is_nan():
    scores, mask = normal(101, 3, S), np.ones((101, 3, S), bool)
    scores[1, 1, 2], mask[1, 2, 0] = np.nan, False
    walk, log_prob, _ = walked(walks(), scores, mask, [1] * 3)
    others = np.arange(101) != 1
    assert np.isfinite(walk[others]).all() and np.isfinite(walk[1, 0]).all() and np.isnan(walk[1, 1]).all()
    assert np.isnan(walk[1, 2]).tolist() == [False] + [True] * (S - 1)
    assert np.isfinite(log_prob[others]).all() and np.isnan(log_prob[1])


def test_steps_at_inference_are_the_mode():
    alignment, scores, rows = walks(), normal(B, T, S), []
    expected, state = to_numpy(compiled(Sampled.__call__, alignment)(scores)), alignment.initial_state((B, S))
    for t in range(T):
        row, state = compiled(Sampled.step, alignment)(scores[:, t : t + 1], None, state)
        rows.append(to_numpy(row))
    np.testing.assert_allclose(np.concatenate(rows, axis=1), expected, atol=EXACT)


def test_trees_have_no_steps_when_they_are_drawn():
    with pytest.raises(ValueError, match="DependencyTree needs all queries at once"):
        Sampled("dependency_tree").initial_state((B, S))


# === Weights and files ===


def test_the_weights_of_the_alignment_are_saved_and_trained(tmp_path):
    query, value = keras.Input((T, 7)), keras.Input((S, 7))
    alignment = Sampled(LinearChain(pairwise_initializer="identity"), seed=5)
    context = layers.SoftAttention(alignment=alignment)(query, value)
    model = ReinforceModel([query, value], context)
    model.compile("sgd", "mse")
    data = [normal(B, T, 7), normal(B, S, 7, seed=1)]
    model.train_on_batch(data, normal(B, T, 7, seed=2))
    pairwise = to_numpy(alignment.alignment.pairwise.value)
    assert (pairwise != np.eye(2)).any()
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded.trainable_weights[0], pairwise, atol=EXACT)
    np.testing.assert_allclose(loaded.predict_on_batch(data), model.predict_on_batch(data), atol=EXACT)
    losses = [each.train_on_batch(data, normal(B, T, 7, seed=2)) for each in (model, loaded)]
    np.testing.assert_allclose(*losses, rtol=FLOAT32)  # the same draws


def test_copies_have_seeds_and_weights_of_their_own():
    alignment = Sampled("linear_chain", seed=5)
    copies = [copy_of(alignment, index) for index in range(2)]
    assert copies[0].seed != copies[1].seed
    assert len({id(each.alignment) for each in (alignment, *copies)}) == 3
    assert copies[0].alignment.get_config() == alignment.alignment.get_config()


# === What fits together ===


@pytest.mark.parametrize("name", ["sigmoid", "linear_chain", "monotonic", "dependency_tree", "sparsemax"])
@pytest.mark.parametrize("estimator", ["straight_through", "gumbel_softmax", "relaxed"])
def test_a_gumbel_softmax_needs_the_softmax(estimator, name):
    kind = type(alignments.get(name)).__name__
    with pytest.raises(ValueError, match=rf"needs an alignment with `relaxed_sample`. Received {kind}, which"):
        Sampled(name, estimator)


class Uniform(Alignment):
    def marginals(self, scores, mask=None):
        return ops.ones_like(scores) / scores.shape[-1]


def test_an_alignment_of_a_user_needs_a_mode_a_sample_and_its_log_probability():
    with pytest.raises(ValueError, match="Reinforce needs an alignment with `mode` and `sample` and `log_prob`"):
        Sampled(Uniform())


class First(Uniform):
    def mode(self, scores, mask=None):
        return ops.one_hot(ops.zeros(ops.shape(scores)[:-1], "int32"), scores.shape[-1])

    def sample(self, scores, mask=None, seed=None):
        return self.mode(scores)

    def log_prob(self, selection, scores, mask=None):
        return -ops.ones(ops.shape(scores)[:-1])


def test_an_alignment_of_a_user_may_have_no_entropy():
    with Recorder() as recorder:
        Sampled(First())(normal(B, T, S), training=True)
    assert to_numpy(recorder.log_prob(B)).tolist() == [-T] * B and recorder.entropy(B) is None


class Doubled(Estimator):
    def weights(self, alignment, scores, mask, seed):
        return 2.0 * alignment.mode(scores, mask)


def test_an_estimator_of_a_user_takes_any_alignment():
    scores = normal(B, T, S)
    expected = 2.0 * to_numpy(alignments.get("sigmoid")(scores) > 0.5)
    np.testing.assert_allclose(Sampled("sigmoid", Doubled())(scores, training=True), expected, atol=EXACT)
