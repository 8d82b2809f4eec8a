"""Half precision: finite, of the right type, near float32; scores that overflow it do no harm."""

import functools

import keras
import numpy as np
import pytest
from contract.calls import built, results
from contract.cases import CASES, ONE_OF_EACH, WEIGHTS_CASES, each
from tolerances import EXACT, HALF

from keras_attention import layers, scores
from keras_attention.ops import LOWEST

POLICIES = pytest.mark.parametrize("policy", HALF)
SCORES = pytest.mark.parametrize("score", [case for case in CASES if issubclass(case.kind, scores.Score)], ids=str)
FLOAT16_CASES = tuple(case for case in ONE_OF_EACH if case in WEIGHTS_CASES)


@functools.cache
def in_policy(case, policy):
    """The layer of a case under a dtype policy, with the weights of the float32 layer."""
    layer = case.make(dtype=policy)
    results(layer, case.arrays())
    layer.set_weights(built(case).get_weights())
    return layer


@each(ONE_OF_EACH)
@POLICIES
def test_mixed_precision_is_finite_and_close_to_float32(case, policy):
    layer = in_policy(case, policy)
    arguments = case.masked(case.arrays(), case.padding_masks())
    options = {"return_attention_scores": True} if case.weights else {}
    outputs = keras.tree.flatten(results(layer, arguments, **options))
    expected = keras.tree.flatten(results(built(case), arguments, **options))
    for output, reference in zip(outputs, expected, strict=True):
        assert output.dtype.name == (case.output_type or keras.DTypePolicy(policy).compute_dtype)
        output = output.astype("float32")
        assert np.isfinite(output).all()
        never = (reference == np.float32(LOWEST)) & (
            output == np.finfo("float16").min
        )  # float16 has a lowest of its own
        np.testing.assert_allclose(output[~never], reference[~never], atol=HALF[policy], rtol=HALF[policy])


@each(ONE_OF_EACH)
@POLICIES
def test_mixed_precision_keeps_float32_weights(case, policy):
    assert {weight.dtype for weight in in_policy(case, policy).trainable_weights} <= {"float32"}


LAYERS_OF_FLOATS = [case for case in ONE_OF_EACH if case.kind in vars(layers).values() and not case.vocabularies]


@each(LAYERS_OF_FLOATS)
def test_integers_are_taken_as_floats(case):
    integers = {name: (10 * array).astype("int32") for name, array in case.arrays().items()}
    floats = {name: array.astype("float32") for name, array in integers.items()}
    outputs, expected = (keras.tree.flatten(results(built(case), arguments)) for arguments in (integers, floats))
    for output, reference in zip(outputs, expected, strict=True):
        assert output.dtype == reference.dtype
        np.testing.assert_allclose(output, reference, atol=EXACT, rtol=EXACT)


# A dot product of -1600: an added mask constant would overflow float16 (D02).
MASKS = {"nothing": ([False, False, False], [0.0, 0.0, 0.0]), "two": ([True, True, False], [0.5, 0.5, 0.0])}


@SCORES
@pytest.mark.parametrize(("mask", "expected"), MASKS.values(), ids=MASKS)
def test_float16_mask_never_overflows(score, mask, expected):
    attention = layers.SoftAttention(score=score.make(dtype="float16"), dtype="float16")
    query, value = np.full((1, 2, 4), -20.0, "float16"), np.full((1, 3, 4), 20.0, "float16")
    arguments = {"query": query, "value": value, "value_mask": np.array([mask])}
    context, weights = results(attention, arguments, return_attention_scores=True)
    np.testing.assert_allclose(weights, [[expected, expected]], atol=EXACT)
    np.testing.assert_allclose(context, 20.0 * sum(expected), atol=EXACT)


@SCORES
def test_float16_dot_product_beyond_its_range_stays_finite(score):
    attention = layers.SoftAttention(score=score.make(dtype="float16"), dtype="float16")
    query, value = np.full((1, 2, 64), 60.0, "float16"), np.full((1, 3, 64), 60.0, "float16")  # 60·60·64 = 230400
    context, weights = results(attention, {"query": query, "value": value}, return_attention_scores=True)
    np.testing.assert_allclose(context, 60.0, rtol=1e-3)
    np.testing.assert_allclose(weights, 1 / 3, rtol=1e-3)
    assert np.isfinite(results(score.make(dtype="float16"), {"query": query, "key": value})).all()


@each(FLOAT16_CASES)
@pytest.mark.parametrize("masked", [False, True], ids=["full", "padding"])
def test_float16_scores_of_many_thousands_leave_the_layer_finite(case, masked):
    layer = in_policy(case, "mixed_float16")
    arrays = {name: 500 * array for name, array in case.arrays().items()}
    arguments = case.masked(arrays, case.padding_masks() if masked else case.full_masks())
    for output in keras.tree.flatten(results(layer, arguments, return_attention_scores=True)):
        assert np.isfinite(output).all()
