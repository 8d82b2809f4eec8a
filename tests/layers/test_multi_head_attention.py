"""The formula, Keras' layer where it is right, the right values where it is wrong, and what only ours has.

The cache is tested in `test_multi_head_attention_cache.py`.
"""

import keras
import numpy as np
import pytest
from compiled import compiled
from keras import ops
from reference import attention
from reference.arrays import normal, to_numpy
from reference.gradients import gradient
from tolerances import EXACT, FLOAT32

from keras_attention import alignments
from keras_attention.layers import MultiHeadAttention, SoftAttention

B, T, S, D, D_VALUE, N, H, E = 2, 3, 5, 7, 11, 13, 4, 6

WEIGHTED_SCORES = {"bilinear": attention.bilinear, "additive": attention.additive, "concat": attention.concat}


@pytest.fixture
def query():
    return normal(B, T, D, seed=1)


@pytest.fixture
def value():
    return normal(B, S, D_VALUE, seed=2)


@pytest.fixture
def key():
    return normal(B, S, 8, seed=3)


def randomize(layer):
    """Random weights, the biases too, which Keras starts at zero."""
    layer.set_weights([normal(*weight.shape, seed=index) / 2 for index, weight in enumerate(layer.weights)])
    return layer


def built(*inputs, **arguments):
    layer = MultiHeadAttention(**{"num_heads": N, "key_dim": H, **arguments})
    layer.build(*(array.shape for array in inputs))
    return randomize(layer)


def same_as_keras(inputs, options=None, atol=FLOAT32, **arguments):
    """Compares ours with Keras' layer of the same weights; returns our output and weights."""
    arguments = {"num_heads": N, "key_dim": H, **arguments}
    ours, theirs = MultiHeadAttention(**arguments), keras.layers.MultiHeadAttention(**arguments)
    for layer in (ours, theirs):
        layer.build(*(array.shape for array in inputs))
    ours.set_weights(randomize(theirs).get_weights())
    options = options or {}
    output, weights = to_numpy(ours(*inputs, **options, return_attention_scores=True))
    expected_output, expected_weights = to_numpy(theirs(*inputs, **options, return_attention_scores=True))
    np.testing.assert_allclose(output, expected_output, atol=atol)
    np.testing.assert_allclose(weights, expected_weights, atol=atol)
    np.testing.assert_allclose(ours(*inputs, **options), output, atol=EXACT)
    return output, weights


# === The formula ===


@pytest.mark.parametrize("use_gate", [False, True])
def test_output_and_weights_equal_the_loop(use_gate, query, value, key):
    layer = built(query, value, key, value_dim=E, use_gate=use_gate)
    mask = normal(B, N, T, S) > -0.5
    output, weights = to_numpy(layer(query, value, key, attention_mask=mask, return_attention_scores=True))
    expected = attention.multi_head_attention(query, value, key, mask, layer.get_weights())
    np.testing.assert_allclose(output, expected[0], rtol=FLOAT32, atol=FLOAT32)
    np.testing.assert_allclose(weights, expected[1], atol=FLOAT32)


@pytest.mark.parametrize("score", WEIGHTED_SCORES)
def test_any_score_serves_all_heads_with_one_set_of_weights(score, query, value):
    layer = built(query, value, score=score)
    score_weights = layer.score.get_weights()
    kernels = [weight for dense in projections(layer) for weight in dense.get_weights()]
    output, weights = to_numpy(layer(query, value, return_attention_scores=True))
    expected = attention.multi_head_attention(
        query, value, value, None, kernels, WEIGHTED_SCORES[score], *score_weights
    )
    np.testing.assert_allclose(weights, expected[1], atol=FLOAT32)
    np.testing.assert_allclose(output, expected[0], rtol=FLOAT32, atol=FLOAT32)


def projections(layer):
    return [layer.query_dense, layer.key_dense, layer.value_dense, layer.output_dense]


@keras.saving.register_keras_serializable(package="tests")
class FirstPosition(alignments.Alignment):
    def marginals(self, scores, mask=None):
        return ops.one_hot(ops.zeros(ops.shape(scores)[:-1], "int32"), scores.shape[-1], dtype=scores.dtype)


def test_any_alignment_can_take_the_place_of_the_softmax(query, value):
    layer = built(query, value, alignment=FirstPosition())
    output, weights = to_numpy(layer(query, value, return_attention_scores=True))
    assert (weights[..., 0] == 1).all()
    assert not weights[..., 1:].any()
    np.testing.assert_allclose(output, layer(query, value[:, :1]) + 0 * output, atol=FLOAT32)


