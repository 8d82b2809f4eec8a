"""Attention sinks against loops over one more column, and in hard and multi-head attention."""

import keras
import numpy as np
import pytest
from keras import ops
from reference import attention, sparse_weights
from reference.arrays import normal, to_numpy
from reference.gradients import gradient
from tolerances import EXACT, FLOAT32

from keras_attention import alignments
from keras_attention.alignments import Alignment, AttentionSink, Categorical, Entmax, Sampled, SampledCategorical
from keras_attention.alignments.attention_sink import with_sink
from keras_attention.layers import HardAttention, MultiHeadAttention, SoftAttention
from keras_attention.scores import SoftCap

B, N, T, S, D = 2, 3, 5, 7, 11

MASK = np.array([[True] * S, [True] * 3 + [False] * 4, [False] * S, [True] + [False] * 6, [False, True] * 3 + [True]])

LOOPS = {
    "softmax": attention.softmax,
    "sparsemax": lambda scores, mask: sparse_weights.entmax(scores, 2.0, mask),
    "entmax": lambda scores, mask: sparse_weights.entmax(scores, 1.5, mask),
    "adaptive_entmax": lambda scores, mask: sparse_weights.entmax(scores, 1.5, mask),
}


def with_column(scores, mask, logit):
    """Scores `(..., T, S + 1)` with the logit last, and the mask, which allows it."""
    column = np.broadcast_to(logit, (*scores.shape[:-1], 1))
    mask = np.broadcast_to(True if mask is None else mask, scores.shape)
    return np.concatenate([scores, column], -1), np.concatenate([mask, np.ones_like(column, "bool")], -1)


def built(logit, alignment="softmax", shape=(B, T, S)):
    sink = AttentionSink(alignment)
    sink.build(shape)
    sink.logit.assign(logit)
    return sink


# === The weights ===


@pytest.mark.parametrize("mask", [None, MASK, MASK[:, :1], MASK[0]], ids=["none", "pairs", "queries", "row"])
@pytest.mark.parametrize("name", LOOPS)
def test_the_weights_are_those_of_one_more_column_without_the_last(name, mask):
    scores = normal(B, T, S)
    expected = LOOPS[name](*with_column(scores, mask, 0.75))[..., :-1]
    np.testing.assert_allclose(built(0.75, name)(scores, mask=mask), expected, atol=FLOAT32)


def test_without_a_learned_logit_it_is_the_softmax_plus_one():
    scores = normal(B, T, S)
    expected = np.exp(scores) / (1.0 + np.exp(scores).sum(axis=-1, keepdims=True))
    sink = AttentionSink(learned=False)
    np.testing.assert_allclose(sink(scores), expected, atol=FLOAT32)
    assert sink.weights == []
    np.testing.assert_allclose(AttentionSink()(scores), expected, atol=FLOAT32)  # where learning begins


def test_the_gradient_of_the_logit_takes_from_every_weight():
    scores, factors = normal(T, S), normal(T, S, seed=1)

    def value(logit):
        extended, _ = with_sink(scores, None, logit)
        return ops.sum(ops.softmax(extended)[:, :-1] * ops.convert_to_tensor(factors))

    weights = to_numpy(built(0.75, shape=(T, S))(scores))
    expected = -(weights * factors * (1.0 - weights.sum(axis=-1, keepdims=True))).sum()
    np.testing.assert_allclose(gradient(value, np.float32(0.75)), expected, atol=FLOAT32)


def test_what_may_not_be_attended_has_no_influence_whatever_it_holds():
    scores, sink = normal(B, T, S), built(0.75)
    expected = to_numpy(sink(scores, mask=MASK))
    for garbage in (np.nan, np.inf, 1e30):
        np.testing.assert_allclose(sink(np.where(MASK, scores, np.float32(garbage)), mask=MASK), expected, atol=EXACT)
    assert not expected[:, 2].any()


def test_a_diverged_row_is_nan_and_a_row_of_never_is_zero():
    scores = normal(T, S)
    scores[0, 1], scores[1, 2], scores[3] = np.nan, np.inf, -np.inf
    weights = to_numpy(built(0.75, shape=(T, S))(scores, mask=MASK))
    assert np.isnan(weights[:2]).tolist() == MASK[:2].tolist() and np.isfinite(weights[2:]).all()
    assert not weights[3].any()


