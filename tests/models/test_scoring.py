import numpy as np
import pytest
from compiled import compiled
from keras import ops
from models.conftest import LABELS, SOURCE, TARGET, TARGET_VOCABULARY, make_transformer, not_on_jax, padded
from tolerances import FLOAT32

from keras_attention.models import Transformer
from keras_attention.tokens import PAD

PAIRS = {"source": SOURCE, "target": LABELS}  # LABELS are TARGET without the start symbol, shifted left


@pytest.fixture
def model(transformers):
    return transformers["as_in_the_paper"]


def numpy(tensor):
    return ops.convert_to_numpy(tensor)


def close(received, expected):
    np.testing.assert_allclose(received, expected, atol=FLOAT32)


def scores_and_weights(model, source, target):
    return model.score(source, target), model.align(source, target)


def both(model, source, target):
    """What `log_probability` and `alignment` return, on JAX by one compiled call."""
    pairs = model.check_pairs({"source": source, "target": target})
    return [numpy(each) for each in compiled(scores_and_weights, model)(*pairs)]


def logits_of(model, source, target):
    return numpy(compiled(Transformer.__call__, model)({"source": source, "target": target}))


# === log_probability ===


def test_log_probability_is_the_sum_over_the_tokens_and_the_end(transformer):
    logits = logits_of(transformer, SOURCE, TARGET).astype("float64")
    expected = np.zeros(2)
    for row in range(2):
        for position, token in enumerate(LABELS[row]):
            if token != PAD:
                probabilities = np.exp(logits[row, position]) / np.exp(logits[row, position]).sum()
                expected[row] += np.log(probabilities[token])
    received = transformer.log_probability(PAIRS)
    assert received.dtype == "float32" and received.shape == (2,)
    close(received, expected)


def test_a_greedy_answer_has_the_score_of_greedy_search(transformer):
    tokens, scores = transformer.generate(SOURCE, 5, return_scores=True)
    close(both(transformer, SOURCE, tokens)[0], scores)


def test_all_next_tokens_together_are_as_probable_as_what_they_continue(model):
    tokens = np.arange(TARGET_VOCABULARY)  # the target with PAD is what the others continue
    targets = np.stack([np.full_like(tokens, 7), tokens], axis=1)
    probabilities = np.exp(both(model, np.repeat(SOURCE[:1], len(tokens), axis=0), targets)[0])
    logits = logits_of(model, SOURCE[:1], np.array([[1, 7]]))[0, 1].astype("float64")
    padding = np.exp(logits[PAD]) / np.exp(logits).sum()  # a model may think of padding, a target ends there
    close(probabilities[PAD + 1 :].sum(), probabilities[PAD] * (1 - padding))


def test_one_token_more_never_makes_a_target_more_probable(model):
    prefixes = np.where(np.tri(5), LABELS[0], PAD)  # (5, 5), one token more in each row
    received, _ = both(model, np.repeat(SOURCE[:1], 5, axis=0), prefixes)
    assert (np.diff(received) < 0).all()


# === alignment ===


def test_alignment_is_the_mean_over_the_heads_of_the_last_cross_attention(transformer):
    cross = numpy(transformer.attention_weights({"source": SOURCE, "target": TARGET})["decoder_cross"][-1])
    expected = cross.mean(axis=1)  # (B, N, T, S) -> (B, T, S)
    received = transformer.alignment(PAIRS)
    assert received.dtype == "float32" and received.shape == (2, 5, 7)
    close(received, expected)


def test_rows_of_an_alignment_are_distributions_over_the_source_and_zero_for_padding(model):
    _, received = both(model, SOURCE, LABELS)
    close(received.sum(-1), [[1] * 5, [1] * 3 + [0] * 2])
    assert (received[1, :, 4:] == 0).all()  # padding of the source


def test_alignment_is_the_attention_that_decoding_step_by_step_adds_to_the_coverage(model):
    state = compiled(Transformer.initial_state, model, max_length=5)(ops.convert_to_tensor(SOURCE))
    _, received = both(model, SOURCE, LABELS)
    for position in range(3):  # the second target has three tokens
        before = numpy(state["coverage"])
        _, state = compiled(Transformer.decode_step, model)(ops.convert_to_tensor(TARGET[:, position]), state)
        close(received[:, position], numpy(state["coverage"]) - before)