@pytest.mark.parametrize("score", ["dot", "scaled_dot", *WEIGHTED_SCORES])
def test_one_head_with_identity_projections_is_soft_attention(score):
    query, value, mask = normal(B, T, D), normal(B, S, D, seed=1), normal(B, T, S) > -0.5
    soft, layer = SoftAttention(score=score), MultiHeadAttention(1, D, score=score)
    expected = to_numpy(soft(query, value, attention_mask=mask, return_attention_scores=True))
    layer.build(query.shape, value.shape)
    for dense in projections(layer):
        dense.set_weights([np.eye(D).reshape(dense.kernel.shape), np.zeros(dense.bias.shape)])
    layer.score.set_weights(soft.score.get_weights())
    output, weights = to_numpy(layer(query, value, attention_mask=mask, return_attention_scores=True))
    np.testing.assert_allclose(output, expected[0], atol=FLOAT32)
    np.testing.assert_allclose(weights[:, 0], expected[1], atol=FLOAT32)


def test_permuting_keys_and_values_together_changes_nothing(query, value, key):
    layer, order = built(query, value, key), np.array([3, 0, 4, 2, 1])
    np.testing.assert_allclose(layer(query, value[:, order], key[:, order]), layer(query, value, key), atol=FLOAT32)


# === The same as Keras ===


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"value_dim": E},
        {"use_bias": False},
        {"output_shape": 9},
        {"output_shape": (9, 8)},
        {"output_shape": [2, 3, 5]},
        {"use_gate": True},
        {"use_gate": True, "value_dim": E, "use_bias": False, "output_shape": 9},
        {"num_heads": 1, "key_dim": 1},
        {"dropout": 0.5},
    ],
    ids=str,
)
def test_every_argument_gives_the_numbers_of_keras(arguments, query, value, key):
    same_as_keras((query, value), **arguments)
    same_as_keras((query, value, key), **arguments)


@pytest.mark.parametrize(
    "options",
    [
        {"value_mask": np.array([[True, True, True, False, False], [True, False, False, True, True]])},
        {"key_mask": np.array([[True, True, True, False, False], [True, False, False, True, True]])},
        {"attention_mask": np.array([[True, False, True, False, True]] * T)},
        {"attention_mask": np.tile(np.eye(T, S, dtype=bool), (B, 1, 1))},
        {"attention_mask": np.tile(np.eye(T, S, k=1, dtype=bool), (B, N, 1, 1))},
        {"attention_mask": np.tile(np.eye(T, S, dtype="int32"), (B, 1, 1, 1))},
        {"attention_mask": np.eye(T, S, dtype=bool), "value_mask": np.array([[True, True, True, False, False]] * B)},
    ],
    ids=lambda options: "-".join(f"{name}{np.shape(mask)}" for name, mask in options.items()),
)
@pytest.mark.parametrize("arguments", [{}, {"dropout": 0.5}, {"use_gate": True}], ids=str)
def test_every_mask_gives_the_numbers_of_keras(options, arguments, query, value, key):
    same_as_keras((query, value, key), options, **arguments)


# With a window of one position later queries would see nothing, where Keras is wrong.
EACH_WINDOW = pytest.mark.parametrize(("T", "S", "sliding_window"), [(5, 5, 1), (5, 5, 2), (5, 5, 4), (6, 4, 2)])


@EACH_WINDOW
def test_a_causal_mask_gives_the_numbers_of_keras_with_no_fewer_queries_than_keys(T, S, sliding_window):
    query, value = normal(B, T, D), normal(B, S, D, seed=1)
    for window in (None, sliding_window):
        same_as_keras((query, value), {"use_causal_mask": True}, sliding_window=window)


@EACH_WINDOW
def test_a_window_gives_the_numbers_of_keras_with_no_fewer_queries_than_keys(T, S, sliding_window):
    _, weights = same_as_keras((normal(B, T, D), normal(B, S, D, seed=1)), sliding_window=sliding_window)
    distance = np.abs(np.arange(T)[:, None] - np.arange(S))
    np.testing.assert_array_equal(weights > 0, np.broadcast_to(distance < sliding_window, (B, N, T, S)))


def over_axes(query_sizes, value_sizes):
    return normal(B, *query_sizes, D), normal(B, *value_sizes, D_VALUE, seed=1), normal(B, *value_sizes, 8, seed=2)


@pytest.mark.parametrize(
    ("query_sizes", "value_sizes", "attention_axes"),
    [
        ((3, 4), (3, 2), 2),
        ((3, 4), (3, 2), -2),
        ((3, 4), (2, 4), 1),
        ((3, 4), (2, 5), None),
        ((3, 4), (2, 5), (1, 2)),
        ((5, 3, 4), (5, 2, 6), (2, 3)),
        ((5, 3, 4), (2, 3, 6), (1, 3)),
    ],
)
@pytest.mark.parametrize("arguments", [{}, {"use_gate": True, "value_dim": 3, "output_shape": (2, 5)}], ids=str)
def test_attention_over_chosen_axes_gives_the_numbers_of_keras(query_sizes, value_sizes, attention_axes, arguments):
    inputs = over_axes(query_sizes, value_sizes)
    arguments = {"num_heads": 2, "attention_axes": attention_axes, **arguments}
    output, weights = same_as_keras(inputs, **arguments)
    symbolic = MultiHeadAttention(key_dim=H, **arguments)(
        *(keras.Input(array.shape[1:], batch_size=B) for array in inputs), return_attention_scores=True
    )
    assert (symbolic[0].shape, symbolic[1].shape) == (output.shape, weights.shape)