def test_half_precision_keeps_the_digits_of_the_logit():
    scores = normal(B, T, S).astype("float16")
    weights = built(0.12345, alignment="softmax")(ops.convert_to_tensor(scores))
    assert keras.backend.standardize_dtype(weights.dtype) == "float16"
    expected = attention.softmax(*with_column(scores.astype("float32"), None, 0.12345))[..., :-1]
    np.testing.assert_array_equal(to_numpy(weights), expected.astype("float16"))


# === Selections ===


def outcomes(columns):
    """One-hot rows `(S + 1, S)`, the last one empty."""
    return np.eye(columns + 1, columns, dtype="float32")


@pytest.mark.parametrize("name", ["softmax", "sparsemax", "entmax"])
def test_the_probabilities_of_all_outcomes_are_those_of_the_columns(name):
    scores, sink = normal(T, S), built(0.75, name, shape=(T, S))
    weights = LOOPS[name](*with_column(scores, MASK, 0.75))
    log_probs = [to_numpy(sink.log_prob(np.tile(row, (T, 1)), scores, MASK)) for row in outcomes(S)]
    np.testing.assert_allclose(np.exp(log_probs).T, weights, atol=FLOAT32)
    expected = -np.where(weights > 0, weights * np.log(np.where(weights > 0, weights, 1.0)), 0.0).sum(axis=-1)
    np.testing.assert_allclose(sink.entropy(scores, MASK), expected, atol=FLOAT32)
    np.testing.assert_allclose(sink.marginals(scores, MASK), weights[:, :-1], atol=FLOAT32)


def test_the_mode_is_an_empty_row_where_the_sink_is_the_best():
    scores = np.array([[0.5, 0.25], [0.5, 1.0], [0.75, 0.0], [2.0, 3.0]], "float32")
    mask = np.array([[True, True], [True, True], [True, True], [True, False]])
    mode = built(0.75, shape=scores.shape).mode(scores, mask)
    np.testing.assert_array_equal(to_numpy(mode), [[0, 0], [0, 1], [1, 0], [1, 0]])  # of equals the first, not the sink


@pytest.mark.parametrize(
    "make", [lambda: Sampled(AttentionSink()), lambda: AttentionSink("sampled")], ids=["in", "out"]
)
def test_samples_are_as_frequent_as_their_weights(make):
    scores, count, alignment = normal(T, S), 20_011, make()
    weights = attention.softmax(*with_column(scores, MASK, 0.0))[..., :-1]
    keras.utils.set_random_seed(3)
    selections = to_numpy(alignment(np.tile(scores, (count, 1, 1)), mask=MASK, training=True))
    assert set(np.unique(selections)) == {0.0, 1.0} and (selections.sum(axis=-1) <= 1).all()
    np.testing.assert_allclose(selections.mean(axis=0), weights, atol=0.02)


def test_a_straight_through_gradient_needs_the_sink_outside():
    with pytest.raises(ValueError, match=r"StraightThrough needs an alignment with `relaxed_sample`"):
        Sampled(AttentionSink(), "straight_through")
    sink = AttentionSink(SampledCategorical("straight_through", seed=3))
    factors = ops.convert_to_tensor(normal(T, S, seed=1))
    assert gradient(lambda scores: ops.sum(sink(scores, training=True) * factors), normal(T, S)).any()


def test_hard_attention_takes_a_sink():
    layer, query, value = HardAttention(alignment=AttentionSink(), seed=3), normal(B, T, D), normal(B, S, D, seed=1)
    layer.build(query.shape, value.shape)
    layer.alignment.alignment.logit.assign(1.5)
    _, weights = layer(query, value, return_attention_scores=True)
    assert set(np.unique(to_numpy(weights).sum(axis=-1))) == {0.0, 1.0}


# === Which alignments ===


@pytest.mark.parametrize(
    "alignment", ["linear_chain", "dependency_tree", "monotonic", "sigmoid", Sampled("linear_chain"), AttentionSink()]
)
def test_an_alignment_that_does_not_choose_one_position_is_refused(alignment):
    name = type(alignments.get(alignment)).__name__
    with pytest.raises(ValueError, match=rf"stands beside the positions.*Received: {name}\. Take \"softmax\""):
        AttentionSink(alignment)


@keras.saving.register_keras_serializable(package="tests")
class Uniform(Alignment):
    def marginals(self, scores, mask=None):
        allowed = ops.ones_like(scores) if mask is None else ops.cast(mask, scores.dtype)
        return allowed / ops.maximum(ops.sum(allowed, axis=-1, keepdims=True), 1.0)


