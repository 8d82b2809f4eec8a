import numpy as np
import pytest
from reference.translations import SOURCES, TARGETS, Characters, writer

from keras_attention.evaluation import translate_texts
from keras_attention.models import Transformer


def translate(model, texts, **options):
    return translate_texts(model, texts, Characters(), Characters(), verbose=0, **options)


@pytest.mark.parametrize("batch_size", [1, 2, 3, 128])
def test_translations_come_in_the_order_of_the_texts(batch_size):
    assert translate(writer(), SOURCES, batch_size=batch_size) == TARGETS


def test_batches_hold_texts_of_similar_length_the_longest_first():
    model = writer()
    translate(model, SOURCES, batch_size=2, max_length=31, sampler="sampler")
    assert model.calls == [((2, 21), 31, "sampler"), ((2, 11), 31, "sampler"), ((1, 0), 31, "sampler")]


def test_max_length_cuts_the_translations():
    assert translate(writer(), SOURCES, max_length=3) == [target[:3] for target in TARGETS]


@pytest.mark.parametrize("kind", ["bytes", "objects", "strings"])
def test_texts_may_be_bytes_and_arrays(kind):
    encoded = [text.encode() for text in SOURCES]
    texts = {"bytes": encoded, "objects": np.array(encoded, dtype=object), "strings": np.array(SOURCES)}[kind]
    assert translate(writer(), texts) == TARGETS


def test_texts_may_be_a_tensor():
    tensorflow = pytest.importorskip("tensorflow", reason="string tensors are TensorFlow's")
    assert translate(writer(), tensorflow.constant(SOURCES)) == TARGETS


def test_no_texts_have_no_translations():
    assert translate(writer(), []) == []


def test_progress_is_shown_unless_verbose_is_zero(capsys):
    translate_texts(writer(), SOURCES, Characters(), Characters(), batch_size=2)
    assert "5/5" in capsys.readouterr().out
    translate_texts(writer(), SOURCES, Characters(), Characters(), verbose=0)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("texts", ["one text", [["a"], ["b"]], ["a", 7], [None]])
def test_texts_that_are_not_strings_are_an_error(texts):
    with pytest.raises(TypeError, match=r"`texts` must be a list, array or tensor of strings, of shape \(B,\)\. Rece"):
        translate(writer(), texts)


def test_a_batch_size_of_zero_is_an_error():
    with pytest.raises(ValueError, match=r"`batch_size` must be a positive integer\. Received: 0"):
        translate(writer(), SOURCES, batch_size=0)


def test_a_transformer_translates_an_empty_text_in_a_batch_as_it_does_alone():
    data = pytest.importorskip("keras_attention.data", reason="the tokenisers need TensorFlow")
    tokenizer = data.CharacterTokenizer.train(SOURCES)
    model = Transformer(tokenizer.vocabulary_size, num_layers=1, num_heads=2, hidden_dim=6, intermediate_dim=13)

    def translate(texts):
        return translate_texts(model, texts, tokenizer, tokenizer, max_length=7, verbose=0)

    together = translate(["", "the", "a cat"])
    assert together[0] == translate([""])[0]
    assert len(set(together)) > 1
