"""What every score does alike, and `scores.get`."""

import keras
import numpy as np
import pytest
from reference import attention
from reference.arrays import normal, to_numpy
from reference.attention import PAIR_SCORES
from tolerances import FLOAT32, FLOAT64

from keras_attention import layers, scores
from keras_attention.scores import AdditiveScore, BilinearScore, ConcatScore, DotScore, ScaledDotScore, Score

B, T, S, D = 2, 3, 5, 7
ALL = [DotScore, ScaledDotScore, BilinearScore, AdditiveScore, ConcatScore]


class NegativeDistance(Score):
    def call(self, query, key):
        query, key = self.upcast(query, key)
        return -keras.ops.sum(keras.ops.square(query[..., :, None, :] - key[..., None, :, :]), axis=-1)


def test_a_score_of_a_user_needs_nothing_but_a_call():
    scores = NegativeDistance()(np.array([[0.0, 3.0]], "float32"), np.array([[4.0, 0.0], [0.0, 1.0]], "float32"))
    assert to_numpy(scores).tolist() == [[-25.0, -4.0]]


@pytest.mark.parametrize("policy", ["float32", "float16", "bfloat16", "mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("score_class", ALL)
def test_scores_are_float32_under_every_policy(score_class, policy):
    score = score_class(dtype=policy)
    query = keras.ops.cast(normal(B, T, D), score.compute_dtype)
    key = keras.ops.cast(normal(B, S, D, seed=1), score.compute_dtype)
    assert keras.backend.standardize_dtype(score(query, key).dtype) == "float32"
    assert (
        score(keras.KerasTensor(query.shape, query.dtype), keras.KerasTensor(key.shape, key.dtype)).dtype == "float32"
    )


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="JAX has no float64 unless it is switched on")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PAIR_SCORES)
def test_scores_of_float64_have_the_digits_of_float64(name, dtype):
    score, rng = type(scores.get(name))(dtype=dtype), np.random.default_rng(5)
    query, key = rng.normal(size=(B, T, D)), rng.normal(size=(B, S, D))
    found = to_numpy(score(keras.ops.cast(query, "float64"), keras.ops.cast(key, "float64")))
    weights = [weight.astype("float64") for weight in score.get_weights()]
    assert found.dtype == "float64"
    np.testing.assert_allclose(
        found, attention.scores(query, key, PAIR_SCORES[name], *weights), rtol=FLOAT64, atol=FLOAT64
    )


@pytest.mark.parametrize("score_class", ALL[2:])
def test_weights_of_a_mixed_policy_are_used_in_full_precision(score_class):
    query, key = (keras.ops.convert_to_tensor(array) for array in (normal(B, T, D), normal(B, S, D, seed=1)))
    full, mixed = score_class(), score_class(dtype="mixed_bfloat16")
    expected = to_numpy(full(query, key))
    mixed.build(query.shape, key.shape)
    mixed.set_weights(full.get_weights())
    np.testing.assert_allclose(to_numpy(mixed(query, key)), expected, atol=FLOAT32)


@pytest.mark.parametrize("score_class", ALL)
def test_permuting_the_keys_permutes_the_scores(score_class):
    score, query, key = score_class(), normal(B, T, D), normal(B, S, D, seed=1)
    order = np.array([3, 0, 4, 2, 1])
    np.testing.assert_allclose(
        to_numpy(score(query, key[:, order])), to_numpy(score(query, key))[..., order], atol=FLOAT32
    )


@pytest.mark.parametrize("score_class", ALL)
@pytest.mark.parametrize(("T", "S"), [(0, 5), (3, 0)])
def test_a_length_of_zero_gives_empty_scores(score_class, T, S):
    assert score_class()(normal(B, T, D), normal(B, S, D)).shape == (B, T, S)


@pytest.mark.parametrize("score_class", ALL)
def test_the_mask_of_the_query_does_not_travel_to_the_scores(score_class):
    query = keras.layers.Embedding(11, D, mask_zero=True)(np.array([[4, 5, 0], [6, 0, 0]]))
    assert getattr(score_class()(query, query), "_keras_mask", None) is None


@pytest.mark.parametrize("score_class", ALL)
@pytest.mark.parametrize("name", ["query", "key"])
def test_query_and_key_need_two_axes(score_class, name):
    shapes = {"query": (T, D), "key": (S, D), name: (D,)}
    message = rf"`{name}` must have at least 2 axes, `\(\.\.\., ., D\)`. Received shape \(7,\)"
    with pytest.raises(ValueError, match=message):
        score_class().build(shapes["query"], shapes["key"])


@pytest.mark.parametrize(
    ("name", "score_class"),
    [
        ("dot", DotScore),
        ("scaled_dot", ScaledDotScore),
        ("bilinear", BilinearScore),
        ("additive", AdditiveScore),
        ("concat", ConcatScore),
    ],
)
def test_a_name_stands_for_a_score(name, score_class):
    assert type(scores.get(name)) is score_class


def test_get_returns_a_score_as_it_is():
    score = AdditiveScore(units=13)
    assert scores.get(score) is score


def test_get_reads_a_config():
    score = scores.get(keras.saving.serialize_keras_object(AdditiveScore(units=13)))
    assert (type(score), score.units) == (AdditiveScore, 13)


def test_an_unknown_name_is_answered_with_the_known_ones_and_a_suggestion():
    known = 'Known: "additive", "bilinear", "concat", "dot", "scaled_dot".'
    with pytest.raises(ValueError) as error:
        scores.get("adittive")
    assert str(error.value) == f'Unknown score: "adittive". {known} Did you mean "additive"?'


def test_a_name_like_no_other_gets_no_suggestion():
    with pytest.raises(ValueError, match=r'Unknown score: "xyz". Known: .*"scaled_dot"\.$'):
        scores.get("xyz")


@pytest.mark.parametrize("identifier", [3, None, DotScore, keras.layers.Identity(name="nothing")])
def test_anything_else_is_a_type_error(identifier):
    with pytest.raises(TypeError, match=r"`score` must be one of .* or an instance of `Score`. Received: .* of type"):
        scores.get(identifier)


class SumOfQuery(Score):
    def call(self, query, key):
        return keras.ops.sum(query, axis=-1)


class OneForEachQuery(Score):
    def call(self, query, key):
        return keras.ops.sum(query, axis=-1, keepdims=True)


LAYERS = {
    "soft": lambda score: layers.SoftAttention(score=score),
    "heads": lambda score: layers.MultiHeadAttention(2, 3, score=score),
    "memory": lambda score: layers.KeyValueMemory(score=score),
    "pointer": lambda score: layers.Pointer(score),
}


@pytest.mark.parametrize(("score_class", "last"), [(SumOfQuery, ""), (OneForEachQuery, ", 1")])
@pytest.mark.parametrize("name", LAYERS)
def test_a_score_of_a_user_must_have_one_number_for_each_query_and_key(name, score_class, last):
    inputs = normal(4, 6, 8)  # as many queries as keys
    expected = rf"scores of shape \(\.\.\., T, S\), here \(4, (2, )?6, 6\)\. Received shape \(4, (2, )?6{last}\)"
    with pytest.raises(ValueError, match=rf"{score_class.__name__} must return {expected}"):
        LAYERS[name](score_class())(inputs, inputs)
