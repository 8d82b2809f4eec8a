import math

import numpy as np
from keras import ops
from reference.arrays import normal, to_numpy
from reference.gradients import gradient
from tolerances import FLOAT32

from keras_attention import alignments
from keras_attention.alignments import Sparsemax
from keras_attention.layers import MultiHeadAttention, SoftAttention
from keras_attention.ops import LOWEST

T, S = 3, 5

ROW = np.array([[1.0, 0.6, -1.0]], "float32")  # weights 0.7, 0.3, 0
SECOND_MASKED = np.array([[True, False, True]])


def test_weights_by_hand():
    np.testing.assert_allclose(Sparsemax()(ROW), [[0.7, 0.3, 0.0]], atol=FLOAT32)
    np.testing.assert_allclose(Sparsemax()(ROW, mask=SECOND_MASKED), [[1.0, 0.0, 0.0]], atol=FLOAT32)
    assert to_numpy(Sparsemax()(ROW))[0, 2] == 0.0


def test_weights_are_the_nearest_point_of_the_simplex(rng):
    scores = normal(T, S)
    weights = to_numpy(Sparsemax()(scores))
    distance = np.square(weights - scores).sum(axis=-1)
    for other in rng.dirichlet(np.full(S, 0.5), size=1000):
        assert (np.square(other - scores).sum(axis=-1) >= distance - FLOAT32).all()


def test_the_mode_is_the_first_maximum_that_may_be_attended():
    scores = np.array([[1.0, 4.0, 4.0], [4.0, 0.0, 4.0]], "float32")
    mask = np.array([[True, False, True]])
    assert to_numpy(Sparsemax().mode(scores)).tolist() == [[0, 1, 0], [1, 0, 0]]
    assert to_numpy(Sparsemax().mode(scores, mask)).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_frequencies_of_samples_approach_the_weights():
    count = 20_000
    sample = to_numpy(Sparsemax().sample(np.broadcast_to(ROW, (count, 3)), seed=11))
    assert (sample.sum(axis=-1) == 1.0).all()
    frequencies = sample.mean(axis=0)
    assert frequencies[2] == 0.0
    np.testing.assert_allclose(frequencies, [0.7, 0.3, 0.0], atol=5 * math.sqrt(0.7 * 0.3 / count))


def test_log_probabilities_are_the_logarithms_of_the_weights_and_lowest_where_they_are_zero():
    log_probabilities = Sparsemax().log_prob(np.eye(3, dtype="float32"), np.broadcast_to(ROW, (3, 3)))
    np.testing.assert_allclose(log_probabilities, [math.log(0.7), math.log(0.3), LOWEST], rtol=FLOAT32)
    assert to_numpy(Sparsemax().log_prob(np.zeros((1, 3), "float32"), ROW)).tolist() == [0.0]


def test_gradients_of_log_probability_and_entropy_by_hand():
    # d log p0 = (dz0 - dz1) / 2 / 0.7; the entropy's is -(log p0 - log p1) / 2
    found = gradient(lambda scores: ops.sum(Sparsemax().log_prob(np.eye(3)[:1], scores)), ROW)
    np.testing.assert_allclose(found, [[1 / 1.4, -1 / 1.4, 0.0]], atol=FLOAT32)
    found = gradient(lambda scores: ops.sum(Sparsemax().entropy(scores)), ROW)
    slope = math.log(0.3 / 0.7) / 2
    np.testing.assert_allclose(found, [[slope, -slope, 0.0]], atol=FLOAT32)
    assert not gradient(lambda scores: ops.sum(Sparsemax().log_prob(np.eye(3)[2:], scores)), ROW).any()


def test_entropy_by_hand():
    expected = -(0.7 * math.log(0.7) + 0.3 * math.log(0.3))
    np.testing.assert_allclose(Sparsemax().entropy(ROW), [expected], atol=FLOAT32)


def test_no_gradient_flows_through_the_mode_or_a_sample():
    for choose in (Sparsemax().mode, lambda scores: Sparsemax().sample(scores, seed=3)):
        assert not gradient(lambda scores, choose=choose: ops.sum(choose(scores)[..., 0]), normal(T, S)).any()


def test_attention_layers_take_it_by_name():
    assert type(alignments.get("sparsemax")) is Sparsemax
    query, value = normal(2, T, 7), 3.0 * normal(2, S, 7, seed=1)
    for layer in (SoftAttention(alignment="sparsemax"), MultiHeadAttention(2, 3, alignment="sparsemax")):
        _, weights = to_numpy(layer(query, value, return_attention_scores=True))
        np.testing.assert_allclose(weights.sum(axis=-1), 1.0, atol=FLOAT32)
        assert (weights == 0.0).any()
