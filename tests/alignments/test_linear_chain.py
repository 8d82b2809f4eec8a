import keras
import numpy as np
import pytest
from keras import ops
from reference import linear_chain as reference
from reference.arrays import normal, to_numpy
from reference.gradients import gradient
from tolerances import EXACT, FLOAT32

from keras_attention import alignments
from keras_attention.alignments import Bernoulli, LinearChain
from keras_attention.layers import MultiHeadAttention
from keras_attention.models import Transformer

B, T, S = 2, 3, 5

PAIRWISE = np.array([[1.5, -0.5], [-1.0, 2.0]], "float32")


def made(**options):
    """A built chain with the pairwise scores above."""
    alignment = LinearChain(**options)
    alignment.build((None, None))
    alignment.pairwise.assign(PAIRWISE)
    return alignment


def unary(scores):
    """Off and on, `(..., S)` -> `(..., S, 2)`."""
    return np.stack([np.zeros_like(scores), scores], axis=-1)


def test_without_pairwise_scores_it_is_bernoulli(rng):
    scores, mask = 3.0 * normal(B, T, S), rng.random((B, T, S)) < 0.6
    chain, units = LinearChain(), Bernoulli()
    np.testing.assert_allclose(chain(scores, mask=mask), units(scores, mask=mask), atol=1e-6)
    selection = np.where(mask, normal(B, T, S, seed=1) > 0, False).astype("float32")
    for name in ("mode", "entropy", "log_partition"):
        found, expected = (getattr(each, name)(scores, mask) for each in (chain, units))
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    found, expected = (each.log_prob(selection, scores, mask) for each in (chain, units))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_distribution_equals_the_enumeration_of_all_selections_for_any_leading_axes(rng):
    scores, mask = normal(B, 2, T, S), rng.random((B, 1, T, S)) < 0.6
    mask[0, 0, 0] = False
    alignment = made(normalize="l1", scale=2.0)
    found = {
        "marginals": alignment.marginals(scores, mask),
        "weights": alignment(scores, mask=mask),
        "mode": alignment.mode(scores, mask),
        "entropy": alignment.entropy(scores, mask),
        "log_partition": alignment.log_partition(scores, mask),
    }
    found["log_prob"] = alignment.log_prob(found["mode"], scores, mask)
    found, mask = to_numpy(found), np.broadcast_to(mask, scores.shape)
    for row in np.ndindex(*scores.shape[:-1]):
        expected = reference.enumerated(unary(scores[row]), PAIRWISE, mask[row])
        on = expected["marginals"][:, 1]
        np.testing.assert_allclose(found["marginals"][row], on, atol=FLOAT32)
        np.testing.assert_allclose(found["weights"][row], 2.0 * on / max(on.sum(), 1e-9), atol=FLOAT32)
        np.testing.assert_array_equal(found["mode"][row], expected["mode"])
        for name in ("entropy", "log_partition"):
            np.testing.assert_allclose(found[name][row], expected[name], atol=FLOAT32)
        best = reference.score(expected["mode"], unary(scores[row]), PAIRWISE, mask[row])
        np.testing.assert_allclose(found["log_prob"][row], best - expected["log_partition"], atol=FLOAT32)


def test_a_selection_of_a_masked_position_is_impossible():
    log_prob = made().log_prob(np.eye(S, dtype="float32")[:2], np.zeros((2, S), "float32"), np.arange(S) != 1)
    assert to_numpy(log_prob)[0] > -100.0 and to_numpy(log_prob)[1] == np.float32(-1e30)


def test_samples_have_the_frequencies_of_the_marginals():
    scores, mask = np.broadcast_to(normal(S), (4001, S)), np.array([True, True, False, True, True])
    samples = to_numpy(made().sample(scores, mask, seed=3))
    assert set(np.unique(samples)) == {0.0, 1.0}
    np.testing.assert_allclose(samples.mean(axis=0), made().marginals(scores[0], mask), atol=0.03)


