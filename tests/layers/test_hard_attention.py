import keras
import numpy as np
import pytest
from keras import ops
from reference.arrays import normal, to_numpy
from tolerances import EXACT, FLOAT32

from keras_attention import layers
from keras_attention.alignments import Relaxed, SampledCategorical
from keras_attention.alignments.estimators import Recorder

B, T, S, D, E = 2, 3, 5, 7, 11


def test_inference_reads_the_value_of_the_best_key():
    query, value, key = normal(B, T, D, seed=1), normal(B, S, E, seed=2), normal(B, S, D, seed=3)
    context = to_numpy(layers.HardAttention()(query, value, key))
    best = np.einsum("btd,bsd->bts", query, key).argmax(axis=-1)
    expected = np.stack([row[positions] for row, positions in zip(value, best, strict=True)])
    np.testing.assert_allclose(context, expected, atol=EXACT)


def test_training_reads_one_real_position_and_collects_its_log_probability():
    query, value = normal(B, T, D, seed=1), normal(B, S, D, seed=2)
    mask = np.array([[True, True, False, True, True], [False] * S])
    attention = layers.HardAttention(seed=3)
    with Recorder() as recorder:
        context, weights = attention(query, value, value_mask=mask, return_attention_scores=True, training=True)
    positions = to_numpy(weights).argmax(axis=-1)
    np.testing.assert_allclose(context[0], value[0][positions[0]], atol=EXACT)
    assert mask[0][positions[0]].all()
    assert not to_numpy(context)[1].any()
    log_prob = to_numpy(recorder.log_prob(B))
    scores = np.where(mask[0], np.einsum("td,sd->ts", query[0], value[0]) / np.sqrt(D), -np.inf)
    log_weights = scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))
    np.testing.assert_allclose(log_prob, [log_weights[range(T), positions[0]].sum(), 0.0], atol=FLOAT32)


def test_selections_are_those_of_the_estimators():
    query, value = normal(B, T, D, seed=1), normal(B, S, D, seed=2)
    best = to_numpy(layers.HardAttention()(query, value))
    argmax = layers.HardAttention(selection="argmax")
    np.testing.assert_allclose(argmax(query, value, training=True), best, atol=EXACT)
    for selection in ("sample", "reinforce", "straight_through", Relaxed(0.5)):
        layer = layers.HardAttention(selection=selection, seed=13)
        assert np.abs(to_numpy(layer(query, value, training=True)) - best).max() > FLOAT32


def test_the_heads_of_multi_head_attention_choose_each_for_itself():
    layer = layers.MultiHeadAttention(num_heads=13, key_dim=D, alignment=SampledCategorical(seed=5))
    with Recorder() as recorder:
        _, weights = layer(normal(B, T, D), normal(B, S, E), return_attention_scores=True, training=True)
    weights = to_numpy(weights)
    assert weights.shape == (B, 13, T, S)
    np.testing.assert_allclose(weights.max(axis=-1), 1.0, atol=EXACT)
    assert (weights[:, :1] != weights).any()
    assert recorder.log_prob(B).shape == (B,)


def test_an_unknown_selection_is_named_with_the_known_ones():
    with pytest.raises(ValueError, match=r'Unknown estimator: "best". Known: "argmax", "gumbel_softmax", "reinforce"'):
        layers.HardAttention(selection="best")


def test_a_seed_repeats_the_samples():
    query, value = ops.zeros((B, T, D)), normal(B, S, E)
    first, second = (layers.HardAttention("concat", seed=3) for _ in range(2))
    for layer in (first, second):
        layer(query, value)
    second.set_weights(first.get_weights())
    draws = [[to_numpy(layer(query, value, training=True)) for _ in range(2)] for layer in (first, second)]
    np.testing.assert_allclose(draws[0], draws[1], atol=EXACT)
    assert keras.ops.any(draws[0][0] != draws[0][1])


# === Other distributions ===


@pytest.mark.parametrize("alignment", ["sparsemax", "sigmoid", "linear_chain", "monotonic"])
def test_any_alignment_is_read_by_samples_in_training_and_by_its_mode_at_inference(alignment):
    layer = layers.HardAttention("dot", alignment=alignment, seed=3)
    query, value = normal(B, T, D), normal(B, S, D, seed=1)
    soft = layers.SoftAttention("dot", alignment)
    soft(query, value)
    scores = soft.score(query, value)
    context, weights = layer(query, value, return_attention_scores=True)
    np.testing.assert_array_equal(to_numpy(weights), to_numpy(soft.alignment.mode(scores)))
    np.testing.assert_allclose(to_numpy(context), to_numpy(weights) @ value, atol=FLOAT32)
    drawn = [to_numpy(layer(query, value, return_attention_scores=True, training=True)[1]) for _ in range(5)]
    assert set(np.unique(drawn)) <= {0.0, 1.0}
    assert any((each != drawn[0]).any() for each in drawn)
    copy = layers.HardAttention.from_config(layer.get_config())
    assert copy.get_config() == layer.get_config()


def test_a_gradient_through_one_position_needs_one_position():
    with pytest.raises(ValueError, match="StraightThrough"):
        layers.HardAttention(selection="straight_through", alignment="sigmoid")