def test_attention_over_the_last_of_many_axes_is_that_of_as_many_sequences():
    # Keras' own layer cannot do this where TensorFlow runs on oneDNN, whose softmax takes five axes at most.
    query, value = normal(B, 5, 3, 4, D), normal(B, 5, 3, 2, D_VALUE, seed=1)
    attention = MultiHeadAttention(num_heads=2, key_dim=H, attention_axes=3)
    output, weights = to_numpy(attention(query, value, return_attention_scores=True))
    sequences = MultiHeadAttention(num_heads=2, key_dim=H)
    rows = query.reshape(-1, 4, D), value.reshape(-1, 2, D_VALUE)
    sequences.build(*(array.shape for array in rows))
    sequences.set_weights(attention.get_weights())
    expected, expected_weights = to_numpy(sequences(*rows, return_attention_scores=True))
    np.testing.assert_allclose(output.reshape(-1, 4, D), expected, atol=FLOAT32)
    np.testing.assert_allclose(weights.reshape(-1, 2, 4, 2), expected_weights, atol=FLOAT32)


@pytest.mark.parametrize(
    ("query_sizes", "value_sizes", "attention_axes", "mask_shape"),
    [
        ((3, 4), (3, 2), (2,), (4, 2)),
        ((3, 4), (3, 2), (2,), (B, 4, 2)),
        ((3, 4), (3, 2), (2,), (B, 3, 4, 2)),
        ((3, 4), (2, 5), (1, 2), (3, 4, 2, 5)),
        ((3, 4), (2, 5), (1, 2), (B, 3, 4, 2, 5)),
        ((3, 4), (2, 5), (1, 2), (B, 2, 3, 4, 2, 5)),
        ((5, 3, 4), (5, 2, 6), (2, 3), (3, 4, 2, 6)),
        ((5, 3, 4), (5, 2, 6), (2, 3), (B, 5, 3, 4, 2, 6)),
    ],
)
def test_attention_masks_over_chosen_axes_give_the_numbers_of_keras(
    query_sizes, value_sizes, attention_axes, mask_shape
):
    inputs, mask = over_axes(query_sizes, value_sizes), normal(*mask_shape) > -0.5
    mask[..., 0] = True  # Keras is wrong where nothing may be attended
    same_as_keras(inputs, {"attention_mask": mask}, num_heads=2, attention_axes=attention_axes)


def test_implicit_masks_give_the_numbers_of_keras_at_real_queries():
    embedding = keras.layers.Embedding(11, D, mask_zero=True)
    query, value = embedding(np.array([[4, 5, 0], [4, 0, 0]])), embedding(np.array([[6, 7, 0, 0, 9], [9, 0, 0, 0, 0]]))
    ours, theirs = MultiHeadAttention(N, H), keras.layers.MultiHeadAttention(N, H)
    ours.build(query.shape, value.shape)
    theirs.build(query.shape, value.shape)
    ours.set_weights(randomize(theirs).get_weights())
    output = ours(query, value)
    np.testing.assert_array_equal(to_numpy(output._keras_mask), [[True, True, False], [True, False, False]])
    real = np.array([[True, True, False], [True, False, False]])
    np.testing.assert_allclose(to_numpy(output)[real], to_numpy(theirs(query, value))[real], atol=FLOAT32)


@pytest.mark.parametrize("policy", ["float16", "mixed_float16", "mixed_bfloat16"])
def test_half_precision_is_as_close_to_float32_as_that_of_keras(policy, query, value):
    exact, errors = keras.layers.MultiHeadAttention(3, H), []
    exact.build(query.shape, value.shape)
    reference = to_numpy(randomize(exact)(query, value))
    for kind in (MultiHeadAttention, keras.layers.MultiHeadAttention):
        layer = kind(3, H, dtype=policy)
        layer.build(query.shape, value.shape)
        layer.set_weights(exact.get_weights())
        output = layer(query, value)
        assert output.dtype == keras.DTypePolicy(policy).compute_dtype
        errors.append(np.abs(to_numpy(output).astype("float32") - reference).mean())
    assert errors[0] < 2 * errors[1]  # forty numbers: the ratio itself is random


def test_the_weights_of_keras_fit_in_their_order(query, value, key):
    arguments = {"num_heads": N, "key_dim": H, "value_dim": E, "use_gate": True}
    ours, theirs = MultiHeadAttention(**arguments), keras.layers.MultiHeadAttention(**arguments)
    for layer in (ours, theirs):
        layer.build(query.shape, value.shape, key.shape)
    assert [weight.path.split("/", 1)[1] for weight in ours.weights] == [
        weight.path.split("/", 1)[1] for weight in theirs.weights
    ]
    assert [weight.shape for weight in ours.weights] == [weight.shape for weight in theirs.weights]


