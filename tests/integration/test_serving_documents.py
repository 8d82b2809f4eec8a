"""From raw documents to a trained classifier and to an answer that is all it takes to colour a document."""

import io

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("export is TensorFlow's", allow_module_level=True)

import tensorflow as tf

from keras_attention.data import DocumentTokenizer, WordTokenizer, training_document_batches
from keras_attention.models import HierarchicalClassifier
from keras_attention.serving import export_classifier
from keras_attention.visualization import plot_document

TEXTS = ["It runs. It was good. They say so.", "It was bad.", "Good. It runs and runs.", "They say it was bad."]
LABELS = [1, 0, 1, 0]


@pytest.fixture(scope="module")
def tokenizer():
    return DocumentTokenizer(WordTokenizer.train(TEXTS), max_words=5)


@pytest.fixture(scope="module")
def model(tokenizer):
    keras.utils.set_random_seed(7)
    model = HierarchicalClassifier(tokenizer.vocabulary_size, 2, embedding_dim=7, encoder=["gru", None], hidden_dim=6)
    model.compile(keras.optimizers.Adam(0.03), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(
        training_document_batches(TEXTS * 5, LABELS * 5, tokenizer, 5, seed=1), epochs=5, verbose=0, shuffle=False
    )
    return model


@pytest.fixture(scope="module")
def serve(model, tokenizer, tmp_path_factory):
    folder = export_classifier(model, tmp_path_factory.mktemp("served"), tokenizer, ["negative", "positive"])
    signature = tf.saved_model.load(folder).signatures["serving_default"]
    return lambda texts: {name: value.numpy() for name, value in signature(text=tf.constant(texts, tf.string)).items()}


@pytest.mark.parametrize(
    "texts", [TEXTS[:1], TEXTS[:3], ["", TEXTS[1], "zebras\nfly, never"]], ids=["one", "three", "empty and unknown"]
)
def test_served_documents_are_answered_as_by_the_model(model, tokenizer, serve, texts):
    ids, outputs = tokenizer.tokenize(texts).to_tensor(), serve(texts)
    np.testing.assert_allclose(outputs["logits"], model.predict(ids, verbose=0), atol=1e-5)
    np.testing.assert_allclose(outputs["probabilities"], keras.ops.softmax(outputs["logits"]), atol=1e-6)
    for level, weights in model.attention_weights(ids).items():
        np.testing.assert_allclose(outputs[f"{level}_weights"], weights, atol=1e-5)
    assert outputs["tokens"].shape == ids.shape
    np.testing.assert_array_equal(outputs["tokens"] == b"", ids == 0)


def test_training_has_told_the_classes_apart(serve):
    assert serve(TEXTS)["class_name"].tolist() == [b"positive", b"negative", b"positive", b"negative"]


def test_batches_of_empty_documents_only_are_answered_by_the_bias(model, serve):
    outputs = serve(["", " \n"])
    np.testing.assert_allclose(outputs["logits"], np.broadcast_to(model.output_layer.bias, (2, 2)), atol=1e-6)
    assert outputs["word_weights"].shape == (2, 0, 0)
    assert outputs["sentence_weights"].shape == (2, 0)


def test_an_answer_is_all_it_takes_to_colour_a_document(serve):
    outputs = serve(TEXTS)
    for row in range(len(TEXTS)):
        figure = plot_document(*(outputs[name][row] for name in ("tokens", "word_weights", "sentence_weights")))
        figure.savefig(io.BytesIO(), format="png")
        words = [text.get_text() for text in figure.axes[0].texts]
        assert words == [token.decode() for token in outputs["tokens"][row].ravel() if token]


def test_a_tokenizer_of_a_larger_vocabulary_is_an_error(model, tokenizer, tmp_path):
    larger = DocumentTokenizer(WordTokenizer.train([*TEXTS, "zebra"]))
    with pytest.raises(
        ValueError, match=f"Received {larger.vocabulary_size} ids, and the model has {tokenizer.vocabulary_size}"
    ):
        export_classifier(model, tmp_path, larger)
