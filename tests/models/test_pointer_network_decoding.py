"""The answers of a pointer network: `generate`, scores, alignments and what is served."""

import functools
import itertools

import keras
import numpy as np
import pytest
from compiled import compiled
from keras import ops
from models.pointer_networks import (
    EACH_VARIANT,
    LABELS,
    LENGTHS,
    MASK,
    POINTS,
    REAL,
    SOURCE,
    VARIANTS,
    B,
    F,
    S,
    T,
    alignment,
    log_probability,
    logits_of,
    make_pointer_network,
    shared,
    tensors,
)
from models.test_pointer_network import padded
from reference.arrays import to_numpy
from reference.pointer_answers import is_permutation, is_polygon, is_triangles
from tolerances import FLOAT32

from keras_attention.decoding import BeamSearch, Constraint, Permutation, Sample
from keras_attention.ops.softmax import LOWEST

PAIRS = {**SOURCE, "target": LABELS}


@pytest.fixture(params=EACH_VARIANT)
def variant(request):
    return request.param


@pytest.fixture
def model(variant):
    return shared(variant)


@functools.cache
def greedy(variant):
    """Answers and scores of greedy search for SOURCE."""
    return shared(variant).generate(SOURCE, T, return_scores=True)


def close(received, expected, atol=FLOAT32):
    np.testing.assert_allclose(to_numpy(received), expected, rtol=1e-5, atol=atol)


# === Constraints ===

NUMBERS = [1, 2, 3, 7, 31, 200]
MANY_MASK = np.argsort(np.random.default_rng(5).uniform(size=(6, 200)), axis=-1) < np.array(NUMBERS)[:, None]
MANY = {"source": np.random.default_rng(7).uniform(size=(6, 200, F)), "source_mask": MANY_MASK}
RULES = {"permutation": is_permutation, "polygon": is_polygon, "triangles": is_triangles}


@pytest.mark.parametrize(
    ("constraint", "sampler"),
    [
        ("permutation", "greedy"),
        ("permutation", BeamSearch(beam_width=3)),
        ("permutation", Sample(seed=3)),
        ("polygon", Sample(temperature=3.0, seed=3)),
        ("triangles", Sample(seed=3)),
    ],
    ids=["permutation-greedy", "permutation-beam", "permutation-sample", "polygon", "triangles"],
)
def test_no_answer_breaks_its_rules_at_any_length_under_any_padding(constraint, sampler):
    model = make_pointer_network(hidden_dim=5, constraint=constraint)
    answers = model.generate(MANY, sampler=sampler)
    assert answers.dtype == "int32" and answers.shape == (6, model.constraint.max_length(200))
    for answer, mask in zip(answers.tolist(), MANY_MASK, strict=True):
        end = answer.index(0)
        assert not any(answer[end:])
        assert RULES[constraint](answer[:end], (np.flatnonzero(mask) + 1).tolist())


class TwoAtMost(Constraint):
    def positions(self, mask, counts, last):
        return ops.logical_and(mask, ops.sum(counts, axis=-1, keepdims=True) < 2)

    def max_length(self, length):
        return 3


def test_a_constraint_of_the_user_needs_no_registration_to_be_used():
    model = make_pointer_network(constraint=TwoAtMost())
    answers = model.generate(SOURCE)
    assert answers.shape == (B, 3) and not answers[:, 2].any()


# === Inputs of generate ===


def test_a_list_of_sources_equals_padded_ones_and_each_alone():
    model = shared("permutation")
    answers = model.generate(SOURCE)
    np.testing.assert_array_equal(answers, greedy("permutation")[0])
    np.testing.assert_array_equal(model.generate([POINTS[row, :n] for row, n in enumerate(LENGTHS)]), answers)
    for row, n in list(enumerate(LENGTHS))[1:]:
        alone = model.generate([POINTS[row, :n]], n + 1)
        assert alone[0].tolist() == answers[row, : n + 1].tolist()


def test_padding_and_other_rows_change_no_answer():
    model = shared("permutation")
    answers = model.generate(SOURCE)
    source, moved = padded()
    np.testing.assert_array_equal(model.generate(source, max_length=T), moved[answers])
    permuted = {name: array[[2, 0, 1]] for name, array in SOURCE.items()}
    np.testing.assert_array_equal(model.generate(permuted), answers[[2, 0, 1]])


