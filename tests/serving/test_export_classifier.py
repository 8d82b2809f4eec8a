import os

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_attention.data import DocumentTokenizer, WordTokenizer
from keras_attention.serving import export_classifier

WORDS = WordTokenizer(["bad", "good", "."])  # ids 4 to 6
NAMES = ["negative", "positive"]


class Counter(keras.Model):
    """Answers by the number of times that "good" comes more often than "bad", and attends to every word alike."""

    def __init__(self, levels=2, vocabulary_size=None):
        ids = keras.Input((None,) * levels, dtype="int32", name="ids")
        embedding = keras.layers.Embedding(7, 1)
        super().__init__(ids, embedding(ids))
        embedding.set_weights([np.array([[0], [0], [0], [0], [-1], [1], [0]])])
        self.embedding, self.levels = embedding, levels
        if vocabulary_size:
            self.vocabulary_size = vocabulary_size

    def classify(self, ids):
        total = ops.sum(self.embedding(ids), axis=tuple(range(1, self.levels + 2)))  # (B,)
        weights = {"word_weights": ops.cast(ids != 0, "float32")}
        return {"probabilities": ops.softmax(ops.stack([0 * total, total], axis=-1)), **weights}

    def serving_signatures(self, **options):
        return {
            "serving_default": (self.classify, {"ids": keras.KerasTensor((None,) * (1 + self.levels), "int32")}),
            "other": (self.classify, {"ids": keras.KerasTensor((None, None, None), "int32")}),
        }


@pytest.fixture(scope="module")
def tokenizer():
    return DocumentTokenizer(WORDS, max_sentences=3)


@pytest.fixture(scope="module")
def signatures(tokenizer, tmp_path_factory):
    folder = export_classifier(Counter(), tmp_path_factory.mktemp("exported"), tokenizer, NAMES)
    return tf.saved_model.load(folder).signatures


def answer(signatures, *texts):
    outputs = signatures["serving_default"](text=tf.constant(texts, tf.string))
    return {name: output.numpy() for name, output in outputs.items()}


def test_text_is_answered_by_its_class_its_tokens_and_their_weights(signatures):
    outputs = answer(signatures, "Good! Not a bad one.", "BAD.", "Good\ngood")
    e = np.e
    expected = [[1 / 2, 1 / 2], [e / (1 + e), 1 / (1 + e)], [1 / (1 + e**2), e**2 / (1 + e**2)]]
    np.testing.assert_allclose(outputs["probabilities"], expected, rtol=1e-6)
    assert outputs["label"].tolist() == [0, 0, 1]
    assert outputs["class_name"].tolist() == [b"negative", b"negative", b"positive"]
    assert outputs["tokens"][0].tolist() == [[b"good", b"!", b"", b"", b""], [b"not", b"a", b"bad", b"one", b"."]]
    assert outputs["tokens"][1].tolist() == [[b"bad", b".", b"", b"", b""], [b""] * 5]
    np.testing.assert_array_equal(outputs["word_weights"], outputs["tokens"] != b"")


def test_signatures_have_their_names_types_and_open_sizes(signatures):
    def described(name):
        specs = signatures[name].structured_input_signature[1], signatures[name].structured_outputs
        return [{key: (spec.dtype.name, spec.shape.as_list()) for key, spec in each.items()} for each in specs]

    assert set(signatures) == {"serving_default", "classify_ids"}
    inputs, outputs = described("serving_default")
    assert inputs == {"text": ("string", [None])}
    assert outputs.pop("tokens") == ("string", [None, None, None])
    assert outputs.pop("label") == ("int32", [None])
    assert outputs.pop("class_name") == ("string", [None])
    assert described("classify_ids") == [{"ids": ("int32", [None, None, None])}, outputs]
    assert outputs == {
        "probabilities": ("float32", [None, 2]),
        "word_weights": ("float32", [None, None, None]),
        "error": ("string", [None]),
    }


