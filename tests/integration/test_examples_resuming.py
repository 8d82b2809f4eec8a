"""`translate_text.py` goes on where it was interrupted, and takes no other run for the one that it finds."""

import functools
import json
import shutil
import zipfile

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("the example reads and exports with TensorFlow", allow_module_level=True)

import translate_text
from integration.example_runs import refusal, run
from small_text import write_small_text

from keras_attention.data import SubwordTokenizer

EPOCHS = 2


@pytest.fixture(scope="module", autouse=True)
def small():
    """The example with a small model, without BLEU and what follows the training."""
    with pytest.MonkeyPatch.context() as patch:
        sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 8}
        original = translate_text.Transformer
        patch.setattr(translate_text, "Transformer", lambda size, **options: original(size, **{**options, **sizes}))
        # A few steps take less time than compiling them.
        patch.setattr(original, "compile", functools.partialmethod(original.compile, run_eagerly=True))
        patch.setattr(translate_text, "EvaluateBleu", lambda *texts, **options: keras.callbacks.Callback())
        patch.setattr(translate_text, "use", lambda *results: None)
        yield


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return write_small_text(tmp_path_factory.mktemp("text"))


def arguments(text, output, epochs=EPOCHS, **options):
    settings = {"vocabulary-size": 300, "batch-size": 64, "epochs": epochs, "data": text, "output": output, **options}
    return [each for name, value in settings.items() for each in (f"--{name}", value)]


@pytest.fixture(scope="module")
def finished(text, tmp_path_factory):
    """The folder of a run that nothing interrupted, and what it printed."""
    output = tmp_path_factory.mktemp("finished")
    return output, run(translate_text.main, *arguments(text, output))


@pytest.fixture
def copy(finished, tmp_path):
    return shutil.copytree(finished[0], tmp_path / "copy")


def weights(folder):
    return keras.saving.load_model(folder / "model.keras", compile=False).get_weights()


def test_an_interrupted_run_ends_as_one_that_never_was(text, finished, tmp_path, monkeypatch):
    class Interrupt(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if self.model.optimizer.iterations == 5:  # the second epoch has steps 4 to 6
                raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(translate_text, "EvaluateBleu", lambda *texts, **options: Interrupt())
        run(translate_text.main, *arguments(text, tmp_path))
    assert "Goes on after epoch 1." in run(translate_text.main, *arguments(text, tmp_path))
    for weight, expected in zip(weights(tmp_path), weights(finished[0]), strict=True):
        np.testing.assert_array_equal(weight, expected)


def test_a_finished_run_says_that_there_is_nothing_to_do(text, copy, finished):
    printed = run(translate_text.main, *arguments(text, copy))
    assert "Already trained, for 2 epochs: nothing to do. A larger --epochs trains on." in printed
    for weight, expected in zip(weights(copy), weights(finished[0]), strict=True):
        np.testing.assert_array_equal(weight, expected)


def test_a_finished_run_takes_more_epochs(text, copy):
    assert "Goes on after epoch 2." in run(translate_text.main, *arguments(text, copy, epochs=3))
    assert (copy / "checkpoints" / "epoch_0003.weights.h5").is_file()


def test_the_loss_has_the_label_smoothing_of_the_paper(finished):
    with zipfile.ZipFile(finished[0] / "model.keras") as file:
        config = json.loads(file.read("config.json"))
    assert config["compile_config"]["loss"]["config"]["label_smoothing"] == 0.1


def test_mended_data_are_another_run(text, copy, tmp_path):
    mended = shutil.copytree(text, tmp_path / "mended")
    lines = (mended / "train.de").read_text(encoding="utf-8").splitlines(keepends=True)
    (mended / "train.de").write_text("".join([*lines[1:], lines[0]]), encoding="utf-8")
    words = refusal(translate_text.main, *arguments(mended, copy))
    assert f"{copy} holds another run (data " in words
    assert "Choose another --output" in words


def test_other_settings_are_another_run(text, copy):
    words = refusal(translate_text.main, *arguments(text, copy, **{"max-length": 50, "precision": "mixed_bfloat16"}))
    assert "precision float32, now mixed_bfloat16; max_length 100, now 50" in words


def test_a_cut_off_checkpoint_is_named(text, copy):
    path = copy / "checkpoints" / "epoch_0002.weights.h5"
    path.write_bytes(path.read_bytes()[:3000])
    words = refusal(translate_text.main, *arguments(text, copy))
    assert f"{path} cannot be read" in words
    path.unlink()
    assert "Goes on after epoch 1." in run(translate_text.main, *arguments(text, copy))


def test_the_count_is_that_of_the_pairs_that_are_learned(text, finished, tmp_path):
    assert "172 pairs, 6 steps" in finished[1]
    assert "Left out" not in finished[1]
    printed = run(translate_text.main, *arguments(text, tmp_path, epochs=1, **{"max-length": 20}))
    tokenizer = SubwordTokenizer.load(finished[0] / "subwords.model")
    sides = [(text / f"train.{language}").read_text(encoding="utf-8").splitlines() for language in ("en", "de")]
    lengths = [[len(ids) for ids in tokenizer.tokenize(side).to_list()] for side in sides]
    learned = sum(max(pair) <= 20 for pair in zip(*lengths, strict=True))
    assert 0 < learned < 172
    assert f" {learned} pairs, " in printed
    assert f"Left out: {172 - learned} pairs with an empty side or more than 20 subwords (--max-length)" in printed


def test_as_many_subwords_as_the_texts_have(text, tmp_path):
    texts = [(text / f"train.{language}").read_text(encoding="utf-8").splitlines() for language in ("en", "de")]
    learn = functools.partial(translate_text.learn_subwords, texts)
    sizes = []
    printed = run(lambda _: sizes.append(learn(6000).vocabulary_size))
    assert printed == f"{sizes[0]} subwords: the texts do not have the 6,000 of --vocabulary-size.\n"
    assert 260 < sizes[0] < 1000
