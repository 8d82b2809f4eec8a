"""Chains against the enumeration of all their states, and long ones against messages in float64."""

import functools
import itertools

import keras
import numpy as np
import pytest
from compiled import jitted
from keras import ops
from reference import linear_chain as reference
from reference.arrays import normal, to_numpy
from reference.gradients import gradient
from tolerances import EXACT, FLOAT32

from keras_attention.structures import linear_chain

S = 5
# Every one: full, padded on the right and on the left, with gaps, of a single position, of none.
MASKS = np.array(list(itertools.product([True, False], repeat=S)))
B = len(MASKS)

EACH_NUMBER_OF_STATES = pytest.mark.parametrize("C", [2, 3])
ARRAYS = ("marginals", "pair_marginals", "log_partition", "entropy")


@functools.cache
def case(C):
    """`(unary (B, S, C), pairwise (C, C))`."""
    return 2.0 * normal(B, S, C), normal(C, C, seed=1)


@functools.cache
def enumerated(C):
    unary, pairwise = case(C)
    each = [reference.enumerated(one, pairwise, mask) for one, mask in zip(unary, MASKS, strict=True)]
    return {name: np.array([values[name] for values in each]) for name in each[0]}


@functools.cache
def of_chain(name, **options):
    return jitted(getattr(linear_chain, f"chain_{name}"), **options)


@jitted
def all_of_chain(unary, pairwise, mask):
    """All that is computed of a chain alone, in one function, which JAX compiles once for each shape."""
    return {name: getattr(linear_chain, f"chain_{name}")(unary, pairwise, mask) for name in (*ARRAYS, "mode")}


@functools.cache
def found(C):
    return to_numpy(all_of_chain(*case(C), MASKS))


# === Enumeration ===


@EACH_NUMBER_OF_STATES
@pytest.mark.parametrize("name", ARRAYS)
def test_values_equal_those_of_the_enumeration_under_every_mask(name, C):
    np.testing.assert_allclose(found(C)[name], enumerated(C)[name], atol=FLOAT32)


@EACH_NUMBER_OF_STATES
def test_the_mode_has_the_highest_score_and_state_0_where_masked(C):
    mode = found(C)["mode"]
    assert mode.dtype == "int32"
    np.testing.assert_array_equal(mode, enumerated(C)["mode"])


@EACH_NUMBER_OF_STATES
def test_scores_and_log_probabilities_are_those_of_the_enumeration(C):
    unary, pairwise = case(C)
    states = reference.all_states(S, C)[:, None]  # (all, 1, S)
    many = np.broadcast_to(unary, (len(states), *unary.shape))
    scores = to_numpy(of_chain("score")(states, many, pairwise, MASKS))  # (all, B)
    expected = [[reference.score(one, unary[row], pairwise, MASKS[row]) for row in range(B)] for one in states[:, 0]]
    np.testing.assert_allclose(scores, expected, atol=FLOAT32)
    log_probs = to_numpy(of_chain("log_prob")(states, many, pairwise, MASKS))
    np.testing.assert_allclose(log_probs, scores - enumerated(C)["log_partition"], atol=FLOAT32)
    weights = 1.0 / C ** np.sum(~MASKS, axis=-1)  # each sequence stands here with any state where masked
    np.testing.assert_allclose(np.exp(log_probs).sum(axis=0) * weights, 1.0, atol=FLOAT32)


def test_samples_have_the_frequencies_of_neighbouring_pairs_and_state_0_where_masked():
    C, count = 3, 4001
    unary, pairwise = case(C)
    rows = [0, 5, 21, 30, 31]  # full, two gaps, ..., a single position, none
    many = np.broadcast_to(unary[rows], (count, len(rows), S, C))
    states = to_numpy(of_chain("sample", seed=3)(many, pairwise, MASKS[rows]))
    assert not states[:, ~MASKS[rows]].any()
    counts = np.array([pair_counts(states[:, row], MASKS[index], C) for row, index in enumerate(rows)])
    np.testing.assert_allclose(counts / count, enumerated(C)["pair_marginals"][rows], atol=0.03)
    one_hot = np.eye(C)[states] * MASKS[rows][..., None]
    np.testing.assert_allclose(one_hot.mean(axis=0), enumerated(C)["marginals"][rows], atol=0.03)


