import math

import keras
import numpy as np
import pytest
from compiled import jitted
from keras import ops
from reference import trees
from reference.arrays import normal, to_numpy
from reference.gradients import gradient
from reference.trees import MASK
from tolerances import EXACT, FLOAT32

from keras_attention.structures.spanning_trees import log_partition, log_partition_and_marginals, sample_tree

n = 5


def values(scores, mask=None, single_root=True):
    """Log-partition and marginals, compiled on JAX once for each shape."""
    return to_numpy(jitted(log_partition_and_marginals, single_root=single_root)(scores, mask))


def drawn(scores, mask=None, **options):
    return to_numpy(jitted(sample_tree, **options)(scores, mask))


ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single", "multi"])


def scores_of(scale, seed=3):
    return (scale * np.random.default_rng(seed).uniform(-1, 1, size=MASK.shape)).astype("float32")


@ROOTS
@pytest.mark.parametrize("scale", [1, 20, 200])
def test_log_partition_and_marginals_equal_the_enumeration_of_all_trees(scale, single_root):
    scores = scores_of(scale)
    total, marginals = values(scores, MASK, single_root)
    tolerance = FLOAT32 * max(1, scale / 20)  # scores of 200 have steps of 1.5e-5 in float32
    np.testing.assert_allclose(marginals, trees.marginals(scores, MASK, single_root), atol=tolerance)
    for row, mask in enumerate(MASK):
        expected, *_ = trees.log_partition_and_probabilities(scores[row], mask, single_root)
        np.testing.assert_allclose(total[row], expected, atol=tolerance, rtol=1e-6)


@ROOTS
@pytest.mark.parametrize("size", [1, 2, 3])
def test_sizes_below_agree_too(size, single_root):
    scores = normal(size, size)
    marginals = values(scores, None, single_root)[1]
    expected = trees.marginals(scores, np.ones((size, size), bool), single_root)
    np.testing.assert_allclose(marginals, expected, atol=FLOAT32)


@ROOTS
def test_log_partition_and_marginals_equal_those_of_torch_struct(single_root):
    total, marginals = values(np.array(trees.SCORES, "float32"), None, single_root)
    expected_total, expected = trees.OF_TORCH_STRUCT[single_root]
    np.testing.assert_allclose(total, expected_total, atol=2 * FLOAT32)  # it adds 1e-5 to the weight of every arc
    np.testing.assert_allclose(marginals, expected, atol=FLOAT32)


def test_numbers_of_trees_are_those_of_cayley():
    for single_root, count in ((True, n ** (n - 1)), (False, (n + 1) ** (n - 1))):
        total = jitted(log_partition, single_root=single_root)(np.zeros((n, n), "float32"))
        np.testing.assert_allclose(float(total), math.log(count), atol=FLOAT32)


@ROOTS
def test_gradient_of_the_log_partition_is_the_marginals(single_root):
    scores = scores_of(2)
    found = gradient(lambda scores: ops.sum(log_partition(scores, MASK, single_root=single_root)), scores)
    np.testing.assert_allclose(found, trees.marginals(scores, MASK, single_root), atol=FLOAT32)


@ROOTS
def test_gradients_of_the_marginals_equal_finite_differences(single_root):
    scores, factors = scores_of(2), normal(*MASK.shape)

    def total(scores):
        return ops.sum(log_partition_and_marginals(scores, MASK, single_root=single_root)[1] * ops.array(factors))

    found, direction = gradient(total, scores), normal(*MASK.shape, seed=1).astype("float64")
    ends = [
        (factors * trees.marginals(scores + step * direction, MASK, single_root)).sum(axis=(-2, -1))
        for step in (1e-6, -1e-6)
    ]
    np.testing.assert_allclose((found * direction).sum(axis=(-2, -1)), (ends[0] - ends[1]) / 2e-6, atol=3 * FLOAT32)
    assert not np.where(MASK, 0.0, found).any()


def test_equal_scores_have_the_gradient_of_scores_that_differ_by_nothing():
    factors, allowed = normal(3, 3), np.ones((3, 3), bool)
    found = gradient(
        lambda scores: ops.sum(log_partition_and_marginals(scores)[1] * ops.array(factors)), np.zeros((3, 3), "float32")
    )
    for index in np.ndindex(3, 3):
        step = np.zeros((3, 3))
        step[index] = 1e-6
        ends = [(factors * trees.marginals(change, allowed, True)).sum() for change in (step, -step)]
        np.testing.assert_allclose(found[index], (ends[0] - ends[1]) / 2e-6, atol=FLOAT32)


