"""A classifier of documents as TF Serving loads it: any number of documents, sentences and words."""

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("SavedModels are written under the TensorFlow backend", allow_module_level=True)

import tensorflow as tf
from tolerances import FLOAT32

from keras_attention import serving
from keras_attention.models import HierarchicalClassifier

V, CLASSES = 29, 13


@pytest.fixture(scope="module")
def model():
    encoders = {"word": "gru", "sentence": "convolution"}
    model = HierarchicalClassifier(V, CLASSES, embedding_dim=11, hidden_dim=8, encoder=encoders)
    model.embedding.set_weights([20 * model.embedding.get_weights()[0]])
    return model


@pytest.fixture(scope="module")
def served(model, tmp_path_factory):
    path = serving.export(model, tmp_path_factory.mktemp("documents"))
    return tf.saved_model.load(path).signatures["serving_default"]


def test_the_signature_has_names_types_and_open_sizes(served):
    def described(specs):
        return {key: (spec.dtype.name, spec.shape.as_list()) for key, spec in specs.items()}

    assert described(served.structured_input_signature[1]) == {"ids": ("int32", [None, None, None])}
    assert described(served.structured_outputs) == {
        "logits": ("float32", [None, CLASSES]),
        "probabilities": ("float32", [None, CLASSES]),
        "word_weights": ("float32", [None, None, None]),
        "sentence_weights": ("float32", [None, None]),
        "error": ("string", [None]),
    }


@pytest.mark.parametrize("sizes", [(2, 3, 5), (5, 2, 7), (1, 1, 1), (3, 0, 5), (3, 2, 0), (0, 2, 3)], ids=str)
def test_the_served_answer_is_that_of_the_model_at_every_size(model, served, sizes):
    ids = np.random.default_rng(7).integers(0, V, sizes).astype("int32")
    ids[:1] = 0  # an empty document
    answer = {name: tensor.numpy() for name, tensor in served(ids=tf.constant(ids)).items()}
    logits, weights = model(ids).numpy(), model.attention_weights(ids)
    np.testing.assert_allclose(answer["logits"], logits, atol=FLOAT32)
    np.testing.assert_allclose(answer["probabilities"], tf.nn.softmax(logits).numpy(), atol=FLOAT32)
    np.testing.assert_allclose(answer["word_weights"], weights["word"], atol=FLOAT32)
    np.testing.assert_allclose(answer["sentence_weights"], weights["sentence"], atol=FLOAT32)


def test_a_bad_document_has_its_reason_and_the_good_ones_their_answer(served):
    ids = np.zeros((5, 129, 3), "int32")
    ids[:, 0] = 4, 5, 6
    ids[1, 0, 1], ids[2, 0, 2], ids[3, 128, 0] = -5, V, 7
    answer = {name: tensor.numpy() for name, tensor in served(ids=tf.constant(ids)).items()}
    outside = (
        b"`ids` has an id outside the vocabulary [0, 29). Tokenise with the tokeniser that the model was trained with."
    )
    long = b"`ids` must have a length of at most 128 in axis 1, up to its last entry. Send a shorter one."
    assert answer["error"].tolist() == [b"", outside, outside, long, b""]
    alone = served(ids=tf.constant(ids[:1, :1]))
    np.testing.assert_allclose(answer["logits"][[0, 4]], np.repeat(alone["logits"], 2, axis=0), atol=FLOAT32)
    for name in ("logits", "probabilities", "word_weights", "sentence_weights"):
        assert np.isnan(answer[name][1:4]).all()