def test_every_argument_of_keras_is_accepted_in_its_place():
    import inspect

    ours, theirs = (
        list(inspect.signature(kind.__init__).parameters.values())[1:]
        for kind in (MultiHeadAttention, keras.layers.MultiHeadAttention)
    )
    assert [(each.name, each.default) for each in ours[: len(theirs) - 1]] == [
        (each.name, each.default) for each in theirs[:-1]
    ]
    ours, theirs = (
        list(inspect.signature(kind.call).parameters.values())
        for kind in (MultiHeadAttention, keras.layers.MultiHeadAttention)
    )
    assert [(each.name, each.default) for each in ours[: len(theirs)]] == [(each.name, each.default) for each in theirs]


def test_regularizers_constraints_and_initializers_reach_every_projection(query, value):
    arguments = {
        "use_gate": True,
        "kernel_initializer": keras.initializers.RandomNormal(stddev=0.5, seed=3),
        "bias_initializer": "ones",
        "kernel_regularizer": keras.regularizers.L2(0.3),
        "bias_regularizer": keras.regularizers.L1(0.2),
        "activity_regularizer": keras.regularizers.L2(0.1),
        "kernel_constraint": "non_neg",
        "bias_constraint": keras.constraints.MaxNorm(2.0),
    }
    ours, theirs = (
        kind(num_heads=N, key_dim=H, **arguments) for kind in (MultiHeadAttention, keras.layers.MultiHeadAttention)
    )
    np.testing.assert_allclose(ours(query, value), theirs(query, value), atol=FLOAT32)
    for our_weight, their_weight in zip(ours.weights, theirs.weights, strict=True):
        np.testing.assert_array_equal(to_numpy(our_weight.value), to_numpy(their_weight.value))
        assert type(our_weight.constraint) is type(their_weight.constraint)
    assert len(ours.losses) == len(theirs.losses)
    np.testing.assert_allclose(
        [float(loss) for loss in ours.losses], [float(loss) for loss in theirs.losses], rtol=FLOAT32
    )


def test_projections_do_not_start_equal():
    layer = MultiHeadAttention(2, H, use_gate=True, kernel_initializer=keras.initializers.TruncatedNormal(stddev=0.02))
    layer.build((B, T, 8), (B, S, 8))
    kernels = [to_numpy(dense.kernel.value).ravel() for dense in (*projections(layer), layer.gate_dense)]
    for index, kernel in enumerate(kernels):
        assert all(np.abs(kernel - other).max() > 1e-3 for other in kernels[:index])


# === Where Keras is wrong ===


@pytest.mark.parametrize("arguments", [{}, {"dropout": 0.1}], ids=str)
def test_a_query_with_nothing_to_attend_gets_the_bias_of_the_output(arguments, query, value):
    # D01
    layer = built(query, value, **arguments)
    mask = np.array([[False] * S, [True, True, False, True, True]])
    output, weights = to_numpy(layer(query, value, value_mask=mask, return_attention_scores=True))
    bias = to_numpy(layer.output_dense.bias.value)
    np.testing.assert_allclose(output[0], np.broadcast_to(bias, (T, D)), atol=FLOAT32)
    assert not weights[0].any()
    np.testing.assert_allclose(layer(query, value, value_mask=mask), output, atol=EXACT)
    kept = layer(query[1:], value[1:, [0, 1, 3, 4]])
    np.testing.assert_allclose(output[1:], kept, atol=FLOAT32)


@pytest.mark.parametrize("argument", ["query", "value"])
def test_gradients_of_a_query_with_nothing_to_attend_are_finite(argument, query, value):
    layer, arrays = built(query, value), {"query": query, "value": value}
    mask = np.array([[False] * S, [True, True, False, True, True]])
    found = gradient(
        lambda tensor: ops.sum(ops.square(layer(**{**arrays, argument: tensor}, value_mask=mask))), arrays[argument]
    )
    assert np.isfinite(found).all()
    assert not found[0].any()
    assert found[1].any()


def test_an_explicit_query_mask_is_honoured(query, value):
    layer = built(query, value)
    mask = np.array([[True, True, False], [True, False, False]])
    output, weights = to_numpy(layer(query, value, query_mask=mask, return_attention_scores=True))
    np.testing.assert_allclose(weights.sum(axis=-1), np.broadcast_to(mask[:, None], (B, N, T)), atol=FLOAT32)
    np.testing.assert_allclose(output[mask], to_numpy(layer(query, value))[mask], atol=FLOAT32)
    np.testing.assert_allclose(output[~mask], np.broadcast_to(layer.output_dense.bias.value, (3, D)), atol=FLOAT32)


