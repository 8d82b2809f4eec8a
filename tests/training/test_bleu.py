import sys

import keras
import numpy as np
import pytest
import sacrebleu
from keras import ops

from keras_attention.models import Transformer
from keras_attention.tokens import END, PAD
from keras_attention.training import EvaluateBleu, translate_texts

SOURCES = ["the cat sat", "a", "", "the dog is on the mat", "a cat is on the dog"]
TARGETS = ["die Katze sass", "ein", "leer", "der Hund ist auf der Matte", "eine Katze ist auf dem Hund"]


class Rows(list):
    """A ragged batch of ids."""

    def to_tensor(self):
        length = max(map(len, self), default=0)
        return np.array([row + [PAD] * (length - len(row)) for row in self], "int32").reshape(len(self), length)


class Characters:
    """A tokeniser without TensorFlow: id = code point."""

    def tokenize(self, texts):
        return Rows([ord(character) for character in text] for text in texts)

    def detokenize(self, ids):
        texts = ("".join(map(chr, row)).split(chr(END))[0].strip(chr(PAD)) for row in ids)
        return np.array([text.encode() for text in texts], dtype=object)


class Writer(keras.Model):
    """A model that writes, for each text it knows, what it is told to, and remembers the batches."""

    def __init__(self, translations):
        super().__init__()
        self.translations = translations
        self.calls = []
        self.bias = self.add_weight(shape=(1,), name="bias")

    def call(self, inputs):
        return ops.add(inputs, self.bias)

    def generate(self, inputs, max_length, sampler):
        self.calls.append((inputs.shape, max_length, sampler))
        sources = [text.decode() for text in Characters().detokenize(inputs)]
        ids = np.full((len(sources), max_length), PAD, "int32")
        for row, source in zip(ids, sources, strict=True):
            written = [*map(ord, self.translations[source]), END][:max_length]
            row[: len(written)] = written
        return ids


def writer(translations=TARGETS):
    model = Writer(dict(zip(SOURCES, translations, strict=True)))
    model.compile(optimizer="sgd", loss="mse", run_eagerly=True)
    return model


def evaluate_bleu(sources=SOURCES, targets=TARGETS, **options):
    return EvaluateBleu(sources, targets, Characters(), Characters(), **options)


def translate(model, texts, **options):
    return translate_texts(model, texts, Characters(), Characters(), verbose=0, **options)


class ScriptedWriter(keras.callbacks.Callback):
    """Epoch n translates as many texts rightly as `right[n]` says."""

    def __init__(self, right):
        super().__init__()
        self.right = right

    def on_epoch_begin(self, epoch, logs=None):
        count = self.right[epoch]
        self.model.translations = dict(zip(SOURCES, TARGETS[:count] + ["falsch"] * (5 - count), strict=True))


def train(right, callbacks, **options):
    ones, callbacks = np.ones((3, 1), "float32"), [ScriptedWriter(right), *callbacks]
    model = writer()
    return model, model.fit(ones, ones, epochs=len(right), callbacks=callbacks, **{"verbose": 0, **options})


def score_of(count, **options):
    """sacrebleu's number for `count` right translations."""
    return sacrebleu.corpus_bleu(TARGETS[:count] + ["falsch"] * (5 - count), [TARGETS], **options).score


# === translate_texts ===


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
    assert evaluate_bleu(tensorflow.constant(SOURCES), tensorflow.constant(TARGETS)).target_texts == TARGETS


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


# === EvaluateBleu ===


@pytest.mark.parametrize("options", [{}, {"lowercase": True}, {"tokenize": "none"}, {"tokenize": "char"}])
def test_evaluate_gives_the_score_of_sacrebleu_and_the_translations(options):
    written = [text.replace("Katze", "katze") for text in TARGETS[:3]] + ["der Hund ist da.", "Hund"]
    score, translations = evaluate_bleu(**options).evaluate(writer(written), verbose=0)
    assert translations == written
    assert score.score == sacrebleu.corpus_bleu(written, [TARGETS], **options).score
    assert 0 < score.score < 100


