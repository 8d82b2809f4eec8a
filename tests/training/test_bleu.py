import sys

import keras
import numpy as np
import pytest
import sacrebleu
from reference.translations import SOURCES, TARGETS, Characters, Writer, writer

from keras_attention.training import EvaluateBleu


def evaluate_bleu(sources=SOURCES, targets=TARGETS, **options):
    return EvaluateBleu(sources, targets, Characters(), Characters(), **options)


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
    with pytest.raises(ValueError, match=r"as many target_texts\. Received 5 source_texts and 3 target_texts"):
        evaluate_bleu(targets=TARGETS[:3])


def test_no_texts_are_an_error():
    with pytest.raises(ValueError, match=r"There must be source_texts, .* Received 0 source_texts and 0 target_texts"):
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


def test_texts_may_be_tensors():
    tensorflow = pytest.importorskip("tensorflow", reason="string tensors are TensorFlow's")
    assert evaluate_bleu(tensorflow.constant(SOURCES), tensorflow.constant(TARGETS)).target_texts == TARGETS
