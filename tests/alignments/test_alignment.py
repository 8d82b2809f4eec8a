"""The interface of the alignments, and `alignments.get`."""

import functools

import keras
import numpy as np
import pytest
from compiled import whole
from keras import ops
from reference import attention, monotonic, sparse_weights, trees
from reference.arrays import normal, to_numpy
from tolerances import FLOAT32, FLOAT64

from keras_attention import alignments, layers
from keras_attention.alignments import Alignment, Categorical

T, S = 3, 5


class Uniform(Alignment):
    def marginals(self, scores, mask=None):
        allowed = ops.cast(ops.broadcast_to(True if mask is None else mask, ops.shape(scores)), scores.dtype)
        return allowed / ops.maximum(ops.sum(allowed, axis=-1, keepdims=True), 1.0)


def test_an_alignment_of_a_user_needs_nothing_but_marginals():
    weights = Uniform()(normal(1, 2, 4), mask=np.array([[[True, True, False, False], [False] * 4]]))
    assert to_numpy(weights).tolist() == [[[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]]


def test_an_alignment_without_marginals_says_what_is_missing():
    with pytest.raises(NotImplementedError, match=r"Alignment must define `marginals\(scores, mask\)`"):
        Alignment().marginals(normal(3, 5))


def test_symbolic_weights_have_shape_and_type_of_the_scores():
    weights = Uniform(dtype="mixed_bfloat16")(keras.Input((3, None), dtype="float32"))
    assert (weights.shape, weights.dtype) == ((None, 3, None), "float32")


def test_a_name_stands_for_an_alignment():
    assert type(alignments.get("softmax")) is Categorical


def test_get_returns_an_alignment_as_it_is_and_reads_a_config():
    alignment = Categorical(name="mine")
    assert alignments.get(alignment) is alignment
    assert alignments.get(keras.saving.serialize_keras_object(alignment)).name == "mine"


def test_an_unknown_name_is_answered_with_the_known_ones_and_a_suggestion():
    with pytest.raises(ValueError, match=r'Unknown alignment: "sofmax"\. Known: .*"softmax".*Did you mean "softmax"\?'):
        alignments.get("sofmax")


def test_a_score_is_no_alignment():
    with pytest.raises(TypeError, match=r"`alignment` must be one of .* instance of `Alignment`. Received: .* Dense\."):
        alignments.get(keras.layers.Dense(3, name="d"))


class Total(Alignment):
    def marginals(self, scores, mask=None):
        return ops.softmax(ops.sum(scores, axis=-2), axis=-1)


ATTEND = {
    "soft": lambda alignment, inputs: layers.SoftAttention(alignment=alignment)(inputs, inputs),
    "heads": lambda alignment, inputs: layers.MultiHeadAttention(2, 3, alignment=alignment)(inputs, inputs),
    "pooling": lambda alignment, inputs: layers.AttentionPooling(alignment=alignment)(inputs),
}


@pytest.mark.parametrize("name", ATTEND)
def test_an_alignment_of_a_user_must_return_one_weight_for_each_score(name):
    message = r"Total must return weights of the shape of the scores, here \(4, .*6\)\. Received shape \(4, (2, )?6\)"
    with pytest.raises(ValueError, match=message):
        ATTEND[name](Total(), normal(4, 6, 8))


# === Step by step ===


@pytest.mark.parametrize("name", ["softmax", "sampled", "sparsemax", "entmax", "sigmoid", "linear_chain"])
def test_queries_that_are_independent_have_an_empty_state(name):
    alignment, scores = whole(built(name, (T, S))), normal(2, T, S)
    state = alignment.initial_state((2, S))
    assert state == {}
    weights, state = alignment.step(scores[:, 1:], None, state)
    np.testing.assert_allclose(weights, to_numpy(alignment(scores))[:, 1:], atol=FLOAT32)
    assert state == {}


class OfVersion01(Uniform):
    is_stepwise = False


@pytest.mark.parametrize("alignment", [alignments.DependencyTree, OfVersion01])
def test_an_alignment_over_all_queries_has_no_steps(alignment):
    with pytest.raises(
        ValueError, match=rf"The alignment {alignment.__name__} needs all queries at once: where one att"
    ):
        alignment().initial_state((2, S))


# === float64 ===

DOUBLE = pytest.mark.skipif(keras.backend.backend() == "jax", reason="JAX has no float64 unless it is switched on")


def sigmoid(scores):
    return 1.0 / (1.0 + np.exp(-scores))


MARGINALS = {
    "softmax": attention.softmax,
    "sampled": attention.softmax,
    "sparsemax": lambda scores: sparse_weights.entmax(scores, 2.0),
    "entmax": lambda scores: sparse_weights.entmax(scores, 1.5),
    "sigmoid": sigmoid,
    "linear_chain": sigmoid,  # of independent positions, as long as nothing is learned
    "monotonic": lambda scores: monotonic.expectation(sigmoid(scores - 4.0)),
    "dependency_tree": lambda scores: trees.marginals(scores, np.ones(scores.shape, bool), True),
}


def built(name, shape):
    alignment = alignments.get(name)
    alignment.build(shape)
    return alignment


shared = functools.cache(lambda name: built(name, (1, 3, 3)))


def double_scores(name):
    """Scores with more digits than float32 has."""
    shape = (4, 4) if name == "dependency_tree" else (T, S)
    return np.random.default_rng(5).normal(size=shape)


@DOUBLE
@pytest.mark.parametrize("name", MARGINALS)
def test_marginals_of_float64_have_the_digits_of_float64(name):
    scores = double_scores(name)
    marginals = to_numpy(built(name, scores.shape).marginals(ops.convert_to_tensor(scores, "float64")))
    assert marginals.dtype == "float64"
    np.testing.assert_allclose(marginals, MARGINALS[name](scores), rtol=FLOAT64, atol=FLOAT64)


@DOUBLE
@pytest.mark.parametrize("name", MARGINALS)
def test_samples_and_all_values_of_float64_are_float64(name):
    scores = ops.convert_to_tensor(double_scores(name), "float64")
    alignment = built(name, scores.shape)
    sample = alignment.sample(scores, seed=3)
    values = [sample, alignment.mode(scores), alignment.log_prob(sample, scores), alignment.entropy(scores)]
    if hasattr(alignment, "log_partition"):
        values.append(alignment.log_partition(scores))
    assert {keras.backend.standardize_dtype(value.dtype) for value in values} == {"float64"}
    np.testing.assert_array_equal(to_numpy(sample), to_numpy(alignment.sample(ops.cast(scores, "float32"), seed=3)))


@pytest.mark.parametrize("dtype", ["int64", "bool"])
@pytest.mark.parametrize(
    "name", ["softmax", "sparsemax", "entmax", "sigmoid", "linear_chain", "monotonic", "dependency_tree"]
)
def test_scores_of_integers_have_the_weights_of_floats(name, dtype):
    scores = np.array([[[0, 1, 1], [1, 0, 1], [1, 1, 0]]], dtype)
    alignment = whole(shared(name))
    weights = alignment(ops.convert_to_tensor(scores.astype("float32")))
    np.testing.assert_array_equal(to_numpy(alignment(ops.convert_to_tensor(scores))), to_numpy(weights))
    assert shared(name)(keras.Input((3, 3), dtype=dtype)).dtype == "float32"


@pytest.mark.parametrize(
    "part", [alignments.Monotonic(), alignments.LinearChain(), alignments.AdaptiveEntmax()], ids=lambda part: part.name
)
def test_weights_keep_their_digits_where_a_layer_of_half_precision_reads_them(part):
    """Step by step an alignment is read outside of its own call, inside that of the attention."""

    class Reader(keras.layers.Layer):
        def call(self, inputs):
            return ops.cast(inputs, "float32") + part.trainable_variables[0] * 1.0

    part.build((2, 3, 5))
    part.trainable_variables[0].assign(ops.full(part.trainable_variables[0].shape, 0.30004))
    read = Reader(dtype="mixed_float16")(np.zeros((2, 2), "float32"))
    np.testing.assert_allclose(to_numpy(read), 0.30004, rtol=1e-6)