def test_without_positions_permuted_points_have_the_permuted_answer():
    model, order = shared("transformer"), np.array([3, 0, 6, 4, 2, 1, 5])
    permuted = {"source": POINTS[:, order], "source_mask": MASK[:, order]}
    answers = model.generate(permuted, T)
    np.testing.assert_array_equal(np.array([0, *(order + 1)])[answers], greedy("transformer")[0])


def test_batches_and_sources_may_be_empty():
    model = shared("permutation")
    assert model.generate(POINTS[:0]).shape == (0, S + 1)
    assert model.generate(POINTS[:, :0]).tolist() == [[0]] * B


@pytest.mark.parametrize("search", ["greedy", "beam", "sample"])
def test_a_search_without_a_source_has_no_answer(search):
    source = tensors({name: array[:0] for name, array in SOURCE.items()})
    indices, scores = shared("gru").search(source, T, search)
    assert tuple(indices.shape) == (0, T) and tuple(scores.shape) == (0,)
    assert tuple(shared("gru").encode(source).shape) == (0, S + 1, 11)


def test_the_shortest_answers_are_written():
    model = shared("permutation")
    assert model.generate([[], POINTS[0, :1]], 2).tolist() == [[0, 0], [1, 0]]
    np.testing.assert_array_equal(model.generate(SOURCE, 1), model.generate(SOURCE)[:, :1])


class Counted(Permutation):
    """Counts how often it is traced."""

    calls = 0

    def positions(self, mask, counts, last):
        Counted.calls += 1
        return super().positions(mask, counts, last)


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="JAX compiles for each shape, torch does not compile"
)
def test_sources_of_every_length_share_one_compiled_search():
    model, calls = make_pointer_network(constraint=Counted()), []
    for n in (2, 3, 4, 5, 6):
        answers = model.generate(POINTS[:, :n])
        assert all(is_permutation(row[:-1], range(1, n + 1)) for row in answers.tolist())
        calls.append(Counted.calls)
    assert calls[1:] == [calls[1]] * 4  # the second length makes it general


def test_numbers_of_any_type_are_read():
    model, points = shared("permutation"), np.arange(B * S * F).reshape(B, S, F) % 5
    expected = model.generate(points.astype("float32"))
    for each in (points, points.astype("float64"), points.tolist(), ops.convert_to_tensor(points)):
        np.testing.assert_array_equal(model.generate(each), expected)
    huge = model.generate(POINTS * np.float32(1e30))
    assert [is_permutation(row[:-1], range(1, S + 1)) for row in huge.tolist()] == [True] * B


def test_half_precision_keeps_to_the_rules():
    model = make_pointer_network(**VARIANTS["permutation"], dtype="mixed_bfloat16")
    answers = model.generate(SOURCE).tolist()
    assert all(is_permutation(row[:n], range(1, n + 1)) for row, n in zip(answers, LENGTHS, strict=True))


# === Scores ===


def test_a_greedy_answer_has_the_score_of_greedy_search(variant, model):
    indices, scores = greedy(variant)
    received = model.log_probability({**SOURCE, "target": indices})
    close(received, scores)


def test_log_probability_is_the_sum_over_the_indices_and_the_end(model):
    target = np.pad(LABELS[:, :-1], ((0, 0), (1, 0)))
    logits = logits_of(model, {**SOURCE, "target": target}).astype("float64")
    probabilities = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    of_labels = np.take_along_axis(probabilities, LABELS[..., None], -1)[..., 0]
    close(log_probability(model, PAIRS), np.where(REAL, np.log(of_labels), 0.0).sum(-1))


def test_all_answers_together_have_probability_one():
    model, source = shared("gru"), {"source": POINTS[:1, :3], "source_mask": np.ones((1, 3), bool)}
    answers = [[*answer, 0] for answer in itertools.permutations([1, 2, 3])]
    repeated = {name: np.repeat(array, 6, axis=0) for name, array in source.items()}
    assert np.exp(log_probability(model, {**repeated, "target": answers})).sum() == pytest.approx(1.0, abs=1e-5)


def test_an_answer_that_the_constraint_forbids_has_no_probability():
    received = log_probability(shared("permutation"), {**SOURCE, "target": [[1, 1], [2, 1], [1, 0]]})
    assert received[0] < LOWEST / 2 and received[1] > LOWEST / 2 and received[2] < LOWEST / 2


def test_beam_search_finds_at_least_what_greedy_search_finds():
    model = shared("permutation")
    source = {"source": np.random.default_rng(1).normal(size=(61, S, F)), "source_mask": np.ones((61, S), bool)}
    _, greedy = model.generate(source, return_scores=True)
    indices, beam = model.generate(source, sampler=BeamSearch(length_penalty=0.0), return_scores=True)
    assert (beam >= greedy - 1e-5).all() and (beam > greedy + 1e-3).any()
    close(log_probability(model, {**source, "target": indices}), beam, atol=1e-4)


