import numpy as np
import pytest
from reference import linear_chain as reference
from reference.arrays import normal, to_numpy
from tolerances import FLOAT32

from keras_attention.alignments import LinearChain
from keras_attention.layers import SoftAttention, StructuredAttention

B, T, S, D, E = 2, 3, 5, 7, 11


def test_context_is_the_expected_sum_of_the_values_over_all_segmentations():
    query, value, key = normal(B, T, D), normal(B, S, E, seed=1), normal(B, S, D, seed=2)
    mask = np.array([[True] * S, [True, False, True, True, False]])
    layer = StructuredAttention(score="dot")
    layer(query, value, key)
    pairwise = normal(2, 2, seed=3)
    layer.alignment.pairwise.assign(pairwise)
    context, weights = to_numpy(layer(query, value, key, value_mask=mask, return_attention_scores=True))
    scores = np.einsum("btd,bsd->bts", query, key)
    for b, t in np.ndindex(B, T):
        unary = np.stack([np.zeros(S), scores[b, t]], axis=-1)
        on = reference.enumerated(unary, pairwise, mask[b])["marginals"][:, 1]
        np.testing.assert_allclose(weights[b, t], on, atol=FLOAT32)
        np.testing.assert_allclose(context[b, t], on @ value[b], atol=FLOAT32)


@pytest.mark.parametrize("alignment", ["sigmoid", "softmax", "sparsemax"])
def test_with_any_alignment_it_is_soft_attention(alignment):
    query, value = normal(B, T, D), normal(B, S, D, seed=1)
    expected = SoftAttention(alignment=alignment)(query, value)
    np.testing.assert_allclose(StructuredAttention(alignment=alignment)(query, value), expected, atol=FLOAT32)


def test_axes_before_the_last_two_are_batch():
    query, value = normal(B, 2, T, D), normal(B, 2, S, D, seed=1)
    mask = np.arange(S) < np.array([[5, 3], [0, 1]])[..., None]
    layer = StructuredAttention(alignment=LinearChain(normalize="l1"))
    context = to_numpy(layer(query, value, value_mask=mask))
    for index in np.ndindex(B, 2):
        alone = layer(query[index][None], value[index][None], value_mask=mask[index][None])
        np.testing.assert_allclose(context[index], to_numpy(alone)[0], atol=FLOAT32)
    assert not context[1, 0].any()
