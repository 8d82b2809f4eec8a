"""A pointer network as TF Serving loads it: points in, positions out, for any number of points."""

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("SavedModels are written under the TensorFlow backend", allow_module_level=True)

import tensorflow as tf
from tolerances import FLOAT32

from keras_attention import serving
from keras_attention.decoding import BeamSearch
from keras_attention.models import PointerNetwork
from keras_attention.models.points import BEHIND_END, no_position
from keras_attention.serving.rows import DIVERGED, answer_rows

LENGTHS = np.array([7, 3, 1, 0, 5], "int32")
POINTS = np.random.default_rng(3).random((5, 7, 2)).astype("float32")


@pytest.fixture(scope="module")
def model():
    return PointerNetwork(encoder="transformer", hidden_dim=8, constraint="permutation", seed=5)


@pytest.fixture(scope="module")
def served(model, tmp_path_factory):
    return tf.saved_model.load(serving.export(model, tmp_path_factory.mktemp("tours"))).signatures


def point(served, points, lengths, name="point"):
    return {key: value.numpy() for key, value in served[name](points=points, lengths=lengths).items()}


def masked(points, lengths):
    return {"source": points, "source_mask": np.arange(points.shape[1]) < lengths[:, None]}


def test_the_signatures_have_names_types_and_open_sizes(served):
    def described(specs):
        return {key: (spec.dtype.name, spec.shape.as_list()) for key, spec in specs.items()}

    inputs = {"points": ("float32", [None, None, 2]), "lengths": ("int32", [None])}
    assert set(served) == {"serving_default", "point", "score"}
    assert described(served["point"].structured_input_signature[1]) == inputs
    assert described(served["point"].structured_outputs) == {
        "indices": ("int32", [None, None]),
        "probabilities": ("float32", [None, None]),
        "scores": ("float32", [None]),
        "error": ("string", [None]),
    }
    indices = {"indices": ("int32", [None, None])}
    assert described(served["score"].structured_input_signature[1]) == {**inputs, **indices}


@pytest.mark.parametrize("size", [(5, 7), (2, 3), (1, 1), (3, 0), (1, 101)], ids=str)
def test_the_served_answer_is_that_of_generate_at_every_size(model, served, size):
    points = np.random.default_rng(7).random((*size, 2)).astype("float32")
    lengths = np.full(size[0], size[1], "int32")
    answer = point(served, points, lengths)
    indices, scores = model.generate(points, return_scores=True)
    np.testing.assert_array_equal(answer["indices"], indices)
    np.testing.assert_array_equal(np.sort(indices, axis=1), np.tile(np.arange(size[1] + 1), (size[0], 1)))
    np.testing.assert_allclose(answer["scores"], scores, rtol=1e-4, atol=FLOAT32)


def test_padding_is_never_pointed_at_and_changes_nothing(model, served):
    answer = point(served, np.where(np.arange(7)[:, None] < LENGTHS[:, None, None], POINTS, np.nan), LENGTHS)
    for row, length in enumerate(LENGTHS):
        assert sorted(answer["indices"][row][: length + 1]) == list(range(length + 1))
        assert not answer["indices"][row, length:].any()
        alone = point(served, POINTS[row : row + 1, :length], LENGTHS[row : row + 1])
        np.testing.assert_array_equal(answer["indices"][row, : length + 1], alone["indices"][0])


def test_the_probabilities_multiply_to_the_score(model, served):
    answer = point(served, POINTS, LENGTHS)
    counted = np.arange(8) <= LENGTHS[:, None]  # the end among them
    assert (answer["probabilities"][counted] > 0).all()
    assert not answer["probabilities"][~counted].any()
    products = np.prod(np.where(counted, answer["probabilities"], 1.0), axis=1)
    np.testing.assert_allclose(np.exp(answer["scores"]), products, rtol=1e-4)
    scores = served["score"](points=POINTS, lengths=LENGTHS, indices=answer["indices"])["scores"].numpy()
    np.testing.assert_allclose(scores, answer["scores"], rtol=1e-4, atol=FLOAT32)
    expected = model.log_probability({**masked(POINTS, LENGTHS), "target": answer["indices"]})
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=FLOAT32)