def test_neighbours_that_want_to_be_alike_make_segments():
    alike = LinearChain(pairwise_initializer=keras.initializers.Identity(gain=2.0))
    scores = np.array([[-4.0, 6.0, -1.0, 6.0, -4.0, -4.0]], "float32")
    assert to_numpy(Bernoulli().mode(scores)).tolist() == [[0, 1, 0, 1, 0, 0]]
    alike.build(scores.shape)
    assert to_numpy(alike.mode(scores)).tolist() == [[0, 1, 1, 1, 0, 0]]
    assert to_numpy(alike(scores))[0, 2] > 0.5 > to_numpy(Bernoulli()(scores))[0, 2]


def test_gradient_of_the_pairwise_weight_equals_finite_differences():
    scores, mask, factors = normal(S), np.arange(S) != 2, normal(S, seed=1)
    alignment = LinearChain(normalize="l1")
    alignment.build((S,))
    potentials = unary(scores)

    def total(pairwise):
        class Given(LinearChain):  # with a tensor in the place of its weight
            def _chain(self, scores, mask):
                return ops.array(potentials), pairwise, mask

        return ops.sum(Given(normalize="l1")(scores, mask=mask) * ops.array(factors))

    def exact(pairwise):
        on = reference.enumerated(unary(scores.astype("float64")), pairwise, mask)["marginals"][:, 1]
        return np.sum(on / on.sum() * factors)

    found = gradient(total, PAIRWISE)
    for index in np.ndindex(2, 2):
        step = np.zeros((2, 2))
        step[index] = 1e-5
        slope = (exact(PAIRWISE + step) - exact(PAIRWISE - step)) / 2e-5
        np.testing.assert_allclose(found[index], slope, atol=FLOAT32)


def test_the_weight_takes_initializer_regularizer_and_constraint():
    chain = LinearChain(pairwise_initializer="ones", pairwise_regularizer="l2", pairwise_constraint="non_neg")
    chain.build((T, S))
    assert to_numpy(chain.pairwise.value).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    np.testing.assert_allclose(chain.losses[0], 0.04, atol=FLOAT32)
    again = LinearChain.from_config(chain.get_config())
    assert isinstance(again.pairwise_constraint, keras.constraints.NonNeg)
    assert isinstance(again.pairwise_regularizer, keras.regularizers.L2)


def test_the_name_stands_for_a_chain_that_begins_without_pairwise_scores():
    alignment = alignments.get("linear_chain")
    alignment.build((T, S))
    assert not to_numpy(alignment.pairwise.value).any()
    assert alignment.normalize is None


def test_an_alignment_that_is_not_built_says_so():
    with pytest.raises(ValueError, match=r"A LinearChain alignment must be built\. Call it once"):
        LinearChain().marginals(normal(T, S))


# === In other layers ===


def test_decoding_step_by_step_with_a_cache_equals_decoding_at_once():
    attention, inputs = MultiHeadAttention(num_heads=3, key_dim=4, alignment="linear_chain"), normal(B, T, 7)
    attention.build(inputs.shape, inputs.shape)
    attention.alignment.pairwise.assign(PAIRWISE)
    expected, weights = attention(inputs, inputs, use_causal_mask=True, return_attention_scores=True)
    cache, steps = attention.empty_cache(B, 5), []
    for step in range(T):
        now = inputs[:, step : step + 1]
        output, cache = attention(now, now, cache=cache, cache_index=step, use_causal_mask=True)
        steps.append(output)
    np.testing.assert_allclose(ops.concatenate(steps, axis=1), expected, atol=FLOAT32)
    np.testing.assert_allclose(np.triu(to_numpy(weights), 1), 0.0, atol=EXACT)


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="the test above asks the same of JAX, in less time")
def test_a_transformer_of_chains_writes_what_it_scores_best():
    model = Transformer(11, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8, alignment="linear_chain")
    source = np.array([[4, 5, 6, 2], [7, 2, 0, 0]], "int32")
    written = to_numpy(model.generate(source, max_length=3))
    logits = to_numpy(model({"source": source, "target": np.concatenate([[[1], [1]], written[:, :-1]], axis=1)}))
    best = logits[..., 1:].argmax(axis=-1) + 1  # padding is never written
    np.testing.assert_array_equal(written, np.where(written == 0, 0, best))