def test_an_alignment_of_a_user_says_whether_it_takes_a_sink():
    with pytest.raises(ValueError, match=r"Received: Uniform.*`is_categorical = True`"):
        AttentionSink(Uniform())

    class One(Uniform):
        is_categorical = True

    np.testing.assert_allclose(AttentionSink(One())(normal(T, S)), np.full((T, S), 1 / (S + 1)), atol=FLOAT32)


# === Heads ===


def test_each_head_has_a_logit_of_its_own():
    sink, scores = AttentionSink(Entmax(1.25), num_heads=N), normal(B, N, T, S)
    sink.build(scores.shape)
    logits = np.array([-1.0, 0.0, 2.0], "float32").reshape(N, 1, 1)
    assert not to_numpy(sink.logit).any()
    sink.logit.assign(logits)
    expected = sparse_weights.entmax(with_column(scores, None, logits)[0], 1.25)
    np.testing.assert_allclose(sink(scores), expected[..., :-1], atol=FLOAT32)


def test_the_layers_with_one_head_have_one_logit():
    layer = SoftAttention(alignment=AttentionSink())
    context, weights = layer(normal(B, T, D), normal(B, S, D, seed=1), return_attention_scores=True)
    assert layer.alignment.logit.shape == ()
    expected = to_numpy(weights) @ normal(B, S, D, seed=1)
    np.testing.assert_allclose(context, expected, atol=FLOAT32)
    assert (to_numpy(weights).sum(axis=-1) < 1).all()


def test_another_number_of_heads_is_refused():
    with pytest.raises(
        ValueError, match=r"An AttentionSink with num_heads=3 takes scores of shape \(\.\.\., 3, T, S\)"
    ):
        MultiHeadAttention(5, 4, alignment=AttentionSink(num_heads=3)).build((B, T, D), (B, S, D))


PARTS = {
    "sink": {"alignment": AttentionSink(num_heads=6)},
    "zero": {"alignment": AttentionSink("sparsemax", learned=False)},
    "sink-cap": {"alignment": AttentionSink("entmax", num_heads=6), "score": SoftCap("additive", 0.5)},
    "sink-window-gate": {"alignment": AttentionSink(num_heads=6), "sliding_window": 2, "use_gate": True},
    "all": {
        "alignment": AttentionSink(num_heads=6),
        "score": SoftCap("scaled_dot", 0.5),
        "sliding_window": 3,
        "use_gate": True,
        "use_query_key_norm": True,
        "num_key_value_heads": 2,
    },
}


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_decoding_step_by_step_equals_the_causal_call(parts):
    layer = MultiHeadAttention.from_config(MultiHeadAttention(6, 4, **parts).get_config())
    inputs = normal(B, T, D)
    layer.build(inputs.shape, inputs.shape)
    layer.set_weights([normal(*weight.shape, seed=index) for index, weight in enumerate(layer.weights)])
    expected, expected_weights = layer(inputs, inputs, use_causal_mask=True, return_attention_scores=True)
    cache = layer.empty_cache(B, S)
    assert set(cache) == {"key", "value"}
    for start, length in ((0, 1), (1, 3), (4, 1)):
        rows = slice(start, start + length)
        output, weights, cache = layer(
            inputs[:, rows],
            inputs[:, rows],
            cache=cache,
            cache_index=start,
            use_causal_mask=True,
            return_attention_scores=True,
        )
        np.testing.assert_allclose(output, expected[:, rows], atol=FLOAT32)
        np.testing.assert_allclose(weights[..., :T], expected_weights[:, :, rows], atol=FLOAT32)


def test_flash_attention_is_refused():
    with pytest.raises(ValueError, match=r'with alignment="softmax" only.*AttentionSink'):
        MultiHeadAttention(6, 4, alignment=AttentionSink(), flash_attention=True)


# === Errors ===


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_heads": 0}, r"`num_heads` must be a positive integer. Received: 0"),
        ({"learned": 1}, r"`learned` must be `True` or `False`. Received: 1"),
        ({"alignment": "soft"}, r'Unknown alignment: "soft"'),
    ],
    ids=str,
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        AttentionSink(**arguments)


def test_a_sink_that_is_not_built_says_so():
    with pytest.raises(ValueError, match=r"An AttentionSink must be built\. Call it once"):
        AttentionSink().marginals(normal(T, S))


def test_an_alignment_of_another_layer_is_refused():
    alignment = Categorical()
    alignment.build((B, T, S))
    for wrapper in (AttentionSink, Sampled):
        with pytest.raises(ValueError, match=r"belongs to one attention layer.*built already"):
            wrapper(alignment).build((B, T, S))
