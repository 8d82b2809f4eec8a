import functools

import keras
import numpy as np
import pytest
from compiled import whole
from keras import ops
from reference import trees
from reference.arrays import normal, to_numpy
from reference.gradients import gradient
from reference.trees import MASK
from tolerances import EXACT, FLOAT32, HALF

from keras_attention import alignments, layers
from keras_attention.alignments import DependencyTree
from keras_attention.ops import LOWEST

B, T, S = 2, 5, 7

ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single", "multi"])


@functools.cache
def made(*arguments, **options):
    """The alignment, which JAX compiles once for all tests."""
    return whole(DependencyTree(*arguments, **options))


def scores_of(scale, seed=3):
    return (scale * np.random.default_rng(seed).uniform(-1, 1, size=MASK.shape)).astype("float32")


@ROOTS
def test_log_prob_and_entropy_equal_the_enumeration_of_all_trees(single_root):
    alignment, scores = made(single_root=single_root), scores_of(2)
    entropy = to_numpy(alignment.entropy(ops.array(scores), MASK))
    log_partition = to_numpy(alignment.log_partition(ops.array(scores), MASK))
    selections = np.zeros((2, *MASK.shape), "float32")  # of each row the first and the last tree
    expected = np.full((2, len(MASK)), LOWEST)
    for row, mask in enumerate(MASK):
        total, found, probabilities = trees.log_partition_and_probabilities(scores[row], mask, single_root)
        np.testing.assert_allclose(log_partition[row], total, atol=FLOAT32)
        np.testing.assert_allclose(entropy[row], -(probabilities * np.log(probabilities)).sum(), atol=FLOAT32)
        if len(found):
            selections[:, row] = found[[0, -1]]
            expected[:, row] = np.log(probabilities[[0, -1]])
    for selection, values in zip(selections, expected, strict=True):
        np.testing.assert_allclose(alignment.log_prob(selection, ops.array(scores), MASK), values, atol=FLOAT32)


@ROOTS
def test_probabilities_of_all_trees_sum_to_one(single_root):
    scores, found = normal(4, 4), trees.trees(np.ones((4, 4), bool), single_root)
    log_probs = made(single_root=single_root).log_prob(
        found.astype("float32"), ops.broadcast_to(ops.array(scores), found.shape)
    )
    np.testing.assert_allclose(np.exp(to_numpy(log_probs)).sum(), 1.0, atol=FLOAT32)


def test_entropy_of_extreme_scores_keeps_its_digits():
    scores = scores_of(1) + 1000.0  # a number that all trees have in common
    expected = to_numpy(made().entropy(ops.array(scores - np.float32(1000.0)), MASK))
    np.testing.assert_allclose(made().entropy(ops.array(scores), MASK), expected, atol=FLOAT32)


@ROOTS
@pytest.mark.parametrize("scale", [1e15, 1e25])
def test_scores_are_right_up_to_the_bound_that_is_promised(scale, single_root):
    alignment, scores = made(single_root=single_root), scores_of(scale / 2)  # no two differ by more
    np.testing.assert_allclose(alignment(scores, mask=MASK), trees.marginals(scores, MASK, single_root), atol=EXACT)
    np.testing.assert_allclose(alignment.mode(scores, MASK), trees.marginals(scores, MASK, single_root), atol=EXACT)


def test_gradient_of_the_log_probability_is_the_tree_less_the_marginals():
    scores, tree = normal(T, T), np.eye(T, k=-1, dtype="float32") + np.eye(1, T, dtype="float32").T * np.eye(1, T)
    tree = tree.astype("float32")
    found = gradient(lambda scores: made().log_prob(tree, scores), scores)
    np.testing.assert_allclose(found, tree - trees.marginals(scores, np.ones((T, T), bool), True), atol=FLOAT32)


def test_what_is_no_tree_has_the_lowest_log_probability():
    scores = normal(T, T)
    circle, two_roots = np.roll(np.eye(T, dtype="float32"), 1, axis=1), np.eye(T, dtype="float32")
    assert float(made().log_prob(circle, scores)) == np.float32(LOWEST)
    assert float(made().log_prob(two_roots, scores)) == np.float32(LOWEST)
    np.testing.assert_allclose(
        made(single_root=False).log_prob(two_roots, scores),
        np.trace(scores) - to_numpy(made(single_root=False).log_partition(scores)),
        atol=FLOAT32,
    )


def test_nothing_to_attend_gives_zeros_everywhere():
    scores, nothing = normal(T, T), np.zeros((T, T), bool)
    alignment = made()
    for selection in (alignment(scores, mask=nothing), alignment.mode(scores, nothing)):
        assert not to_numpy(selection).any()
    assert not to_numpy(alignment.sample(scores, nothing, seed=1)).any()
    for value in (alignment.entropy(scores, nothing), alignment.log_partition(scores, nothing)):
        assert float(value) == 0.0
    assert float(alignment.log_prob(np.zeros((T, T), "float32"), scores, nothing)) == 0.0
    assert not gradient(lambda scores: ops.sum(alignment(scores, mask=nothing)), scores).any()


@pytest.mark.parametrize("shape", [(0, T, T), (B, 0, 0)])
def test_empty_scores_give_empty_results(shape):
    alignment, scores = made(), ops.zeros(shape)
    for selection in (alignment(scores), alignment.mode(scores), alignment.sample(scores, seed=1)):
        assert selection.shape == shape
    assert alignment.entropy(scores).shape == alignment.log_partition(scores).shape == shape[:1]
    np.testing.assert_allclose(alignment.log_prob(scores, scores), np.zeros(shape[:1]), atol=EXACT)