@pytest.mark.parametrize("sliding_window", [None, 2])
@pytest.mark.parametrize(("T", "S"), [(2, 5)])
def test_a_causal_mask_lets_the_last_of_fewer_queries_see_the_last_key(sliding_window, T, S):
    query, value = normal(B, T, D), normal(B, S, D, seed=1)
    layer = built(query, value, sliding_window=sliding_window)
    output, weights = to_numpy(layer(query, value, use_causal_mask=True, return_attention_scores=True))
    mask = attention.causal(T, S)
    if sliding_window:
        mask = mask & (np.abs(np.arange(T)[:, None] + S - T - np.arange(S)) < sliding_window)
    expected = attention.multi_head_attention(query, value, value, mask, layer.get_weights())
    np.testing.assert_array_equal(weights > 0, np.broadcast_to(mask, (B, N, T, S)))
    np.testing.assert_allclose(output, expected[0], rtol=FLOAT32, atol=FLOAT32)


@pytest.mark.parametrize(("T", "S"), [(2, 5), (5, 5), (6, 4)])
def test_a_window_is_the_same_under_a_causal_mask_by_flag_and_by_hand(T, S):
    query, value = normal(B, T, D), normal(B, S, D, seed=1)
    layer = built(query, value, sliding_window=2)
    by_hand = layer(query, value, attention_mask=attention.causal(T, S))
    np.testing.assert_allclose(layer(query, value, use_causal_mask=True), by_hand, atol=FLOAT32)


@pytest.mark.parametrize(
    "names", [("query_mask", "value_mask"), ("value_mask",), ("key_mask",), ("query_mask",)], ids=str
)
def test_a_window_goes_by_the_real_positions_of_one_sequence(names):
    inputs, mask = (
        normal(2, 6, D),
        np.array([[False, False, True, True, True, True], [True, False, True, True, False, True]]),
    )
    layer = built(inputs, inputs, sliding_window=2)
    alone = np.stack([row[real] for row, real in zip(inputs, mask, strict=True)])  # (2, 4, D)
    _, expected = layer(alone, alone, return_attention_scores=True)
    masks = dict.fromkeys(names, mask)
    if names == ("query_mask",):
        masks["attention_mask"] = mask[:, None]  # says what is seen, and moves no position
    _, weights = layer(inputs, inputs, return_attention_scores=True, **masks)
    for row, real in enumerate(mask):
        np.testing.assert_allclose(to_numpy(weights)[row][:, real][:, :, real], to_numpy(expected)[row], atol=FLOAT32)


def test_causal_with_left_padding_gives_the_first_query_nothing():
    inputs = normal(1, 4, 8)
    layer = built(inputs, inputs)
    mask = np.array([[False, True, True, True]])
    _, weights = layer(inputs, inputs, value_mask=mask, use_causal_mask=True, return_attention_scores=True)
    weights = to_numpy(weights)[0]
    assert not weights[:, 0].any()
    np.testing.assert_allclose(weights[:, 1], [[0.0, 1.0, 0.0, 0.0]] * N, atol=FLOAT32)


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_a_causal_output_does_not_change_with_the_future(dropout):
    # D05
    inputs = normal(1, 4, 8)
    changed = inputs.copy()
    changed[:, 3] = 100.0
    layer = built(inputs, inputs, dropout=dropout)
    output, weights = to_numpy(layer(inputs, inputs, use_causal_mask=True, return_attention_scores=True))
    np.testing.assert_allclose(layer(changed, changed, use_causal_mask=True)[:, :3], output[:, :3], atol=EXACT)
    assert not np.triu(weights, 1).any()
    np.testing.assert_allclose(weights[0, :, 0], [[1.0, 0.0, 0.0, 0.0]] * N, atol=FLOAT32)


@pytest.mark.parametrize("garbage", [np.nan, np.inf, 1e30])
@pytest.mark.parametrize("use_gate", [False, True])
def test_masked_values_have_no_influence_whatever_they_hold(garbage, use_gate):
    # D06
    query, value = normal(1, 3, 8), normal(1, 4, 8, seed=1)
    value[:, 3] = garbage
    mask = np.array([[True, True, True, False]])
    layer = built(query, value, use_gate=use_gate)
    output, weights = to_numpy(layer(query, value, value_mask=mask, return_attention_scores=True))
    expected = to_numpy(layer(query, value[:, :3], return_attention_scores=True))
    np.testing.assert_allclose(output, expected[0], atol=FLOAT32)
    np.testing.assert_allclose(weights[..., :3], expected[1], atol=FLOAT32)
    np.testing.assert_allclose(layer(query, value, value_mask=mask), output, atol=EXACT)
    found = gradient(lambda value: ops.sum(ops.square(layer(query, value, value_mask=mask))), value)
    assert np.isfinite(found).all()
    assert not found[:, 3].any()