def test_empty_texts_and_batches_of_nothing_else_are_answered(signatures):
    for texts in (["", "bad . x"], ["", " \n"], []):
        outputs = answer(signatures, *texts)
        assert np.isfinite(outputs["probabilities"]).all()
        assert len(outputs["probabilities"]) == len(texts)
        assert outputs["tokens"].shape == outputs["word_weights"].shape
    assert answer(signatures, "", "")["tokens"].shape == (2, 0, 0)


def test_texts_beyond_the_limits_of_the_tokenizer_are_cut(signatures):
    assert answer(signatures, "good. good. bad. bad. bad.")["label"].tolist() == [1]


def test_a_document_of_which_the_model_makes_nan_has_no_class(tmp_path, tokenizer):
    model = Counter()
    model.embedding.set_weights([np.array([[0], [0], [0], [0], [np.nan], [1], [0]])])
    signatures = tf.saved_model.load(export_classifier(model, tmp_path, tokenizer, NAMES)).signatures
    outputs = answer(signatures, "bad", "good")
    assert outputs["label"].tolist() == [-1, 1]
    assert outputs["class_name"].tolist() == [b"", b"positive"]
    assert [bool(reason) for reason in outputs["error"]] == [True, False]


def test_units_beyond_the_documented_limits_are_cut(signatures):
    long = answer(signatures, "good " * 131 + "bad " * 1009)  # no more words are counted than 128
    assert long["tokens"].shape == (1, 1, 128)
    assert long["label"].tolist() == [1]
    far = answer(signatures, " " * 131_073 + "good")  # more characters than are read
    assert far["tokens"].shape == (1, 0, 0)


def test_class_names_may_be_left_out_and_there_may_be_other_levels(tmp_path):
    tokenizer = DocumentTokenizer(WORDS, ("word", "sentence", "paragraph"))
    signatures = tf.saved_model.load(export_classifier(Counter(levels=3), tmp_path, tokenizer)).signatures
    outputs = answer(signatures, "good. good\n\nbad", "")
    assert set(outputs) == {"probabilities", "label", "tokens", "word_weights", "error"}
    assert outputs["tokens"].tolist()[0] == [[[b"good", b"."], [b"good", b""]], [[b"bad", b""], [b"", b""]]]


def test_wrong_number_of_class_names_is_an_error_that_leaves_nothing(tmp_path, tokenizer):
    with pytest.raises(ValueError, match=r"must name each of the 2 classes\. Received 3: \['a', 'b', 'c'\]"):
        export_classifier(Counter(), tmp_path / "models", tokenizer, ["a", "b", "c"])
    assert os.listdir(tmp_path) == []


def test_tokenizer_of_other_levels_or_of_a_larger_vocabulary_is_an_error(tmp_path, tokenizer):
    with pytest.raises(ValueError, match=r"as many levels as the model, 3\. Received 2: \('word', 'sentence'\)"):
        export_classifier(Counter(levels=3), tmp_path, tokenizer)
    with pytest.raises(ValueError, match="Received 7 ids, and the model has 5"):
        export_classifier(Counter(vocabulary_size=5), tmp_path, tokenizer)


def test_tokenizer_without_its_method_is_an_error(tmp_path):
    with pytest.raises(TypeError, match=r"with the method `tokenize`.* type str.* Pass a `DocumentTokenizer`"):
        export_classifier(Counter(), tmp_path, "words")


def test_model_without_probabilities_or_signatures_is_an_error(model, tokenizer, tmp_path):
    with pytest.raises(TypeError, match="Received an object of type Sequential"):
        export_classifier(keras.Sequential(), tmp_path, tokenizer)
    flat = DocumentTokenizer(WORDS, ("word",))
    with pytest.raises(ValueError, match=r"must return `probabilities` .* It returns \['scores', 'tokens'\]"):
        export_classifier(model, tmp_path, flat)


@pytest.mark.parametrize("names", ["ab", [1, 2], ["good", "good"]], ids=str)
def test_names_that_are_no_different_strings_are_an_error(tmp_path, tokenizer, names):
    with pytest.raises(ValueError, match=r"`class_names` must be different strings, one for each class\. Received: "):
        export_classifier(Counter(), tmp_path, tokenizer, names)
