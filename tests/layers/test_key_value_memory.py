import keras
import numpy as np
import pytest
from keras import ops
from reference import attention, memories
from reference.arrays import normal, to_numpy
from reference.gradients import gradient
from tolerances import EXACT, FLOAT32, HALF

from keras_attention.alignments.estimators import Recorder
from keras_attention.layers import KeyValueAttention, KeyValueMemory

B, T, S, D, E, HOPS = 2, 3, 5, 7, 11, 3


@pytest.fixture
def query():
    return normal(B, T, D, seed=1)


@pytest.fixture
def value():
    return normal(B, S, D, seed=2)


@pytest.fixture
def key():
    return normal(B, S, D, seed=3)


def read(layer, *arguments, **options):
    """The last query and the weights, after checking that the query alone is the same."""
    output, weights = to_numpy(layer(*arguments, **options, return_attention_scores=True))
    np.testing.assert_allclose(layer(*arguments, **options), output, atol=EXACT)
    return output, weights


# === The formula ===


def test_two_hops_by_hand():
    """The question finds the first entry, whose value is the key of the second; its value is the answer."""
    question, key = np.array([[[50.0, 0, 0, 0]]], "float32"), 50 * np.eye(4, dtype="float32")[None, :3]
    value = np.array([[[-50.0, 50, 0, 0], [0, -50, 0, 7], [1, 1, 1, 1]]], "float32")
    answer, weights = read(KeyValueMemory(num_hops=2, kernel_initializer="identity"), question, value, key)
    np.testing.assert_allclose(weights, [[[[1, 0, 0]], [[0, 1, 0]]]], atol=FLOAT32)
    np.testing.assert_allclose(answer, [[[0, 0, 0, 7]]], atol=FLOAT32)


def test_hops_equal_the_loop(query, value, key):
    layer = KeyValueMemory(num_hops=HOPS)
    mask = normal(B, T, S) > -0.5
    output, weights = read(layer, query, value, key, attention_mask=mask)
    expected = memories.memory(query, key, value, mask, layer.get_weights())
    assert len(layer.get_weights()) == HOPS
    np.testing.assert_allclose(output, expected[0], atol=FLOAT32)
    np.testing.assert_allclose(weights, np.stack(expected[1], axis=1), atol=FLOAT32)


def test_tied_hops_share_one_kernel(query, value, key):
    layer = KeyValueMemory(num_hops=HOPS, tie_hops=True)
    output = to_numpy(layer(query, value, key))
    (kernel,) = layer.get_weights()
    expected = memories.memory(query, key, value, None, [kernel] * HOPS)
    np.testing.assert_allclose(output, expected[0], atol=FLOAT32)


def test_all_hops_share_one_score(query, value):
    key = normal(B, S, E)
    layer = KeyValueMemory(num_hops=HOPS, score="bilinear")
    output = to_numpy(layer(query, value, key))
    weights = {weight.name: to_numpy(weight.value) for weight in layer.weights}
    (score_kernel,) = (array for name, array in weights.items() if not name.startswith("hop_kernel"))
    kernels = [array for name, array in weights.items() if name.startswith("hop_kernel")]
    expected = memories.memory(query, key, value, None, kernels, attention.bilinear, score_kernel)
    np.testing.assert_allclose(output, expected[0], atol=FLOAT32)


def test_the_kernels_of_the_hops_start_different(query, value):
    layer = KeyValueMemory(num_hops=2)
    layer(query, value)
    first, second = layer.get_weights()
    assert np.abs(first - second).max() > FLOAT32


@pytest.mark.parametrize("alignment", ["softmax", "sparsemax"])
def test_one_hop_is_key_value_attention_added_to_the_query_times_the_kernel(alignment, query, value, key):
    layer = KeyValueMemory(num_hops=1, alignment=alignment)
    output, weights = read(layer, query, value, key)
    context, expected = to_numpy(
        KeyValueAttention(score="dot", alignment=alignment)(query, value, key, return_attention_scores=True)
    )
    np.testing.assert_allclose(output, (query + context) @ layer.get_weights()[0], atol=FLOAT32)
    np.testing.assert_allclose(weights[:, 0], expected, atol=FLOAT32)


def test_every_hop_of_a_hard_memory_makes_a_choice_of_its_own(query, value, key):
    layer = KeyValueMemory(num_hops=HOPS, alignment="sampled", seed=3)
    with Recorder() as recorder:
        _, weights = to_numpy(layer(query, value, key, return_attention_scores=True, training=True))
    np.testing.assert_allclose(
        np.sort(weights, axis=-1)[..., -2:], np.broadcast_to([0, 1], (B, HOPS, T, 2)), atol=EXACT
    )
    log_prob = np.zeros(B)
    for hop, kernel in enumerate(layer.get_weights()):
        soft = attention.softmax(attention.scores(query, key, attention.dot))
        log_prob += (weights[:, hop] * np.log(soft)).sum(axis=(1, 2))
        query = (query + attention.combine(weights[:, hop], value)) @ kernel
    np.testing.assert_allclose(recorder.log_prob(B), log_prob, rtol=FLOAT32)