def test_values_that_every_head_masks_have_no_influence(query):
    value = normal(B, S, D, seed=1)
    value[:, 4] = np.nan
    mask = normal(B, N, T, S) > -0.5
    mask[..., 4] = False
    layer = built(query, value)
    expected = layer(query, value[:, :4], attention_mask=mask[..., :4])
    np.testing.assert_allclose(layer(query, value, attention_mask=mask), expected, atol=FLOAT32)


def test_values_that_only_masked_queries_would_see_have_no_influence():
    query, value = normal(1, 4, 8), normal(1, 4, 8, seed=1)
    layer = built(query, value)
    expected = layer(query[:, :3], value[:, :3], use_causal_mask=True)
    value[:, 3] = np.nan
    output = layer(query, value, query_mask=np.array([[True, True, True, False]]), use_causal_mask=True)
    np.testing.assert_allclose(output[:, :3], expected, atol=FLOAT32)


def test_values_outside_of_every_window_have_no_influence():
    query, value = normal(1, 3, 8), normal(1, 6, 8, seed=1)
    layer = built(query, value, sliding_window=2)
    expected = layer(query, value[:, 2:])
    value[:, :2] = np.nan
    np.testing.assert_allclose(layer(query, value), expected, atol=FLOAT32)


def test_scores_beyond_half_precision_stay_finite():
    # D02
    query = np.full((1, 2, 64), 60.0, "float32")
    layer = MultiHeadAttention(1, 64, use_bias=False, score="dot", dtype="float16")
    layer.build(query.shape, query.shape)
    for dense in projections(layer):
        dense.set_weights([np.eye(64).reshape(dense.kernel.shape)])
    assert to_numpy(layer(query, query)).tolist() == [[[60.0] * 64] * 2]


@pytest.mark.parametrize("policy", ["float32", "mixed_float16"])
def test_symbolic_weights_have_the_shape_and_type_of_the_tensor(policy):
    # D12
    query, key = keras.Input((3, 5)), keras.Input((7, 5))
    layer = MultiHeadAttention(2, H, dtype=policy)
    output, weights = layer(query, key, return_attention_scores=True)
    assert (output.shape, weights.shape) == ((None, 3, 5), (None, 2, 3, 7))
    assert output.dtype == weights.dtype == keras.DTypePolicy(policy).compute_dtype
    model = keras.Model([query, key], [output, weights])
    output, weights = model([normal(1, 3, 5), normal(1, 7, 5)])
    assert (output.shape, weights.shape) == ((1, 3, 5), (1, 2, 3, 7))


def test_weights_are_those_before_dropout(query, value):
    # D13
    layer = built(query, value, dropout=0.5, seed=1)
    output, weights = to_numpy(layer(query, value, training=True, return_attention_scores=True))
    plain_output, plain_weights = to_numpy(layer(query, value, training=False, return_attention_scores=True))
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0, atol=FLOAT32)
    np.testing.assert_allclose(weights, plain_weights, atol=FLOAT32)
    assert np.abs(output - plain_output).max() > 0.1


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="only TensorFlow has ragged tensors")
def test_ragged_tensors_are_rejected_with_the_way_out():
    # D17
    import tensorflow as tf

    ragged = tf.RaggedTensor.from_row_lengths(normal(8, D), [3, 5])
    with pytest.raises(TypeError, match=r"[Rr]agged.*to_tensor\(\).*mask"):
        MultiHeadAttention(N, H)(ragged, ragged)


# === Padding masks over several axes ===


@pytest.mark.parametrize("attention_axes", [(1, 2), (2,)])
def test_padding_masks_of_inputs_of_rank_four(attention_axes):
    query, value = normal(B, 3, 4, D), normal(B, 3, 5, D, seed=1)
    masks = {"query_mask": normal(B, 3, 4) > -0.5, "value_mask": normal(B, 3, 5, seed=1) > -0.5}
    layer = built(query, value, num_heads=2, attention_axes=attention_axes)
    output, weights = to_numpy(layer(query, value, **masks, return_attention_scores=True))
    if attention_axes == (1, 2):
        flat = layer.__class__(2, H)
        flat.build((B, 12, D), (B, 15, D))
        flat.set_weights(layer.get_weights())
        flat_masks = {name: mask.reshape(B, -1) for name, mask in masks.items()}
        inputs = query.reshape(B, 12, D), value.reshape(B, 15, D)
        expected = to_numpy(flat(*inputs, **flat_masks, return_attention_scores=True))
        np.testing.assert_allclose(output.reshape(B, 12, D), expected[0], atol=FLOAT32)
        np.testing.assert_allclose(weights.reshape(B, 2, 12, 15), expected[1], atol=FLOAT32)
    else:
        for x in range(3):
            mask = masks["query_mask"][:, x, :, None] & masks["value_mask"][:, x, None]
            expected = attention.multi_head_attention(
                query[:, x], value[:, x], value[:, x], mask[:, None], layer.get_weights()
            )
            np.testing.assert_allclose(output[:, x], expected[0], rtol=FLOAT32, atol=FLOAT32)
            np.testing.assert_allclose(weights[:, x], expected[1], atol=FLOAT32)