# === Both ===

BOTH = ["log_probability", "alignment"]


@pytest.mark.parametrize("kind", ["right", "left", "holes"])
def test_padding_may_stand_anywhere_in_source_and_target(kind, model):
    scores, weights = both(model, SOURCE, LABELS)
    source, target = padded(SOURCE, kind), padded(LABELS, kind)
    received = both(model, source, target)
    close(received[0], scores)
    for row in range(2):
        real = received[1][row][target[row] != PAD][:, source[row] != PAD]
        close(real, weights[row][LABELS[row] != PAD][:, SOURCE[row] != PAD])
        assert not received[1][row][target[row] == PAD].any()


def test_other_rows_of_the_batch_change_nothing(model):
    scores, weights = both(model, SOURCE, LABELS)
    alone = both(model, SOURCE[1:, :4], LABELS[1:, :3])
    close(scores[1:], alone[0])
    close(weights[1:, :3, :4], alone[1])


@pytest.mark.parametrize(
    "batch_size, S, T",
    [pytest.param(0, 7, 5, marks=not_on_jax), (2, 0, 5), (2, 7, 0), pytest.param(0, 0, 0, marks=not_on_jax)],
)
def test_empty_batches_sources_and_targets_have_finite_results(model, batch_size, S, T):
    scores, weights = both(model, SOURCE[:batch_size, :S], LABELS[:batch_size, :T])
    assert scores.shape == (batch_size,) and weights.shape == (batch_size, T, S)
    assert np.isfinite(scores).all()
    if T == 0:
        assert (scores == 0).all()


def test_an_empty_source_is_a_row_of_padding(model):
    padding = np.zeros_like(SOURCE)
    close(both(model, padding[:, :0], LABELS)[0], both(model, padding, LABELS)[0])
    assert (both(model, padding, LABELS)[1] == 0).all()


def test_a_target_of_padding_scores_zero(model):
    scores, weights = both(model, SOURCE, np.zeros_like(LABELS))
    assert (scores == 0).all() and (weights == 0).all()


def test_half_precision_gives_float32_near_the_full_one():
    model, reference = make_transformer(num_layers=1, dtype="mixed_bfloat16"), make_transformer(num_layers=1)
    reference.set_weights(model.get_weights())
    for received, expected in zip(both(model, SOURCE, LABELS), both(reference, SOURCE, LABELS), strict=True):
        assert received.dtype == "float32"
        np.testing.assert_allclose(received, expected, atol=0.1)


def test_dropout_is_off():
    model = make_transformer(num_layers=1, dropout=0.5)
    first, second = both(model, SOURCE, LABELS), both(model, SOURCE, LABELS)
    assert (first[0] == second[0]).all() and (first[1] == second[1]).all()


@pytest.mark.parametrize("method", BOTH)
@pytest.mark.parametrize(
    "inputs, message",
    [
        (SOURCE, 'dictionary with "source". Received: ndarray'),
        ({"source": SOURCE}, r'dictionary with "target". Received: \[\'source\'\]'),
        ({"source": SOURCE, "target": [[23], [4]]}, r"`target` has the id 23, outside the vocabulary \[0, 23\)"),
        ({"source": SOURCE + 9, "target": LABELS}, "`source` has the id 23, outside"),
        ({"source": SOURCE, "target": LABELS[0]}, r"`target` must be .* Received shape \(5,\)"),
        (
            {"source": SOURCE[:1], "target": LABELS},
            r"one target for each source\. Received source of shape \(1, 7\) and target of shape \(2, 5\)",
        ),
    ],
)
def test_mistakes_are_named(model, method, inputs, message):
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(inputs)


def test_attention_weights_need_as_many_targets_as_sources(model):
    with pytest.raises(ValueError, match="one target for each source"):
        model.attention_weights({"source": SOURCE[:1], "target": TARGET})