def few_points():
    """Five sources of 0 to 4 real positions among 5, and all permutations of each, padded."""
    mask = np.array([[0, 0, 0, 0, 0], [0, 0, 1, 0, 0], [1, 0, 0, 0, 1], [1, 1, 0, 1, 0], [1, 1, 1, 0, 1]], bool)
    source = {"source": np.random.default_rng(2).normal(size=(5, 5, F)).astype("float32"), "source_mask": mask}
    answers = [
        [[*each, *[0] * (6 - len(each))] for each in itertools.permutations(np.flatnonzero(row) + 1)] for row in mask
    ]
    return source, [np.array(each, "int32") for each in answers]


def test_a_beam_that_is_wide_enough_finds_all_answers_in_their_order():  # and D18
    model, (source, answers) = shared("permutation"), few_points()
    search = BeamSearch(beam_width=24, length_penalty=0.0, num_results=24)
    indices, scores = model.generate(source, sampler=search, return_scores=True)
    rows = np.repeat(np.arange(5), [len(each) for each in answers])
    repeated = {name: array[rows] for name, array in source.items()}
    probabilities = log_probability(model, {**repeated, "target": np.concatenate(answers)})
    for row, every in enumerate(answers):
        expected = probabilities[rows == row]
        order = np.argsort(-expected)
        np.testing.assert_array_equal(indices[row, : len(every)], every[order])
        close(scores[row, : len(every)], expected[order])
        assert not indices[row, len(every) :].any() and (scores[row, len(every) :] == np.float32(LOWEST)).all()


def test_finished_beams_stay_as_they_are_and_are_all_different():  # D18, without a constraint
    model = shared("lstm")
    search = BeamSearch(beam_width=5, length_penalty=0.0, num_results=5)
    indices, scores = model.generate(SOURCE, T, search, return_scores=True)
    assert (np.diff(scores, axis=1) <= 0).all()
    ended = np.cumsum(indices == 0, axis=-1) > 0
    assert not indices[ended].any() and ended[..., -1].any()
    assert all(len({tuple(beam) for beam in row}) == 5 for row in indices.tolist())
    for beam in range(5):
        close(log_probability(model, {**SOURCE, "target": indices[:, beam]}), scores[:, beam])


# === Sampling ===


def test_equal_seeds_draw_equal_answers_and_every_call_draws_anew():
    model, sampler = shared("lstm"), Sample(seed=3)
    first, second = model.generate(SOURCE, sampler=sampler), model.generate(SOURCE, sampler=sampler)
    assert first.tolist() != second.tolist()
    assert model.generate(SOURCE, sampler=Sample(seed=3)).tolist() == first.tolist()


def test_first_indices_are_as_frequent_as_they_are_probable():
    model, draws = shared("permutation"), 2003
    source = {name: np.repeat(array[:1], draws, axis=0) for name, array in SOURCE.items()}
    indices = model.generate(source, 1, Sample(seed=3))
    counts = np.bincount(indices[:, 0], minlength=S + 1)
    logits = logits_of(model, {**SOURCE, "target": np.zeros((B, T), "int32")})[0, 0]
    probabilities = np.exp(logits) / np.exp(logits).sum()
    assert counts[0] == 0 and counts.sum() == draws
    deviations = (counts - draws * probabilities)[1:] / np.sqrt(draws * probabilities * (1 - probabilities))[1:]
    assert (abs(deviations) < 3.5).all()


# === Alignment ===


def test_rows_of_an_alignment_are_distributions_over_the_end_and_the_source_and_zero_for_padding(model):
    weights = model.alignment(PAIRS)
    assert weights.dtype == "float32" and weights.shape == (B, T, S + 1)
    close(weights.sum(-1), REAL.astype("float32"))
    assert not np.where(np.pad(MASK, ((0, 0), (1, 0)), constant_values=True)[:, None], 0.0, weights).any()


def test_the_alignment_of_a_greedy_answer_follows_it(variant, model):
    indices, _ = greedy(variant)
    weights = alignment(model, {**SOURCE, "target": indices})
    np.testing.assert_array_equal(weights.argmax(-1), indices)
    chosen = np.take_along_axis(weights, indices[..., None], -1)[..., 0]
    scores = np.log(np.where(chosen > 0, chosen, 1.0)).sum(-1)
    close(log_probability(model, {**SOURCE, "target": indices}), scores)