def test_the_n_best_have_probabilities_each(model, tmp_path):
    sampler = BeamSearch(beam_width=3, length_penalty=0.0, num_results=2)
    path = serving.export(model, tmp_path, sampler=sampler, max_source_length=7, warm_up_requests=None)
    loaded = tf.saved_model.load(path).signatures
    answer = point(loaded, POINTS[:2], np.full(2, 7, "int32"))
    assert answer["indices"].shape == answer["probabilities"].shape == (2, 2, 8)
    np.testing.assert_array_equal(answer["indices"], model.generate(POINTS[:2], sampler=sampler))
    np.testing.assert_allclose(np.log(answer["probabilities"]).sum(axis=-1), answer["scores"], rtol=1e-4)
    refused = point(loaded, np.zeros((2, 11, 2), "float32"), np.array([11, 7], "int32"))
    reason = b"`points` must have a length of at most 7, up to its last entry. Send a shorter one."
    assert refused["error"].tolist() == [reason, b""]
    nowhere = point(loaded, np.zeros((2, 0, 2), "float32"), np.array([0, 0], "int32"))
    np.testing.assert_array_equal(nowhere["indices"], [[[0], [0]]] * 2)
    indices, scores = model.generate(np.zeros((2, 0, 2)), sampler=sampler, return_scores=True)
    np.testing.assert_array_equal(nowhere["indices"], indices)
    np.testing.assert_allclose(nowhere["scores"], scores, atol=FLOAT32)


NOT_FINITE = "The features of real positions must be finite."
LENGTH = "`lengths` must be from 0 to the number of points."


def test_bad_points_have_their_reason_and_the_good_ones_their_answer(served):
    points = np.tile(POINTS[:1], (7, 1, 1))
    points[1, 2, 0], points[2, 6, 1], points[3, 0] = np.nan, np.inf, -np.inf
    points[6, 5:] = np.nan  # padding
    lengths = np.array([7, 7, 7, 7, -1, 8, 5], "int32")
    answer = point(served, points, lengths)
    reasons = ["", NOT_FINITE, NOT_FINITE, NOT_FINITE, LENGTH, LENGTH, ""]
    assert answer["error"].tolist() == [reason.encode() for reason in reasons]
    assert not answer["indices"][1:6].any()
    assert np.isnan(answer["scores"][1:6]).all() and np.isnan(answer["probabilities"][1:6]).all()
    for row in (0, 6):
        alone = point(served, POINTS[:1], lengths[row : row + 1])
        np.testing.assert_array_equal(answer["indices"][row], alone["indices"][0])
        np.testing.assert_allclose(answer["scores"][row], alone["scores"][0], rtol=1e-4)


def test_bad_answers_have_their_reason(served):
    indices = np.array([[1, 2, 3, 0], [1, 0, 2, 0], [-1, 2, 3, 0], [1, 8, 3, 0], [1, 2, 4, 0]], "int32")
    lengths = np.array([3, 3, 3, 7, 3], "int32")
    answer = served["score"](points=np.tile(POINTS[:1], (5, 1, 1)), lengths=lengths, indices=indices)
    reasons = ["", BEHIND_END, *[no_position("indices")] * 3]
    assert answer["error"].numpy().tolist() == [reason.encode() for reason in reasons]
    assert np.isnan(answer["scores"]).tolist() == [False, True, True, True, True]


def test_unequal_numbers_of_points_and_answers_are_an_error(served):
    message = "`points` and `{}` must have as many rows as each other"
    for name, lengths, indices in (("lengths", 1, 2), ("indices", 2, 1)):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message.format(name)):
            served["score"](points=POINTS[:2], lengths=LENGTHS[:lengths], indices=np.zeros((indices, 3), "int32"))


def test_points_of_a_model_that_has_diverged_are_answered_by_the_reason():
    diverged = PointerNetwork(hidden_dim=2)
    diverged.set_weights([np.full_like(weight, np.nan) for weight in diverged.get_weights()])
    function, _, checks = diverged.serving_signatures()["point"]
    served = answer_rows(lambda tensors: function(**tensors), checks)
    answer = served({"points": tf.constant(POINTS[:2]), "lengths": tf.constant(LENGTHS[:2])})
    assert answer["error"].numpy().tolist() == [DIVERGED.encode()] * 2
    assert not answer["indices"].numpy().any()