def test_every_axis_left_of_the_last_two_is_batch():
    query, value, masks = normal(B, E, T, D), normal(B, E, S, D), {"value_mask": normal(B, E, S) > -0.5}
    layer = KeyValueMemory(num_hops=2)
    output, weights = read(layer, query, value, **masks)
    assert (output.shape, weights.shape) == ((B, E, T, D), (B, E, 2, T, S))
    for n in range(E):
        expected = read(layer, query[:, n], value[:, n], value_mask=masks["value_mask"][:, n])
        np.testing.assert_allclose(output[:, n], expected[0], atol=FLOAT32)
        np.testing.assert_allclose(weights[:, n], expected[1], atol=FLOAT32)


# === Masks ===


def test_masked_entries_have_no_influence_whatever_they_hold(query, value, key):
    mask = np.array([[True, False, True, True, False], [False, True, True, True, True]])
    layer = KeyValueMemory(num_hops=HOPS)
    output, weights = read(layer, query, np.where(mask[..., None], value, np.nan), key, value_mask=mask)
    for b in range(B):
        cut = read(layer, query[b : b + 1], value[b : b + 1, mask[b]], key[b : b + 1, mask[b]])
        np.testing.assert_allclose(output[b], cut[0][0], atol=FLOAT32)
        np.testing.assert_allclose(weights[b][..., mask[b]], cut[1][0], atol=FLOAT32)


def test_a_query_with_nothing_to_attend_adds_a_zero_context(query, value, key):
    layer = KeyValueMemory(num_hops=2)
    output, weights = read(layer, query, value, key, value_mask=np.array([[False] * S, [True] * S]))
    first, second = layer.get_weights()
    np.testing.assert_allclose(output[0], query[0] @ first @ second, atol=FLOAT32)
    assert not weights[0].any()
    np.testing.assert_allclose(output[1:], layer(query[1:], value[1:], key[1:]), atol=FLOAT32)


def test_a_masked_query_is_zero_whatever_it_holds(query, value):
    mask = np.array([[True, False, True], [False] * T])
    layer = KeyValueMemory(num_hops=2)
    factors = normal(B, T, D, seed=5)
    expected = to_numpy(layer(query, value))
    query[~mask] = np.inf
    output, _ = read(layer, query, value, query_mask=mask)
    np.testing.assert_allclose(output, np.where(mask[..., None], expected, 0.0), atol=FLOAT32)
    found = gradient(lambda query: ops.sum(layer(query, value, query_mask=mask) * factors), query)
    assert np.isfinite(found).all()
    assert not found[~mask].any()


def test_the_implicit_masks_are_honoured_and_that_of_the_query_travels():
    embedding = keras.layers.Embedding(11, D, mask_zero=True)
    ids = np.array([[4, 5, 0], [4, 0, 0]])
    facts = np.array([[6, 7, 8, 0, 0], [9, 0, 0, 0, 0]])
    layer = KeyValueMemory()
    output = layer(embedding(ids), embedding(facts))
    expected = layer(to_numpy(embedding(ids)), to_numpy(embedding(facts)), query_mask=ids != 0, value_mask=facts != 0)
    np.testing.assert_allclose(output, expected, atol=EXACT)
    np.testing.assert_array_equal(to_numpy(output._keras_mask), ids != 0)


# === Precision, compilation ===


@pytest.mark.parametrize("policy", HALF)
def test_half_precision_is_near_float32(policy, query, value, key):
    half, full = (KeyValueMemory(num_hops=2, dtype=dtype) for dtype in (policy, "float32"))
    full(query, value, key)
    half(query, value, key)
    half.set_weights(full.get_weights())
    output, expected = (to_numpy(layer(query / 3, value / 3, key / 3)) for layer in (half, full))
    assert output.dtype.name == policy.removeprefix("mixed_")
    np.testing.assert_allclose(output.astype("float32"), expected, atol=HALF[policy])


# === Errors ===


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((B, T, D), (B, S, E)), r"same width D.*\(2, 3, 7\) \(D=7\).*\(2, 5, 11\) \(D=11\)"),
        (((B, T, D), (B, S, D), (B, S, E)), r"DotScore needs .*\(D=7\).*\(D=11\)"),
        (((B, T, D), (B, S, D), (B, 4, D)), r"the same length S"),
    ],
)
def test_shapes_that_do_not_fit(shapes, message):
    with pytest.raises(ValueError, match=message):
        KeyValueMemory()(*(normal(*shape) for shape in shapes))
    with pytest.raises(ValueError, match=message):
        KeyValueMemory()(*(keras.Input(batch_shape=shape) for shape in shapes))


def test_the_number_of_hops_is_a_positive_integer():
    with pytest.raises(ValueError, match=r"`num_hops` must be a positive integer. Received: 0"):
        KeyValueMemory(num_hops=0)