@pytest.mark.parametrize("method", ["log_probability", "alignment"])
@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (SOURCE, 'dictionary with "target"'),
        ({"source": [POINTS[0], POINTS[1, :4]], "target": LABELS}, "one target for each source"),
        (
            {**SOURCE, "target": LABELS[[0, 0, 2]]},
            "Received 7 in row 1, whose source has 4 of 7 positions that are real",
        ),
        ({**SOURCE, "target": LABELS[:, ::-1]}, "0 ends an answer: only 0 may follow it.* Positions count from 1"),
        ({**SOURCE, "target": LABELS[0]}, r"of shape \(B, T\).* Received shape \(8,\)"),
        ({"source": POINTS[..., :2], "target": LABELS}, r"must have shape \(B, S, 3\).* Received shape \(3, 7, 2\)"),
        (
            {"source": np.where(np.arange(S)[:, None] == 2, np.nan, POINTS), "target": LABELS},
            r"must be finite in float32. Received source\[0, 2\]",
        ),
    ],
)
def test_mistakes_are_named(method, inputs, message):
    with pytest.raises(ValueError, match=message):
        getattr(shared("permutation"), method)(inputs)


def test_targets_may_be_empty():
    model = shared("permutation")
    assert log_probability(model, {**SOURCE, "target": [[]] * B}).tolist() == [0.0] * B
    assert alignment(model, {**SOURCE, "target": [[]] * B}).shape == (B, 0, S + 1)


def test_without_points_the_end_has_the_whole_probability():
    inputs = {"source": POINTS[:1, :0], "target": [[0]]}
    assert alignment(shared("lstm"), {**inputs, "target": [[0, 0]]}).tolist() == [[[1.0], [0.0]]]
    assert log_probability(shared("lstm"), inputs).tolist() == [0.0]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda model: model.generate(SOURCE, sampler="beams"), ValueError, "Unknown sampler: 'beams'"),
        (lambda model: model.generate(SOURCE, max_length=0), ValueError, "`max_length` must be a positive integer"),
        (lambda model: model.generate({"points": POINTS}), ValueError, 'dictionary with "source". Received'),
    ],
)
def test_mistakes_in_generate_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call(shared("permutation"))


# === Serving ===


def junk_in_padding():
    return ops.convert_to_tensor(np.where(MASK[..., None], POINTS, np.float32(np.nan)))


def served(model, *tensors, signature):
    return signature(*tensors)


def log_products(probabilities):
    """The logarithm of the product of what is not 0."""
    probabilities = to_numpy(probabilities)
    return np.log(np.where(probabilities > 0, probabilities, 1.0)).sum(-1)


def test_served_answers_are_those_of_generate():
    model = shared("gru")
    (point, inputs, _), (score, *_) = model.serving_signatures().values()
    assert list(inputs) == ["points", "lengths"]
    points, lengths = junk_in_padding(), ops.convert_to_tensor(np.array(LENGTHS, "int32"))
    outputs = compiled(served, model, signature=point)(points, lengths)
    indices, scores = greedy("gru")
    np.testing.assert_array_equal(to_numpy(outputs["indices"]), indices)
    close(outputs["scores"], scores)
    close(log_products(outputs["probabilities"]), scores)
    has_ended = np.pad(np.cumsum(indices == 0, axis=-1) > 0, ((0, 0), (1, 0)))[:, :-1]
    np.testing.assert_array_equal(to_numpy(outputs["probabilities"]) == 0, has_ended)
    scores = compiled(served, model, signature=score)(points, lengths, ops.convert_to_tensor(LABELS))["scores"]
    close(scores, log_probability(model, PAIRS))


def test_the_two_best_answers_are_served_with_their_probabilities():
    model, search = shared("permutation"), BeamSearch(beam_width=3, length_penalty=0.0, num_results=2)
    point, *_ = model.serving_signatures(max_length=T, sampler=search)["point"]
    lengths = ops.convert_to_tensor(np.array(LENGTHS, "int32"))
    outputs = compiled(served, model, signature=point)(junk_in_padding(), lengths)
    expected = model.generate(SOURCE, T, search, return_scores=True)
    np.testing.assert_array_equal(to_numpy(outputs["indices"]), expected[0])
    close(outputs["scores"], expected[1])
    assert tuple(outputs["probabilities"].shape) == (B, 2, T)
    close(log_products(outputs["probabilities"]), expected[1])
