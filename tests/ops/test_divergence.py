"""Scores that are no finite numbers: one rule for softmax and all alignments."""

import functools

import keras
import numpy as np
import pytest
from compiled import whole
from keras import ops
from reference.arrays import normal, to_numpy
from tolerances import EXACT, FLOAT32

from keras_attention import alignments
from keras_attention.ops import LOWEST

B, n = 2, 3
BAD = (1, 1, 2)  # sentence 1, query 1, position 2

CHOICES = ("softmax", "sparsemax", "entmax", "sampled")  # of one position by each query
ON_OFF = ("sigmoid", "linear_chain", "monotonic")
ALL = (*CHOICES, *ON_OFF, "dependency_tree")
LOST = {"monotonic": [(1, 1), (1, 2)], "dependency_tree": [(1, 0), (1, 1), (1, 2)]}  # rows, by default only (1, 1)


@functools.cache
def built(name):
    alignment = alignments.get(name)
    alignment.build((B, n, n))
    return whole(alignment)


def scores_with(value):
    scores = normal(B, n, n)
    scores[BAD] = value
    return scores


def lost_rows(name):
    lost = np.zeros((B, n), bool)
    lost[tuple(zip(*LOST.get(name, [(1, 1)]), strict=True))] = True
    return lost


def assert_only_lost_rows_have_nan(name, found, clean):
    lost = lost_rows(name)
    assert np.isnan(found[lost]).any(axis=-1).all()  # softmax of oneDNN has it only where it comes from
    np.testing.assert_allclose(found[~lost], clean[~lost], atol=FLOAT32)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ALL)
def test_nan_and_inf_make_the_weights_of_their_row_nan(name, value):
    found, clean = (to_numpy(built(name).marginals(ops.array(scores_with(each)))) for each in (value, 0.0))
    assert_only_lost_rows_have_nan(name, found, clean)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="torch has no XLA, on JAX all tests use it")
@pytest.mark.parametrize("name", ALL)
def test_nan_and_inf_make_the_weights_of_their_row_nan_under_xla(name):
    import tensorflow as tf

    compiled = tf.function(built(name).marginals, jit_compile=True)
    nan, inf, clean = (to_numpy(compiled(ops.array(scores_with(value)))) for value in (np.nan, np.inf, 0.0))
    assert_only_lost_rows_have_nan(name, nan, clean)
    assert_only_lost_rows_have_nan(name, inf, clean)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ALL)
def test_mode_and_sample_of_a_row_with_nan_or_inf_are_nan(name, value):
    alignment, scores = built(name), ops.array(scores_with(value))
    for selection in (alignment.mode(scores), alignment.sample(scores, seed=3)):
        np.testing.assert_array_equal(np.isnan(to_numpy(selection)).all(axis=-1), lost_rows(name))


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ALL)
def test_log_probability_and_entropy_of_a_row_with_nan_or_inf_are_nan(name, value):
    alignment, scores = built(name), ops.array(scores_with(value))
    selection = alignment.mode(ops.array(scores_with(0.0)))
    values = [alignment.log_prob(selection, scores), alignment.entropy(scores)]
    if hasattr(alignment, "log_partition"):
        values.append(alignment.log_partition(scores))
    lost = lost_rows(name).any(axis=-1) if name in LOST else lost_rows(name)
    for each in values:
        np.testing.assert_array_equal(np.isnan(to_numpy(each)), lost)


@pytest.mark.parametrize("name", ALL)
def test_what_stands_where_it_is_masked_never_matters(name):
    alignment, mask = built(name), np.ones((B, n, n), bool)
    mask[BAD] = False
    junk, clean = (ops.array(scores_with(value)) for value in (np.nan, 0.0))
    for function in (alignment.marginals, alignment.mode, alignment.entropy):
        np.testing.assert_allclose(to_numpy(function(junk, mask)), to_numpy(function(clean, mask)), atol=EXACT)


@pytest.mark.parametrize("name", ALL)
def test_minus_inf_is_never_chosen(name):
    alignment, mask = built(name), np.ones((B, n, n), bool)
    mask[BAD] = False
    never, masked = ops.array(scores_with(-np.inf)), ops.array(scores_with(0.0))
    np.testing.assert_allclose(
        to_numpy(alignment.marginals(never)), to_numpy(alignment.marginals(masked, mask)), atol=FLOAT32
    )
    np.testing.assert_allclose(
        to_numpy(alignment.entropy(never)), to_numpy(alignment.entropy(masked, mask)), atol=FLOAT32
    )
    log_prob = to_numpy(alignment.log_prob(alignment.mode(masked, mask), never))
    np.testing.assert_allclose(
        log_prob, to_numpy(alignment.log_prob(alignment.mode(masked, mask), masked, mask)), atol=FLOAT32
    )


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", ALL)
def test_with_nothing_but_minus_inf_to_choose_of_a_row_is_nan_and_otherwise_zero(name, masked):
    scores, mask = normal(B, n, n), np.ones((B, n, n), bool)
    scores[1, 1], mask[1, 1, 0] = -np.inf, not masked
    weights = to_numpy(built(name).marginals(ops.array(scores), mask))[1, 1]
    expected = [0.0, 0.0, 0.0] if name in ON_OFF else np.where(mask[1, 1], np.nan, 0.0)
    np.testing.assert_array_equal(weights, expected)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", CHOICES)
def test_a_row_wholly_below_the_lowest_score_is_one_of_equals(name, masked):
    scores, mask = ops.full((1, n), 2 * LOWEST), np.array([[True, True, not masked]])
    np.testing.assert_allclose(to_numpy(built(name).marginals(scores, mask)), mask / mask.sum(), atol=FLOAT32)
    assert to_numpy(built(name).mode(scores, mask)).tolist() == [[1.0, 0.0, 0.0]]


def test_a_tree_of_scores_wholly_below_the_lowest_is_one_of_equals():
    expected = to_numpy(built("dependency_tree").marginals(ops.zeros((n, n))))
    found = to_numpy(built("dependency_tree").marginals(ops.full((n, n), 2 * LOWEST)))
    np.testing.assert_allclose(found, expected, atol=FLOAT32)


def test_the_choice_of_a_single_position_is_nan_too():
    weights = built("softmax").marginals(ops.array([[np.nan], [np.inf], [-np.inf], [3.0]], "float32"))
    np.testing.assert_array_equal(to_numpy(weights), [[np.nan], [np.nan], [np.nan], [1.0]])


def test_weights_that_sum_to_one_of_on_and_off_are_nan_where_nothing_can_be_on():
    weights = alignments.Bernoulli(normalize="l1")(ops.array([[-np.inf, -np.inf], [0.0, -np.inf]], "float32"))
    np.testing.assert_array_equal(to_numpy(weights), [[np.nan, np.nan], [1.0, 0.0]])
