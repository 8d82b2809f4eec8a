import keras
import numpy as np
import pytest
from reference import attention
from reference.arrays import normal, to_numpy
from tolerances import EXACT, FLOAT32

from keras_attention.alignments import Sparsemax
from keras_attention.layers import KeyValueAttention, SoftAttention

B, T, S, D, E = 2, 3, 5, 7, 11


@pytest.mark.parametrize("score", ["dot", "bilinear"])
def test_it_equals_the_loop(score):
    query, value, key = normal(B, T, D, seed=1), normal(B, S, E, seed=2), normal(B, S, D, seed=3)
    layer, mask = KeyValueAttention(score=score), normal(B, T, S) > -0.5
    context, weights = to_numpy(layer(query, value, key, attention_mask=mask, return_attention_scores=True))
    pair_score = attention.PAIR_SCORES[score]
    expected = attention.attention(query, key, value, mask, pair_score, *layer.get_weights())
    np.testing.assert_allclose(context, expected[0], atol=FLOAT32)
    np.testing.assert_allclose(weights, expected[1], atol=FLOAT32)


def test_keys_of_another_width_than_query_and_values():
    query, value, key = normal(B, T, D), normal(B, S, E), normal(B, S, 13)
    context = KeyValueAttention(score="additive", alignment=Sparsemax())(query, value, key)
    assert context.shape == (B, T, E)


def test_a_position_is_attended_where_key_and_value_are_real():
    masks = {
        "key_mask": np.array([[True, False, True, True, True], [False] * S]),
        "value_mask": np.array([[True, True, False, True, True], [True] * S]),
    }
    value, key = normal(B, S, E), normal(B, S, D)
    key[0, 1], value[0, 2], key[1] = np.nan, np.inf, np.nan
    context, weights = to_numpy(KeyValueAttention()(normal(B, T, D), value, key, **masks, return_attention_scores=True))
    np.testing.assert_array_equal(
        weights > 0, np.broadcast_to((masks["key_mask"] & masks["value_mask"])[:, None], (B, T, S))
    )
    assert np.isfinite(context).all()
    assert not context[1].any()


def test_it_is_soft_attention_with_a_key():
    query, value, key = normal(B, T, D), normal(B, S, E), normal(B, S, D)
    expected = SoftAttention()(query, value, key, use_causal_mask=True)
    np.testing.assert_allclose(KeyValueAttention()(query, value, key, use_causal_mask=True), expected, atol=EXACT)


@pytest.mark.parametrize("built", [False, True])
def test_a_key_left_out_is_an_error(built):
    layer, query, value = KeyValueAttention(), normal(B, T, D), normal(B, S, D)
    if built:
        layer(query, value, value)
    with pytest.raises(ValueError, match=r"needs a key for each value.*value of shape \(2, 5, 7\)"):
        layer(query, value)
    with pytest.raises(ValueError, match=r"needs a key for each value.*value of shape \(None, 5, 7\)"):
        layer(query=keras.Input((T, D)), value=keras.Input((S, D)))
