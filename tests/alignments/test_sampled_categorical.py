import keras
import numpy as np
import pytest
from keras import ops
from reference import attention
from reference.arrays import normal, to_numpy
from reference.gradients import gradient
from tolerances import EXACT, FLOAT32

from keras_attention import alignments
from keras_attention.alignments import Categorical, Relaxed, SampledCategorical, StraightThrough
from keras_attention.alignments.estimators import Recorder

B, T, S = 2, 3, 5

ESTIMATORS = ["argmax", "reinforce", "straight_through", "relaxed"]
NOTHING_IN_ROW_ONE = np.array([[True] * S, [False] * S, [True, False, True, True, False]])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_inference_gives_the_mode(estimator):
    scores = normal(B, T, S)
    weights = SampledCategorical(estimator)(scores, mask=NOTHING_IN_ROW_ONE)
    np.testing.assert_allclose(weights, Categorical().mode(scores, NOTHING_IN_ROW_ONE), atol=EXACT)


@pytest.mark.parametrize("estimator", ["reinforce", "straight_through"])
def test_training_draws_one_position_for_each_query_with_the_probabilities_of_the_softmax(estimator):
    count = 5000
    scores = np.broadcast_to(np.array([0.0, 1.0, 2.0, -1.0, 5.0], "float32"), (count, S))
    mask = np.array([True, True, True, True, False])
    sample = to_numpy(SampledCategorical(estimator, seed=11)(scores, mask=mask, training=True))
    np.testing.assert_allclose(sample, np.eye(S)[sample.argmax(axis=-1)], atol=FLOAT32)
    marginals = attention.softmax(scores[:1], mask)[0]
    five_deviations = 5 * np.sqrt(marginals * (1 - marginals) / count)
    assert (np.abs(sample.mean(axis=0) - marginals) <= five_deviations + FLOAT32).all()


def test_the_argmax_estimator_gives_the_mode_in_training():
    scores = normal(B, T, S)
    np.testing.assert_allclose(
        SampledCategorical("argmax")(scores, training=True), Categorical().mode(scores), atol=EXACT
    )


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_query_with_nothing_to_attend_has_zero_weights_in_training(estimator):
    weights = to_numpy(SampledCategorical(estimator)(normal(B, T, S), mask=NOTHING_IN_ROW_ONE, training=True))
    assert not weights[:, 1].any()
    np.testing.assert_allclose(weights[:, [0, 2]].sum(axis=-1), 1.0, atol=FLOAT32)
    assert not np.where(NOTHING_IN_ROW_ONE, 0.0, weights).any()


def test_the_log_probability_and_the_entropy_of_a_sample_are_collected():
    scores, alignment = normal(B, T, S), SampledCategorical(seed=3)
    with Recorder() as recorder:
        sample = alignment(scores, mask=NOTHING_IN_ROW_ONE, training=True)
    marginals = attention.softmax(scores, NOTHING_IN_ROW_ONE)
    expected = np.log((to_numpy(sample) * marginals).sum(axis=-1)[:, [0, 2]]).sum(axis=-1)  # the empty query counts 0
    np.testing.assert_allclose(recorder.log_prob(B), expected, atol=FLOAT32)
    entropy = -(marginals * np.log(np.where(marginals > 0, marginals, 1.0))).sum(axis=(1, 2))
    np.testing.assert_allclose(recorder.entropy(B), entropy, atol=FLOAT32)


@pytest.mark.parametrize(("estimator", "training"), [("reinforce", False), ("relaxed", True), ("argmax", True)])
def test_nothing_is_collected_of_what_was_not_sampled(estimator, training):
    with Recorder() as recorder:
        SampledCategorical(estimator)(normal(B, T, S), training=training)
    assert recorder.log_prob(B) is None


def test_log_probabilities_are_float32_under_half_precision():
    alignment = SampledCategorical(dtype="mixed_float16")
    with Recorder() as recorder:
        alignment(ops.cast(normal(B, T, S), "float16"), training=True)
    assert keras.backend.standardize_dtype(recorder.log_prob(B).dtype) == "float32"


def test_a_seed_repeats_the_samples_and_every_call_draws_anew():
    scores = np.zeros((T, 101, S), "float32")
    first, second = SampledCategorical(seed=5), SampledCategorical(seed=5)
    draws = [[to_numpy(alignment(scores, training=True)) for _ in range(2)] for alignment in (first, second)]
    np.testing.assert_allclose(draws[0], draws[1], atol=EXACT)
    assert (draws[0][0] != draws[0][1]).any()


@pytest.mark.parametrize("estimator", [StraightThrough(0.7), Relaxed(0.7)])
def test_the_gradient_is_that_of_the_softmax_of_the_noisy_scores(estimator):
    alignment, scores, factors = Categorical(), normal(T, S), normal(T, S, seed=1)
    marginals = to_numpy(Relaxed(0.7).weights(alignment, ops.convert_to_tensor(scores), None, seed=3))
    expected = marginals * (factors - (marginals * factors).sum(axis=-1, keepdims=True)) / 0.7
    found = gradient(lambda scores: ops.sum(estimator.weights(alignment, scores, None, seed=3) * factors), scores)
    np.testing.assert_allclose(found, expected, atol=FLOAT32)


def test_a_low_temperature_makes_the_relaxed_weights_nearly_a_choice():
    weights = to_numpy(SampledCategorical(Relaxed(1e-4), seed=3)(normal(B, T, S), training=True))
    np.testing.assert_allclose(weights.max(axis=-1), 1.0, atol=1e-3)


@pytest.mark.parametrize("name", ["sampled", "softmax"])
def test_the_alignments_have_names(name):
    assert type(alignments.get(name)) is {"sampled": SampledCategorical, "softmax": Categorical}[name]


def test_an_unknown_estimator_is_named_with_the_known_ones():
    with pytest.raises(ValueError, match=r'Unknown estimator: "reinforced".*Did you mean "reinforce"'):
        SampledCategorical("reinforced")


@pytest.mark.parametrize("estimator", [Relaxed, StraightThrough])
@pytest.mark.parametrize("temperature", [0.0, -1.5, "low"])
def test_a_temperature_is_a_positive_number(estimator, temperature):
    with pytest.raises(ValueError, match=f"`temperature` must be a positive number. Received: {temperature!r}"):
        estimator(temperature)