def test_permuting_the_words_permutes_the_trees(rng):
    scores, order = normal(T, T), rng.permutation(T)
    permuted = scores[order][:, order]
    for function in (made(), made().mode):
        np.testing.assert_allclose(function(permuted), to_numpy(function(scores))[order][:, order], atol=FLOAT32)


def test_under_a_causal_mask_the_first_word_is_the_root():
    scores = normal(T, T)
    weights = to_numpy(made()(scores, mask=np.tril(np.ones((T, T), bool))))
    expected = np.exp(np.where(np.tril(np.ones((T, T)), -1), scores, -np.inf))
    expected[0, 0] = 1.0
    np.testing.assert_allclose(weights, expected / expected.sum(axis=-1, keepdims=True), atol=FLOAT32)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_weights_have_the_type_of_the_scores_and_are_computed_in_float32(dtype):
    scores = ops.cast(normal(T, T), dtype)
    weights = made()(scores)
    assert keras.backend.standardize_dtype(weights.dtype) == dtype
    exact = to_numpy(made()(ops.cast(scores, "float32")))
    np.testing.assert_allclose(ops.cast(weights, "float32"), exact, atol=HALF[f"mixed_{dtype}"])


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="the graph is TensorFlow's")
@pytest.mark.parametrize("jit_compile", [False, True])
def test_mode_and_sample_compile_also_where_the_length_is_unknown(jit_compile):
    import tensorflow as tf

    alignment = DependencyTree()
    signature = [tf.TensorSpec((None, None, None)), tf.TensorSpec((None, None, None), tf.bool)]

    def results(scores, mask):
        tree = alignment.mode(scores, mask)
        return tree, alignment.sample(scores, mask, seed=3), alignment.log_prob(tree, scores, mask)

    compiled = tf.function(results, jit_compile=jit_compile, input_signature=signature)
    scores = tf.constant(scores_of(1))
    tree, sample, log_prob = to_numpy(compiled(scores, tf.constant(MASK)))
    np.testing.assert_allclose(tree, to_numpy(alignment.mode(scores, MASK)), atol=EXACT)
    np.testing.assert_allclose(log_prob, to_numpy(alignment.log_prob(tree, scores, MASK)), atol=FLOAT32)
    np.testing.assert_array_equal(to_numpy(alignment.log_prob(sample, scores, MASK)) == LOWEST, log_prob == LOWEST)
    if not jit_compile:
        assert compiled(scores[:, :0, :0], tf.constant(MASK[:, :0, :0]))[0].shape == (len(MASK), 0, 0)


# === In layers ===


def test_soft_attention_reads_the_soft_heads():
    words, mask = normal(B, T, S), np.array([[True] * T, [True] * 3 + [False] * (T - 3)])
    attention = layers.SoftAttention(alignment="dependency_tree")
    context, weights = attention(words, words, query_mask=mask, value_mask=mask, return_attention_scores=True)
    scores = np.einsum("btd,bsd->bts", words, words) / np.sqrt(S)
    expected = trees.marginals(scores, mask[:, :, None] & mask[:, None, :], True)
    np.testing.assert_allclose(weights, expected, atol=FLOAT32)
    np.testing.assert_allclose(context, expected @ words, atol=FLOAT32)


def test_every_head_of_multi_head_attention_has_trees_of_its_own():
    words = normal(B, T, S)
    attention = layers.MultiHeadAttention(num_heads=3, key_dim=2, alignment=DependencyTree(single_root=False))
    _, weights = attention(words, words, return_attention_scores=True)
    assert weights.shape == (B, 3, T, T)
    np.testing.assert_allclose(to_numpy(weights).sum(axis=-1), 1.0, atol=FLOAT32)
    assert (to_numpy(ops.trace(weights, axis1=-2, axis2=-1)) >= 1.0 - FLOAT32).all()


def test_an_encoder_block_attends_by_trees_and_ignores_padding():
    block = layers.TransformerEncoderBlock(num_heads=2, intermediate_dim=11, alignment="dependency_tree")
    words, mask = normal(B, T, 6), np.array([[True] * 3 + [False] * (T - 3)] * B)
    output, weights = block(words, mask=mask, return_attention_scores=True)
    assert not to_numpy(weights)[..., 3:].any()
    np.testing.assert_allclose(to_numpy(output)[:, :3], to_numpy(block(words[:, :3])), atol=FLOAT32)


def test_other_lengths_of_query_and_key_are_refused():
    message = r"as many queries as keys.*\(2, 5, 7\)"
    with pytest.raises(ValueError, match=message):
        DependencyTree()(ops.zeros((B, T, S)))
    with pytest.raises(ValueError, match=message):
        layers.SoftAttention(alignment="dependency_tree")(ops.zeros((B, T, 3)), ops.zeros((B, S, 3)))
    for function in (DependencyTree().mode, DependencyTree().sample, DependencyTree().entropy):
        with pytest.raises(ValueError, match=message):
            function(ops.zeros((B, T, S)))


def test_scores_of_one_axis_are_refused():
    with pytest.raises(ValueError, match=r"scores of shape \(\.\.\., T, T\)\. Received scores of shape \(5,\)"):
        DependencyTree()(ops.zeros((T,)))


def test_a_cache_is_refused():
    attention = layers.MultiHeadAttention(num_heads=2, key_dim=3, alignment="dependency_tree")
    words = ops.zeros((B, 1, S))
    with pytest.raises(ValueError, match="DependencyTree needs all queries at once"):
        attention(words, words, cache=attention.empty_cache(B, T), cache_index=0)


def test_the_name_stands_for_one_root():
    assert alignments.get("dependency_tree").single_root
