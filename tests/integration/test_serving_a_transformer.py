"""From text to served text: a Transformer with tokenisers, exported and read back, answers as in Python."""

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("SavedModels are written under the TensorFlow backend", allow_module_level=True)

import tensorflow as tf

from keras_attention import serving
from keras_attention.data import CharacterTokenizer
from keras_attention.models import Transformer

MAX_LENGTH = 7
TEXTS = ["abc", "", "a much longer line", "zzz", "ñ🙂"]


@pytest.fixture(scope="module")
def translator():
    keras.utils.set_random_seed(11)
    source_tokenizer = CharacterTokenizer("abcdefghijklmnop ")
    target_tokenizer = CharacterTokenizer("0123456789-")
    model = Transformer(
        source_tokenizer.vocabulary_size,
        target_tokenizer.vocabulary_size,
        num_layers=1,
        num_heads=2,
        hidden_dim=6,
        intermediate_dim=13,
    )
    return model, source_tokenizer, target_tokenizer


@pytest.fixture(scope="module")
def signatures(translator, tmp_path_factory):
    version = serving.export(translator[0], tmp_path_factory.mktemp("served"), *translator[1:], max_length=MAX_LENGTH)
    loaded = tf.saved_model.load(version)
    return {**loaded.signatures, "keep": loaded}


@pytest.mark.parametrize("texts", [TEXTS, TEXTS[:1], ["", ""], TEXTS[2:]])
def test_served_answers_equal_those_of_python(translator, signatures, texts):
    model, source_tokenizer, target_tokenizer = translator
    source = source_tokenizer.tokenize(texts).to_tensor()
    expected = model.generate(source, max_length=MAX_LENGTH)
    served = signatures["serving_default"](text=tf.constant(texts))
    assert served["text"].numpy().tolist() == target_tokenizer.detokenize(expected).numpy().tolist()
    assert served["scores"].dtype == tf.float32 and np.isfinite(served["scores"]).all()
    ids = signatures["translate_ids"](source=source)
    np.testing.assert_array_equal(ids["tokens"], expected)
    np.testing.assert_allclose(ids["scores"], served["scores"], atol=1e-5)


def test_the_score_is_the_log_probability_of_the_answer(translator, signatures):
    model, source_tokenizer, _ = translator
    source = source_tokenizer.tokenize(TEXTS[:1]).to_tensor().numpy()
    answer = signatures["translate_ids"](source=source)
    tokens = answer["tokens"].numpy()
    logits = model({"source": source, "target": np.concatenate([[[1]], tokens[:, :-1]], axis=1)})
    log_probabilities = tf.nn.log_softmax(logits, axis=-1).numpy()
    expected = sum(log_probabilities[0, t, token] for t, token in enumerate(tokens[0]) if token)
    np.testing.assert_allclose(answer["scores"].numpy()[0], expected, atol=1e-4)


def test_the_encoder_is_served_for_any_batch_and_length(translator, signatures):
    model, source_tokenizer, _ = translator
    for texts in (TEXTS, TEXTS[:1], TEXTS[2:3]):
        source = source_tokenizer.tokenize(texts).to_tensor()
        np.testing.assert_allclose(signatures["encode"](source=source)["encoded"], model.encode(source), atol=1e-5)


def test_signatures_have_the_documented_names_and_types(signatures):
    inputs = {
        name: {argument: spec.dtype for argument, spec in signatures[name].structured_input_signature[1].items()}
        for name in ("serving_default", "translate_ids", "encode")
    }
    assert inputs == {
        "serving_default": {"text": tf.string},
        "translate_ids": {"source": tf.int32},
        "encode": {"source": tf.int32},
    }


def test_tokenisers_of_another_vocabulary_are_refused(translator, tmp_path):
    model, source_tokenizer, target_tokenizer = translator
    larger = CharacterTokenizer("abcdefghijklmnopqrstuvwxyz ")
    with pytest.raises(ValueError, match=r"`source_tokenizer` must .* Received 31 ids, and the model has 21"):
        serving.export(model, tmp_path / "served", larger, target_tokenizer)
    with pytest.raises(ValueError, match=r"`target_tokenizer` must .* Received 5 ids, and the model has 15"):
        serving.export(model, tmp_path / "served", source_tokenizer, CharacterTokenizer("0"))
    assert not (tmp_path / "served").exists()