def test_the_score_is_the_formula():
    """1 of 2 texts right: precisions 4/5, 3/3, 2/2 and 1/1, brevity penalty exp(1 - 8/5)."""
    sources, targets = ["a", ""], ["ein Hund auf Deck", "ein Hund auf Gras"]
    model = Writer({"a": "ein Hund auf Deck", "": "leer"})
    score, _ = evaluate_bleu(sources, targets).evaluate(model, verbose=0)
    assert score.score == pytest.approx(100 * np.exp(1 - 8 / 5) * (4 / 5) ** (1 / 4))


def test_options_of_the_search_reach_the_model():
    model = writer()
    evaluate_bleu(sampler="sampler", max_length=29, batch_size=5).evaluate(model, verbose=0)
    assert model.calls == [((5, 21), 29, "sampler")]


def test_every_epoch_has_its_score_in_the_history():
    _, history = train([1, 5, 3], [evaluate_bleu()])
    assert history.history["val_bleu"] == [score_of(1), pytest.approx(100), score_of(3)]


def test_epochs_between_evaluations_have_no_score():
    seen = []
    watch = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append("val_bleu" in logs))
    model, history = train([1, 2, 3, 4, 5], [evaluate_bleu(every=2), watch])
    assert seen == [False, True, False, True, False]
    assert history.history["val_bleu"] == [score_of(2), score_of(4)]
    assert len(model.calls) == 2


def test_the_score_is_printed_in_the_line_of_the_epoch(capsys):
    train([3], [evaluate_bleu()], verbose=2)
    assert f"val_bleu: {score_of(3):.4f}" in capsys.readouterr().out


def test_callbacks_that_follow_see_the_score(tmp_path):
    early = keras.callbacks.EarlyStopping("val_bleu", mode="max", patience=2)
    table = keras.callbacks.CSVLogger(tmp_path / "log.csv")
    _, history = train([2, 4, 3, 1, 5], [evaluate_bleu(), early, table])
    assert len(history.history["val_bleu"]) == 4
    header, *rows = (tmp_path / "log.csv").read_text().splitlines()
    column = header.split(",").index("val_bleu")
    assert [float(row.split(",")[column]) for row in rows] == history.history["val_bleu"]


def test_a_resumed_checkpoint_keeps_the_best_that_its_model_is_worth(tmp_path):
    def best(**options):
        path, options = tmp_path / "best.weights.h5", {"mode": "max", "save_best_only": True, **options}
        return keras.callbacks.ModelCheckpoint(path, "val_bleu", save_weights_only=True, **options)

    model, _ = train([1, 4], [evaluate_bleu(), best()])
    (file,) = tmp_path.iterdir()
    written = file.read_bytes()
    score, _ = evaluate_bleu().evaluate(model, verbose=0)
    resumed = [evaluate_bleu(), best(initial_value_threshold=score.score)]
    train([1, 4, 3], resumed, initial_epoch=2)
    assert file.read_bytes() == written
    train([1, 4, 5], resumed, initial_epoch=2)
    assert file.read_bytes() != written


def test_sources_and_targets_of_different_number_are_an_error():
    with pytest.raises(ValueError, match=r"one target for each source\. Received 5 source_texts and 3 target_texts"):
        evaluate_bleu(targets=TARGETS[:3])


def test_no_texts_are_an_error():
    with pytest.raises(ValueError, match=r"at least one text, .* Received 0 source_texts and 0 target_texts"):
        evaluate_bleu([], [])


@pytest.mark.parametrize("name", ["max_length", "batch_size", "every"])
def test_numbers_that_are_not_positive_are_an_error(name):
    with pytest.raises(ValueError, match=rf"`{name}` must be a positive integer\. Received: 0"):
        evaluate_bleu(**{name: 0})


def test_objects_that_are_no_tokeniser_are_an_error():
    with pytest.raises(TypeError, match=r"`source_tokenizer` must have the method `tokenize` .* Received str"):
        EvaluateBleu(SOURCES, TARGETS, "Characters", Characters())
    with pytest.raises(TypeError, match=r"`target_tokenizer` must have the method `detokenize` .* Received dict"):
        EvaluateBleu(SOURCES, TARGETS, Characters(), {})


def test_options_that_sacrebleu_does_not_have_are_an_error():
    with pytest.raises(TypeError, match="lower_case"):
        evaluate_bleu(lower_case=True)


def test_without_sacrebleu_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[translation\]'"):
        evaluate_bleu()
