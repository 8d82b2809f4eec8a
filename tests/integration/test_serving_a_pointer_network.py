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
    with pytest.raises(tf.errors.InvalidArgumentError, match="`points` must have rows of a length of at most 7"):
        point(loaded, np.zeros((1, 11, 2), "float32"), np.array([11], "int32"))