def pair_counts(states, mask, C):
    """`(S, C, C)` from `states (count, S)`."""
    counts = np.zeros((S, C, C))
    for r, s in itertools.pairwise(np.flatnonzero(mask)):
        np.add.at(counts[s], (states[:, r], states[:, s]), 1)
    return counts


def test_samples_repeat_with_their_seed():
    unary, pairwise = case(3)
    first, second, other = (to_numpy(of_chain("sample", seed=seed)(unary, pairwise, MASKS)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()


def test_a_chain_that_was_computed_by_hand():
    unary, pairwise = np.array([[1, 0], [0, 1]], "float32"), np.array([[0.5, 0], [0, 0.5]], "float32")
    values = to_numpy(all_of_chain(unary, pairwise, None))
    # Four scores: [0, 0] 1.5, [0, 1] 2, [1, 0] 0, [1, 1] 1.5.
    np.testing.assert_allclose(values["log_partition"], 2.8537, atol=1e-4)
    expected = [[0.6841, 0.3159], [0.3159, 0.6841]]  # (exp(1.5) + exp(2)) / Z
    np.testing.assert_allclose(values["marginals"], expected, atol=1e-4)
    assert values["mode"].tolist() == [0, 1]
    np.testing.assert_allclose(of_chain("score")([0, 1], unary, pairwise), 2.0, atol=FLOAT32)
    np.testing.assert_allclose(of_chain("log_prob")([0, 1], unary, pairwise), -0.8537, atol=1e-4)


def test_values_and_gradients_equal_those_of_torch_struct():
    given, expected = (reference.UNARY, reference.PAIRWISE), reference.OF_TORCH_STRUCT
    values = to_numpy(all_of_chain(*given, None))
    for name in ("marginals", "log_partition", "entropy"):
        np.testing.assert_allclose(values[name], expected[name], atol=FLOAT32)
    assert values["mode"][1:].tolist() == expected["mode_after_the_first"]
    of_unary, of_pairwise = gradients_of_marginals(*given, reference.FACTORS)
    np.testing.assert_allclose(of_unary, expected["slopes_of_unary"], atol=FLOAT32)
    np.testing.assert_allclose(of_pairwise, expected["slopes_of_pairwise"], atol=FLOAT32)


def weighted_marginals(unary, pairwise, factors):
    return ops.sum(linear_chain.chain_marginals(unary, pairwise) * factors)


def weighted_marginals_of_pairwise(pairwise, unary, factors):
    return weighted_marginals(unary, pairwise, factors)


def gradients_of_marginals(unary, pairwise, factors):
    factors = np.asarray(factors, "float32")
    of_unary = gradient(weighted_marginals, unary, pairwise, factors)
    return of_unary, gradient(weighted_marginals_of_pairwise, pairwise, unary, factors)


def test_states_that_are_equally_good_are_the_first():
    assert not to_numpy(all_of_chain(np.zeros((S, 3), "float32"), np.zeros((3, 3), "float32"), None)["mode"]).any()


# === Masks ===


def sum_of_entropies(unary, pairwise, mask):
    return ops.sum(linear_chain.chain_entropy(unary, pairwise, mask))


@pytest.mark.parametrize("content", [np.nan, np.inf, 1e30])
def test_what_stands_at_masked_positions_has_no_influence(content):
    unary, pairwise = case(3)
    filled = np.where(MASKS[..., None], unary, content).astype("float32")
    values = to_numpy(all_of_chain(filled, pairwise, MASKS))
    for name, value in values.items():
        np.testing.assert_allclose(value, enumerated(3)[name], atol=FLOAT32)
    for name in ("marginals", "pair_marginals", "mode"):
        assert not values[name][~MASKS].any()
    slopes = gradient(sum_of_entropies, filled, pairwise, MASKS)
    assert np.isfinite(slopes).all() and slopes[MASKS].any() and not slopes[~MASKS].any()


@pytest.mark.parametrize("shape", [(2, 0, 3), (0, S, 3)])
def test_empty_chains_have_a_log_partition_of_zero(shape):
    unary, pairwise = np.zeros(shape, "float32"), normal(3, 3)
    found = to_numpy(all_of_chain(unary, pairwise, None))
    found["sample"] = to_numpy(of_chain("sample", seed=3)(unary, pairwise))
    for name in ("marginals", "pair_marginals", "mode", "sample"):
        assert found[name].shape[:2] == shape[:2]
    for name in ("log_partition", "entropy"):
        assert found[name].shape == shape[:1] and not found[name].any()
    assert not to_numpy(of_chain("log_prob")(np.zeros(shape[:2], "int32"), unary, pairwise)).any()


# === Gradients ===


@pytest.mark.parametrize("name", ["marginals", "log_partition", "entropy"])
@pytest.mark.parametrize("of", ["unary", "pairwise"])
def test_gradients_equal_finite_differences(name, of):
    C = 3
    rows = [0, 5, 31]
    arguments = {"unary": case(C)[0][rows], "pairwise": case(C)[1]}
    factors = normal(*np.shape(enumerated(C)[name][rows]), seed=2)

    def total(tensor):
        return ops.sum(of_chain(name)(**{**arguments, of: tensor}, mask=MASKS[rows]) * ops.array(factors))

    def exact(array):
        given = {**{key: value.astype("float64") for key, value in arguments.items()}, of: array}
        found = [
            reference.enumerated(given["unary"][i], given["pairwise"], MASKS[row])[name] for i, row in enumerate(rows)
        ]
        return np.sum(np.array(found) * factors)

    found = gradient(total, arguments[of])
    direction = normal(*arguments[of].shape, seed=3).astype("float64")
    ends = [exact(arguments[of] + step * direction) for step in (1e-5, -1e-5)]
    np.testing.assert_allclose(np.sum(found * direction), (ends[0] - ends[1]) / 2e-5, rtol=1e-4)


def test_equal_scores_have_the_gradient_of_scores_that_differ_by_nothing():
    unary, pairwise, factors = np.zeros((S, 3), "float32"), np.zeros((3, 3), "float32"), normal(S, 3)
    mask = np.ones(S, bool)

    def exact(unary, pairwise):
        return np.sum(reference.enumerated(unary, pairwise, mask)["marginals"] * factors)

    of_unary, of_pairwise = gradients_of_marginals(unary, pairwise, factors)
    for index in np.ndindex(3, 3):
        step = np.zeros((S, 3))
        step[index] = 1e-5
        expected = (exact(step, pairwise) - exact(-step, pairwise)) / 2e-5
        np.testing.assert_allclose(of_unary[index], expected, atol=FLOAT32)
        expected = (exact(unary, step[:3]) - exact(unary, -step[:3])) / 2e-5
        np.testing.assert_allclose(of_pairwise[index], expected, atol=FLOAT32)


def test_the_second_derivatives_of_the_log_partition_are_the_first_of_the_marginals():
    unary, pairwise = case(3)
    unary, factors = unary[5:6], normal(1, S, 3, seed=2)

    def slope(tensor):
        return ops.sum(factors * differentiable_gradient(tensor))

    def differentiable_gradient(tensor):
        def total(tensor):
            return ops.sum(linear_chain.chain_log_partition(tensor, pairwise, MASKS[5]))

        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf

            with tf.GradientTape() as tape:
                tape.watch(tensor)
                value = total(tensor)
            return tape.gradient(value, tensor)
        if keras.backend.backend() == "jax":
            import jax

            return jax.grad(total)(tensor)
        import torch

        return torch.autograd.grad(total(tensor), tensor, create_graph=True)[0]

    expected = gradient(
        lambda tensor: ops.sum(factors * linear_chain.chain_marginals(tensor, pairwise, MASKS[5])), unary
    )
    np.testing.assert_allclose(gradient(slope, unary), expected, atol=FLOAT32)


# === Numbers ===


def in_graph(function):
    """The function as it runs inside `fit` and `predict`: an eager loop of many steps takes long."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.function(function)
    return jitted(function)


def test_long_chains_keep_the_precision_of_float32():
    unary = np.random.default_rng(5).uniform(-20, 20, (1, 512, 3)).astype("float32")
    pairwise = normal(3, 3, seed=4)
    expected = reference.forward_backward(unary[0], pairwise)
    names = ("marginals", "pair_marginals", "log_partition")
    compute = in_graph(lambda unary: [of_chain(name)(unary, pairwise) for name in names])
    marginals, pairs, log_partition = (each[0] for each in to_numpy(compute(ops.array(unary))))
    np.testing.assert_allclose(marginals, expected["marginals"], atol=FLOAT32)
    np.testing.assert_allclose(pairs, expected["pair_marginals"], atol=FLOAT32)
    np.testing.assert_allclose(log_partition, expected["log_partition"], rtol=1e-6)
    # The rules of sums.
    np.testing.assert_allclose(marginals.sum(axis=-1), 1.0, atol=FLOAT32)
    np.testing.assert_allclose(pairs[1:].sum(axis=-1), marginals[:-1], atol=FLOAT32)
    np.testing.assert_allclose(pairs[1:].sum(axis=-2), marginals[1:], atol=FLOAT32)


def marginals_and_entropy(unary, pairwise, factors):
    return weighted_marginals(unary, pairwise, factors) + ops.sum(linear_chain.chain_entropy(unary, pairwise))


@pytest.mark.parametrize(("size", "of_pairs"), [(200.0, 1.0), (1e4, 200.0), (3e38, 1.0)])
def test_huge_scores_have_right_marginals_and_finite_gradients(size, of_pairs):
    unary = (np.random.default_rng(11).choice([-1.0, -0.5, 0.0, 0.5, 1.0], (1, 7, 3)) * size).astype("float32")
    pairwise = of_pairs * normal(3, 3)
    values = to_numpy(all_of_chain(unary, pairwise, None))
    if size <= 1e4:
        expected = reference.forward_backward(unary[0], pairwise)["marginals"]
        np.testing.assert_allclose(values["marginals"][0], expected, atol=2e-7 * size)
    assert np.isfinite(values["marginals"]).all() and np.isfinite(values["entropy"]).all()
    assert np.isfinite(gradient(marginals_and_entropy, unary, pairwise, normal(1, 7, 3))).all()


def test_half_precision_is_raised_to_float32():
    unary, pairwise = ops.cast(case(3)[0], "bfloat16"), case(3)[1]
    marginals = of_chain("marginals")(unary, pairwise, MASKS)
    assert keras.backend.standardize_dtype(marginals.dtype) == "float32"
    expected = of_chain("marginals")(to_numpy(unary).astype("float32"), pairwise, MASKS)
    np.testing.assert_allclose(marginals, expected, atol=EXACT)


# === Compiled ===


def compiled_functions():
    """`function(unary, mask) -> (value, slopes, mode)`, compiled in every way that TensorFlow has."""
    import tensorflow as tf

    def slopes(unary, mask):
        with tf.GradientTape() as tape:
            tape.watch(unary)
            total = ops.sum(linear_chain.chain_marginals(unary, case(3)[1], mask) * normal(B, S, 3, seed=2))
        return total, tape.gradient(total, unary), linear_chain.chain_mode(unary, case(3)[1], mask)

    for jit_compile, batch, length in [(True, B, S), (True, None, None), (False, None, None)]:
        signature = [tf.TensorSpec((batch, length, 3)), tf.TensorSpec((batch, length), tf.bool)]
        yield tf.function(slopes, jit_compile=jit_compile, input_signature=signature)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="all tests above are compiled on JAX")
def test_compiled_values_and_gradients_equal_the_eager_ones_at_known_and_unknown_lengths():
    unary, pairwise = case(3)
    factors = normal(B, S, 3, seed=2)

    def total(unary):
        return ops.sum(linear_chain.chain_marginals(unary, pairwise, MASKS) * factors)

    expected = to_numpy(total(unary)), gradient(total, unary), enumerated(3)["mode"]
    for function in compiled_functions():
        for found, value in zip(function(ops.array(unary), ops.array(MASKS)), expected, strict=True):
            np.testing.assert_allclose(found, value, rtol=FLOAT32, atol=FLOAT32)


# === Errors ===


@pytest.mark.parametrize("shape", [(2, 3), (3,), (1, 3, 3)])
def test_a_pairwise_of_another_shape_is_refused(shape):
    with pytest.raises(ValueError, match=rf"`pairwise` must have shape \(C, C\).* C=3 states.* shape \({shape[0]},"):
        linear_chain.chain_marginals(np.zeros((S, 3), "float32"), np.zeros(shape, "float32"))