# === Fine-tuning and quantization through Keras' own projections ===


def test_lora_trains_the_projections_only(query, value):
    layer = built(query, value, use_gate=True, use_bias=False)
    expected = to_numpy(layer(query, value))
    for dense in (layer.query_dense, layer.key_dense, layer.value_dense):
        dense.enable_lora(2)
    assert (len(layer.trainable_variables), len(layer.non_trainable_variables)) == (8, 3)
    np.testing.assert_allclose(layer(query, value), expected, atol=FLOAT32)


@pytest.mark.parametrize("use_gate", [False, True])
def test_sub_layers_quantize_to_int8(use_gate):
    query, value = normal(B, T, D) / 4, normal(B, S, D, seed=1) / 4
    layer = MultiHeadAttention(3, 8, use_bias=False, use_gate=use_gate)
    layer.build(query.shape, value.shape)
    expected = to_numpy(compiled(MultiHeadAttention.__call__, layer)(query, value))
    denses = [*projections(layer), *([layer.gate_dense] if use_gate else [])]
    for dense in denses:
        dense.quantize("int8")
        assert keras.backend.standardize_dtype(dense.get_weights()[0].dtype) == "int8"
    output = to_numpy(compiled(MultiHeadAttention.__call__, layer)(query, value))
    assert np.square(output - expected).mean() < 1e-4


def test_a_dtype_policy_map_reaches_the_projections(query, value):
    policies = keras.dtype_policies.DTypePolicyMap()
    for name in ("query", "key", "value"):
        policies[f"mha/{name}"] = keras.dtype_policies.QuantizedDTypePolicy("int8", "float32")
    layer = MultiHeadAttention(3, 8, use_bias=False, dtype=policies, name="mha")
    layer.build(query.shape, value.shape)
    assert [dense.quantization_mode for dense in projections(layer)] == ["int8", "int8", "int8", None]


def test_a_dtype_policy_map_of_half_precision_reaches_the_projections(query, value):
    policies = keras.dtype_policies.DTypePolicyMap(default_policy="float32")
    policies["mha/output"] = keras.DTypePolicy("mixed_bfloat16")
    policies["mha/key"] = keras.DTypePolicy("mixed_bfloat16")
    layer = MultiHeadAttention(3, 8, dtype=policies, name="mha")
    layer.build(query.shape, value.shape)
    assert layer.query_dense.compute_dtype == "float32"
    assert layer.key_dense.compute_dtype == "bfloat16"


# === Flash attention ===


def test_flash_attention_has_no_dropout():
    with pytest.raises(
        ValueError, match=r"Flash attention has no dropout. Received dropout=0.1. Leave one of the two out"
    ):
        MultiHeadAttention(N, H, flash_attention=True, dropout=0.1)


@pytest.mark.parametrize("arguments", [{"score": "additive"}, {"alignment": FirstPosition()}], ids=str)
def test_flash_attention_computes_nothing_but_scaled_dot_products_and_the_softmax(arguments):
    with pytest.raises(
        ValueError, match=r'Flash attention computes score="scaled_dot" or "dot" with alignment="softmax" only'
    ):
        MultiHeadAttention(N, H, flash_attention=True, **arguments)


def test_flash_attention_returns_no_weights(query, value):
    layer = MultiHeadAttention(N, H, flash_attention=True)
    with pytest.raises(ValueError, match=r"never holds the attention weights.* `flash_attention=True`"):
        layer(query, value, return_attention_scores=True)


# === Empty ===


@pytest.mark.parametrize(("B", "T", "S"), [(0, 3, 5), (2, 0, 5), (2, 3, 0)])
@pytest.mark.parametrize("causal", [False, True])
def test_empty_batches_and_lengths(B, T, S, causal):
    query, value = normal(B, T, D), normal(B, S, D)
    layer = built(query, value)
    output, weights = to_numpy(layer(query, value, use_causal_mask=causal, return_attention_scores=True))
    assert (output.shape, weights.shape) == ((B, T, D), (B, N, T, S))
    if S == 0:
        np.testing.assert_allclose(output, np.broadcast_to(layer.output_dense.bias.value, output.shape), atol=FLOAT32)