@pytest.mark.skipif(keras.backend.backend() == "torch", reason="the test helper takes no gradient of a gradient there")
def test_second_order_gradients_equal_finite_differences_of_the_first():
    scores, factors, direction = normal(3, 3), normal(3, 3, seed=1), normal(3, 3, seed=2)

    def total(scores):
        return ops.sum(log_partition_and_marginals(scores)[1] * ops.array(factors))

    if keras.backend.backend() == "jax":
        import jax

        found = jax.jit(jax.grad(lambda scores: ops.sum(jax.grad(total)(scores) * direction)))(scores)
    else:
        import tensorflow as tf

        tensor = tf.constant(scores)
        with tf.GradientTape() as outer:
            outer.watch(tensor)
            with tf.GradientTape() as inner:
                inner.watch(tensor)
                value = total(tensor)
            value = tf.reduce_sum(inner.gradient(value, tensor) * direction)
        found = outer.gradient(value, tensor)
    ends = [gradient(total, scores + np.float32(step) * direction) for step in (1e-2, -1e-2)]
    np.testing.assert_allclose(to_numpy(found), (ends[0] - ends[1]) / 2e-2, atol=1e-3)


@pytest.mark.parametrize("scale", [5, 20, 200])
def test_long_sentences_keep_their_sums(scale):
    size = 127
    scores = np.random.default_rng(5).uniform(-scale, scale, size=(size, size)).astype("float32")
    marginals = values(scores)[1]
    np.testing.assert_allclose(marginals.sum(axis=-1), 1.0, atol=FLOAT32)
    np.testing.assert_allclose(np.trace(marginals), 1.0, atol=FLOAT32)
    assert marginals.min() >= -FLOAT32 and marginals.max() <= 1 + FLOAT32


@pytest.mark.parametrize("content", [np.nan, np.inf, 1e30])
def test_content_of_masked_arcs_has_no_influence(content):
    scores = scores_of(1)
    filled = np.where(MASK, scores, content).astype("float32")
    for single_root in (True, False):
        expected, found = values(scores, MASK, single_root), values(filled, MASK, single_root)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, atol=EXACT)


def test_huge_scores_are_finite():
    scores = (normal(n, n) * 1e30).astype("float32")
    found = gradient(lambda scores: ops.sum(log_partition_and_marginals(scores)[1][0]), scores)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(values(scores)[1].sum(axis=-1), 1.0, atol=FLOAT32)


@ROOTS
def test_frequencies_of_sampled_trees_approach_their_probabilities(single_root):
    scores, M = scores_of(1), 2003
    samples = drawn(np.broadcast_to(scores, (M, *MASK.shape)), MASK, single_root=single_root, seed=5)
    for row, mask in enumerate(MASK):
        _, found, probabilities = trees.log_partition_and_probabilities(scores[row], mask, single_root)
        if not len(found):
            assert not samples[:, row].any()
            continue
        codes = {tree.tobytes(): number for number, tree in enumerate(found)}
        numbers = [codes[tree.astype("float64").tobytes()] for tree in samples[:, row]]  # every sample is a tree
        frequencies = np.bincount(numbers, minlength=len(found)) / M
        assert np.abs(frequencies - probabilities).max() < 0.04


def test_seeds_repeat_and_differ():
    scores = normal(7, n, n)
    first, again, other = (drawn(scores, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_sampled_trees_of_extreme_scores_are_the_likely_ones():
    scores = np.array([[-150.0, 200.0, -180.0], [200.0, -200.0, -199.0], [-200.0, 200.0, 0.0]], "float32")
    _, found, probabilities = trees.log_partition_and_probabilities(scores, np.ones((3, 3), bool), False)
    np.testing.assert_array_equal(drawn(scores, single_root=False, seed=1), found[probabilities.argmax()])


def test_without_words_there_is_the_empty_tree():
    total, marginals = log_partition_and_marginals(ops.zeros((2, 0, 0)))
    np.testing.assert_array_equal(total, np.zeros(2))
    assert marginals.shape == sample_tree(ops.zeros((2, 0, 0))).shape == (2, 0, 0)
