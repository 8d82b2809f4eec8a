import keras
import numpy as np
import pytest
from reference import attention
from reference.arrays import normal, to_numpy
from tolerances import FLOAT32

from keras_attention.layers import MultiHeadAttention, SoftAttention
from keras_attention.scores import AdditiveScore, SoftCap
from keras_attention.scores.soft_cap import soft_cap

B, T, S, D, CAP = 2, 3, 5, 7, 1.5


def test_small_scores_stay_and_large_ones_reach_the_cap():
    scores = keras.ops.array([-1e9, -50.0, -0.01, 0.0, 0.01, 50.0, 1e9])
    # 50 · tanh(1) = 38.0797
    expected = [-50.0, -38.0797, -0.01, 0.0, 0.01, 38.0797, 50.0]
    np.testing.assert_allclose(soft_cap(scores, 50.0), expected, atol=1e-4)


@pytest.mark.parametrize("leading", [(), (B,), (B, 17)])
@pytest.mark.parametrize("score", attention.PAIR_SCORES)
def test_any_score_is_capped_by_the_formula(score, leading):
    query, key = normal(*leading, T, D), normal(*leading, S, D, seed=1)
    capped = SoftCap(score, CAP)
    found = to_numpy(capped(query, key))
    scores = attention.scores(query, key, attention.PAIR_SCORES[score], *capped.score.get_weights())
    np.testing.assert_allclose(found, CAP * np.tanh(scores / CAP), atol=FLOAT32)
    np.testing.assert_allclose(capped.compare(query, capped.prepare(key)), found, atol=FLOAT32)


def test_keys_are_prepared_by_the_score_within():
    capped = SoftCap(AdditiveScore(units=13), CAP)
    capped.build((B, T, D), (B, S, D))
    assert capped.prepare(normal(B, S, D)).shape == (B, S, 13)


def test_a_bias_is_added_after_the_cap_and_is_not_capped():
    query, value, bias = normal(B, T, D), normal(B, S, D, seed=1), 7 * normal(T, S, seed=2)
    layer = SoftAttention(SoftCap("dot", CAP))
    _, weights = layer(query, value, attention_bias=bias, return_attention_scores=True)
    scores = CAP * np.tanh(attention.scores(query, value, attention.dot) / CAP) + bias
    np.testing.assert_allclose(weights, attention.softmax(scores), atol=FLOAT32)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision_does_not_overflow(policy):
    query = keras.ops.full((1, 1, 64), 60.0, dtype=keras.DTypePolicy(policy).compute_dtype)
    scores = SoftCap("dot", CAP, dtype=policy)(query, query)  # 60·60·64 is beyond float16
    assert keras.backend.standardize_dtype(scores.dtype) == "float32"
    np.testing.assert_allclose(scores, [[[CAP]]], atol=FLOAT32)


def test_the_regularizers_of_both_scores_count():
    inner = AdditiveScore(units=13, activity_regularizer=keras.regularizers.L2(1.0))
    capped = SoftCap(inner, CAP, activity_regularizer=keras.regularizers.L2(1.0))
    query, value = normal(1, T, D), normal(1, S, D, seed=1)
    attend = SoftAttention(capped)
    attend(query, value)
    within = to_numpy(inner.compare(query, inner.prepare(value)))
    expected = [(scores**2).sum() for scores in (within, CAP * np.tanh(within / CAP))]
    capped._clear_losses()
    attend(query, value)
    np.testing.assert_allclose(sorted(to_numpy(attend.losses)), sorted(expected), rtol=FLOAT32)


def test_flash_attention_is_refused():
    with pytest.raises(ValueError, match=r'Flash attention computes score="scaled_dot" or "dot".*SoftCap'):
        MultiHeadAttention(2, 4, score=SoftCap("scaled_dot"), flash_attention=True)


@pytest.mark.parametrize("cap", [0.0, -1.0, np.inf, np.nan, "50", True])
def test_a_cap_must_be_a_positive_number(cap):
    with pytest.raises(ValueError, match=r"`cap` must be a positive number"):
        SoftCap("dot", cap)


def test_a_score_of_another_layer_is_refused():
    inner = AdditiveScore(units=13)
    SoftCap(inner).build((B, T, D), (B, S, D))
    with pytest.raises(ValueError, match=r"belongs to one attention layer.*built already"):
        SoftCap(inner).build((B, T, D), (B, S, D))


def test_an_unknown_score_is_named():
    with pytest.raises(ValueError, match=r'Unknown score: "scaled"'):
        SoftCap("scaled")