# === Errors ===


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"num_heads": 0}, ValueError, r"`num_heads` must be a positive integer. Received: 0\."),
        ({"num_heads": 1.5}, ValueError, r"`num_heads` must be a positive integer. Received: 1.5 of type float\."),
        ({"key_dim": -2}, ValueError, r"`key_dim` must be a positive integer. Received: -2\."),
        ({"value_dim": 0}, ValueError, r"`value_dim` must be a positive integer. Received: 0\."),
        ({"sliding_window": 0}, ValueError, r"`sliding_window` must be a positive integer. Received: 0\."),
        ({"sliding_window": -3}, ValueError, r"`sliding_window` must be a positive integer. Received: -3\."),
        ({"dropout": 1.5}, ValueError, r"`dropout` must be a number in \[0, 1\). Received: 1.5\."),
        (
            {"output_shape": 8.0},
            ValueError,
            r"`output_shape` must be an integer of 1 or more, a list .* Received: 8.0\.",
        ),
        (
            {"attention_axes": "1"},
            ValueError,
            r"`attention_axes` must be an integer, a list or tuple .* Received: '1'\.",
        ),
        ({"score": "scaled"}, ValueError, r'Unknown score: "scaled".*Did you mean "scaled_dot"'),
    ],
    ids=str,
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        MultiHeadAttention(**{"num_heads": N, "key_dim": H, **arguments})


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((T, D), (S, D)), r"`query` must have at least 3 axes.* Received shape \(3, 7\)"),
        (((B, T, D), (B, 2, S, D)), r"the same number of axes.* \(2, 3, 7\).* \(2, 2, 5, 7\)"),
        (((B, T, D), (3, S, D)), r"agree in every axis left of the last two.* \(2, 3, 7\).* \(3, 5, 7\)"),
        (((B, T, D), (B, S, D), (B, 4, D)), r"the same length S.* \(2, 4, 7\) \(S=4\).* \(2, 5, 7\) \(S=5\)"),
        (((B, 4, 2, 3, 8), (B, 1, 1, 5, 8), (B, 1, 15, 5, 2)), r"the same length S.*\(S=15\).*\(S=1\)"),
    ],
)
def test_shapes_that_do_not_fit(shapes, message):
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(N, H)(*(normal(*shape) for shape in shapes))
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(N, H).compute_output_shape(*shapes)


def test_an_unknown_width_is_named():
    with pytest.raises(ValueError, match=r"`value` must have a known last axis.* \(None, 5, None\)"):
        MultiHeadAttention(N, H)(keras.Input((3, 7)), keras.Input((5, None)))


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        ({"query_mask": (B, S)}, r"`query_mask` must have one entry for each position, shape \(2, 3\)"),
        ({"value_mask": (B, T)}, r"`value_mask` must have one entry for each position, shape \(2, 5\)"),
        ({"key_mask": (3, S)}, r"`key_mask` must have one entry for each position, shape \(2, 5\)"),
        ({"attention_mask": (B, S)}, r"`attention_mask` must .* with T=3 and S=5 .* shape \(2, 5\).* as `value_mask`"),
        ({"attention_mask": (S,)}, r"`attention_mask` must have two to four axes .* Received shape \(5,\)"),
    ],
)
def test_masks_that_do_not_fit(masks, message, query, value, key):
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(N, H)(query, value, key, **{name: np.ones(shape, bool) for name, shape in masks.items()})


@pytest.mark.parametrize("shape", [(3, T, S), (B, 2, T, S), (1, 1, 1, T, S)])
def test_the_leading_axes_of_an_attention_mask_must_fit(shape, query, value):
    with pytest.raises(ValueError, match=r"`attention_mask` must .*Received shape \("):
        MultiHeadAttention(N, H)(query, value, attention_mask=np.ones(shape, bool))


@pytest.mark.parametrize("masks", [{"query_mask": (B, 4)}, {"attention_mask": (12, 15)}], ids=str)
def test_masks_of_inputs_of_rank_four_that_do_not_fit(masks):
    with pytest.raises(ValueError, match=rf"`{next(iter(masks))}` must .*Received shape \("):
        MultiHeadAttention(2, H)(
            normal(B, 3, 4, D), normal(B, 3, 5, D), **{name: np.ones(shape, bool) for name, shape in masks.items()}
        )


@pytest.mark.parametrize("attention_axes", [5, -5, 0, 3, -1, (1, 1)])
def test_attention_axes_must_lie_between_the_batch_and_the_features(attention_axes):
    layer = MultiHeadAttention(2, H, attention_axes=attention_axes)
    with pytest.raises(ValueError, match=r"`attention_axes` must .* Received"):
        layer(normal(B, 3, 4, D), normal(B, 3, 4, D))


@pytest.mark.parametrize("output_shape", [None, (3, 1)])
def test_an_activity_regularizer_leaves_biases_on_their_axes_where_heads_of_one_feature_are_as_many_as_positions(
    output_shape,
):
    options = {"output_shape": output_shape, "bias_initializer": "random_normal"}
    plain = MultiHeadAttention(num_heads=3, key_dim=1, **options)
    regularized = MultiHeadAttention(num_heads=3, key_dim=1, activity_regularizer="l2", **options)
    inputs = normal(2, 3, 7)
    expected = to_numpy(plain(inputs, inputs))
    regularized.build(inputs.shape, inputs.shape)
    regularized.set_weights(plain.get_weights())
    np.testing.assert_allclose(to_numpy(regularized(inputs, inputs)), expected, atol=FLOAT32)
