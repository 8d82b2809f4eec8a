import numpy as np
import pytest
from keras import ops
from reference import trees
from reference.arrays import normal, to_numpy
from reference.gradients import gradient
from reference.trees import MASK
from tolerances import EXACT

from keras_attention.structures.best_tree import best_tree, is_tree
from keras_attention.structures.spanning_trees import log_partition_and_marginals

n = 5
ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single", "multi"])


@ROOTS
@pytest.mark.parametrize("scale", [0, 1, 200])
def test_best_tree_is_the_best_of_all_trees(scale, single_root):
    for seed in range(3):
        scores = (scale * np.random.default_rng(seed).uniform(-1, 1, size=MASK.shape)).astype("float32")
        best = to_numpy(best_tree(ops.array(scores), MASK, single_root=single_root))
        for row, mask in enumerate(MASK):
            _, found, probabilities = trees.log_partition_and_probabilities(scores[row], mask, single_root)
            if not len(found):
                assert not best[row].any()
                continue
            (chosen,) = np.flatnonzero((found == best[row]).all(axis=(-2, -1)))
            assert probabilities[chosen] >= probabilities.max() * (1 - 1e-3)


@ROOTS
def test_circles_within_circles_are_opened_as_the_marginals_of_extreme_scores_say(single_root):
    one, two = np.array([[0.0, 1.0], [1.0, 0.0]]), np.ones((2, 2))
    pairs = np.kron(np.eye(4), 9 * one) + np.kron(np.kron(np.eye(2), one), 5 * two)  # would rather read each other
    scores = pairs + np.random.default_rng(1).uniform(size=(11, 8, 8)) - 20 * np.eye(8)
    scores = ops.array(scores, "float32")
    _, marginals = log_partition_and_marginals(1000 * scores, single_root=single_root)
    best = to_numpy(best_tree(scores, single_root=single_root))
    np.testing.assert_allclose(best, np.rint(to_numpy(marginals)), atol=EXACT)
    assert (best.sum(axis=-1) == 1.0).all()


@ROOTS
def test_trees_and_only_trees_are_recognized(single_root):
    for mask in MASK[[0, 3, 5, 6, 10]]:
        found = {tree.tobytes() for tree in trees.trees(mask, single_root)}
        candidates = np.array([np.eye(n)[list(heads)] for heads in np.ndindex(*[n] * n)])
        is_there = mask.any(axis=-1)
        candidates = np.unique(candidates * is_there[:, None], axis=0)
        recognized = to_numpy(is_tree(ops.array(candidates, "float32"), mask, single_root=single_root))
        assert {tree.tobytes() for tree in candidates[recognized]} == found


def test_rows_with_two_heads_or_none_are_no_tree():
    two, none = np.eye(1, n) + np.eye(n)[[0] * n], np.eye(n)[[0] * n]
    two[1, 2] = 1.0
    none[3] = 0.0
    for selection in (two, none):
        assert not bool(is_tree(ops.array(selection, "float32")))


def test_no_gradient_flows_through_the_best_tree():
    scores, factors = normal(n, n), normal(n, n, seed=1)
    found = gradient(lambda scores: ops.sum(best_tree(scores) * ops.array(factors) + scores), scores)
    np.testing.assert_allclose(found, 1.0, atol=EXACT)
