import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_attention import decoding
from keras_attention.serving import export
from keras_attention.tokens import END, PAD

LOG_HALF = float(np.log(0.5))


@pytest.fixture(scope="module")
def signatures(exported):
    return tf.saved_model.load(exported).signatures


def answer(signatures, texts):
    outputs = signatures["serving_default"](text=tf.constant(texts, tf.string))
    return outputs["text"].numpy().tolist(), outputs["scores"].numpy()


def test_text_is_answered_by_text_with_its_score(signatures):
    texts, scores = answer(signatures, ["abc", "ga"])
    assert texts == [b"bcd", b"ab"]
    np.testing.assert_allclose(scores, [4 * LOG_HALF, 3 * LOG_HALF], rtol=1e-6)  # the end symbol counts


def test_all_signatures_are_there_with_their_names_types_and_open_sizes(signatures):
    def described(name):
        specs = signatures[name].structured_input_signature[1], signatures[name].structured_outputs
        return [{key: (spec.dtype.name, spec.shape.as_list()) for key, spec in each.items()} for each in specs]

    ids = {"source": ("int32", [None, None])}
    text, scores, error = ("string", [None]), ("float32", [None]), {"error": ("string", [None])}
    assert set(signatures) == {"serving_default", "translate_ids", "encode"}
    assert described("serving_default") == [{"text": text}, {"text": text, "scores": scores, **error}]
    assert described("translate_ids") == [ids, {"tokens": ("int32", [None, 5]), "scores": scores, **error}]
    assert described("encode") == [ids, {"encoded": ("float32", [None, None, 11]), **error}]


@pytest.mark.parametrize("shape", [(1, 2), (3, 7), (2, 0), (0, 3), (0, 0)])
def test_own_signatures_equal_the_model_at_every_size(model, signatures, shape):
    source = tf.constant(np.random.default_rng(0).integers(0, 11, shape), tf.int32)
    served, direct = signatures["translate_ids"](source=source), model.translate(source, 5)
    np.testing.assert_array_equal(served["tokens"], direct["tokens"])
    np.testing.assert_allclose(served["scores"], direct["scores"], rtol=1e-6)
    np.testing.assert_array_equal(signatures["encode"](source=source)["encoded"], model.encode(source)["encoded"])


def test_empty_and_unknown_texts_get_finite_answers(signatures):
    texts, scores = answer(signatures, ["abc", "", "zzz"])
    assert texts == [b"bcd", b"", b"???"]
    np.testing.assert_allclose(scores, np.array([4, 1, 4]) * LOG_HALF, rtol=1e-6)


def test_batch_of_nothing_but_empty_texts_is_answered(signatures):
    texts, scores = answer(signatures, ["", ""])
    assert texts == [b"", b""]
    np.testing.assert_allclose(scores, [LOG_HALF, LOG_HALF], rtol=1e-6)


def test_batch_without_any_text_is_answered_by_nothing(signatures):
    texts, scores = answer(signatures, [])
    assert texts == []
    assert scores.shape == (0,)


def test_answer_stops_at_max_length(signatures):
    texts, scores = answer(signatures, ["abcdefg" * 31])
    assert texts == [b"bcdef"]
    np.testing.assert_allclose(scores, [5 * LOG_HALF], rtol=1e-6)


@pytest.mark.parametrize("name, value", [("text", [["abc"], ["a"]]), ("source", [4, 5]), ("source", [[[4, 5]]])])
def test_another_number_of_axes_is_an_error_of_the_whole_request(signatures, name, value):
    signature = signatures["serving_default" if name == "text" else "translate_ids"]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"is not compatible with expected shape|out of bounds"):
        signature(**{name: tf.constant(value)})


def test_it_loads_where_neither_keras_nor_this_package_is(exported):
    program = """
import json, sys
sys.modules.update({"keras": None, "keras_attention": None})
import tensorflow as tf
serve = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
outputs = serve(text=tf.constant(["abc", ""]))
print(json.dumps([outputs["text"].numpy().astype(str).tolist(), outputs["scores"].numpy().tolist()]))
"""
    result = subprocess.run([sys.executable, "-c", program, exported], capture_output=True, text=True, check=True)
    texts, scores = json.loads(result.stdout)
    assert texts == ["bcd", ""]
    np.testing.assert_allclose(scores, [4 * LOG_HALF, LOG_HALF], rtol=1e-6)


def test_without_tokenizers_the_first_signature_is_the_default(model, tmp_path):
    signatures = tf.saved_model.load(export(model, tmp_path, max_length=2)).signatures
    assert set(signatures) == {"serving_default", "translate_ids", "encode"}
    assert signatures["serving_default"](source=tf.constant([[4, 5, 6]]))["tokens"].numpy().tolist() == [[5, 6]]


def test_each_export_takes_the_next_version(model, tmp_path):
    folder = tmp_path / "new" / "models"
    assert export(model, folder) == str(folder / "1")
    assert export(model, str(folder)) == str(folder / "2")
    assert export(model, folder, version=7) == str(folder / "7")
    assert sorted(os.listdir(folder)) == ["1", "2", "7"]


def test_failed_export_leaves_nothing_behind(model, tokenizer, tmp_path):
    class Broken(tf.Module):
        def detokenize(self, ids):
            raise RuntimeError("no such letter")

    with pytest.raises(RuntimeError, match="no such letter"):
        export(model, tmp_path / "models", tokenizer, Broken())
    assert os.listdir(tmp_path) == []


def test_existing_version_is_an_error_that_lists_what_is_there(model, tmp_path):
    (tmp_path / "3").mkdir()
    with pytest.raises(ValueError, match=r"version=3, and .* already holds the versions \[3\]\. .* to take 4"):
        export(model, tmp_path, version=3)


def test_folder_that_cannot_be_written_is_an_error(model, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"`path` must be a folder .* path='.*file': File exists\. Choose another"):
        export(model, tmp_path / "file")
    with pytest.raises(OSError, match=r"Received path='.*file/models': Not a directory"):
        export(model, tmp_path / "file" / "models")


def test_other_backends_are_told_how_to_export(model, tmp_path, monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(ValueError, match=r"Received backend 'jax'\. Save the model .* KERAS_BACKEND=tensorflow"):
        export(model, tmp_path)


def test_model_without_signatures_is_an_error(tmp_path):
    with pytest.raises(
        TypeError, match=r"serving_signatures\(max_length=64, sampler=\.\.\.\)`\. Received an object of type Sequential"
    ):
        export(keras.Sequential(), tmp_path)


@pytest.mark.parametrize("name", ["max_length", "max_source_length"])
@pytest.mark.parametrize("length, error", [(0, ValueError), (-5, ValueError), (2.0, TypeError), (True, TypeError)])
def test_lengths_must_be_positive_integers(model, tmp_path, name, length, error):
    with pytest.raises(error, match=f"`{name}` must be .* Received {name}={length}"):
        export(model, tmp_path, **{name: length})
    assert os.listdir(tmp_path) == []


def test_one_tokenizer_without_the_other_is_an_error(model, tokenizer, tmp_path):
    with pytest.raises(ValueError, match=r"must be given together\. Received .* target_tokenizer=None"):
        export(model, tmp_path, source_tokenizer=tokenizer)


def test_tokenizer_without_its_method_is_an_error(model, tokenizer, tmp_path):
    with pytest.raises(TypeError, match=r"`target_tokenizer` must be .* the method `detokenize`.* type Module"):
        export(model, tmp_path, tokenizer, tf.Module())
    with pytest.raises(TypeError, match=r"`source_tokenizer` must be .* the method `tokenize`.* type str"):
        export(model, tmp_path, "letters", tokenizer)


class OtherSignatures(keras.Model):
    """A model that serves whatever it is given."""

    def __init__(self, **signatures):
        super().__init__()
        self.build(())
        self.signatures = signatures

    def serving_signatures(self, max_length=64, sampler=None):
        return self.signatures


class TableSearch(keras.Model):
    """After 1 comes 4 or 5, both with probability 1/2, then the end; the answer to any source."""

    def __init__(self):
        source = keras.Input((None,), dtype="int32")
        super().__init__(source, source)

    def search(self, source, max_length, sampler):
        impossible = -1e9
        table = np.full((6, 6), impossible, "float32")
        table[1, [4, 5]] = table[[4, 5], END] = table[END, END] = 0

        def step(tokens, state):
            return ops.take(table, tokens, axis=0), state

        start = ops.ones((ops.shape(source)[0],), dtype="int32")
        return dict(zip(("tokens", "scores"), sampler(step, (), start, max_length), strict=True))

    def serving_signatures(self, max_length=64, sampler=None):
        source = keras.KerasTensor((None, None), "int32", name="source")
        return {"translate_ids": (lambda source: self.search(source, max_length, sampler), {"source": source})}


def table_answers(folder, batch_size):
    outputs = tf.saved_model.load(folder).signatures["translate_ids"](source=tf.ones((batch_size, 2), tf.int32))
    return outputs["tokens"].numpy().tolist(), outputs["scores"].numpy()


def test_the_sampler_chosen_here_finds_the_served_answers(tmp_path):
    tokens, scores = table_answers(export(TableSearch(), tmp_path, max_length=3), 1)
    assert tokens in ([[4, END, PAD]], [[5, END, PAD]])
    sampler = decoding.BeamSearch(beam_width=2, num_results=2)
    tokens, scores = table_answers(export(TableSearch(), tmp_path, max_length=3, sampler=sampler), 2)
    assert [sorted(row) for row in tokens] == [[[4, END, PAD], [5, END, PAD]]] * 2
    np.testing.assert_allclose(scores, np.full((2, 2), LOG_HALF / (7 / 6) ** 0.6), rtol=1e-5)


@pytest.mark.parametrize("sampler", ["sample", decoding.Sample(seed=5)])
def test_each_request_to_a_sampler_gets_another_answer(tmp_path, sampler):
    folder = export(TableSearch(), tmp_path, max_length=3, sampler=sampler)
    signature = tf.saved_model.load(folder).signatures["translate_ids"]
    answers = [signature(source=tf.ones((97, 2), tf.int32))["tokens"].numpy() for _ in range(2)]
    assert (answers[0] != answers[1]).any()
    for tokens in answers:
        assert set(tokens[:, 0].tolist()) == {4, 5}
        assert (tokens[:, 1:] == [END, PAD]).all()
    again = tf.saved_model.load(folder).signatures["translate_ids"](source=tf.ones((97, 2), tf.int32))
    np.testing.assert_array_equal(again["tokens"], answers[0])  # a version loaded again starts again


def test_unknown_sampler_is_an_error(model, tmp_path):
    with pytest.raises(ValueError, match="Unknown sampler: 'gredy'"):
        export(model, tmp_path, sampler="gredy")


def test_texts_beyond_the_limit_are_cut_and_ids_have_their_reason(model, tokenizer, tmp_path):
    signatures = tf.saved_model.load(export(model, tmp_path, tokenizer, tokenizer, max_source_length=3)).signatures
    texts, scores = answer(signatures, ["abcdefg", "ga", ""])
    assert texts == [b"bcd", b"ab", b""]
    np.testing.assert_allclose(scores, np.array([4, 3, 1]) * LOG_HALF, rtol=1e-6)
    source = tf.constant([[4, 5, 6, 0, 0], [4, 5, 6, 7, 0], [0, 4, 5, 0, 0]])
    outputs = {name: output.numpy() for name, output in signatures["translate_ids"](source=source).items()}
    reason = b"`source` must have a length of at most 3, up to its last entry. Send a shorter one."
    assert outputs["error"].tolist() == [b"", reason, b""]
    assert outputs["tokens"][:, :4].tolist() == [[5, 6, 7, END], [PAD] * 4, [END, PAD, PAD, PAD]]
    np.testing.assert_allclose(outputs["scores"], np.array([4, np.nan, 1]) * LOG_HALF, rtol=1e-6)
    encoded = signatures["encode"](source=source)["encoded"].numpy()
    assert encoded.shape == (3, 3, 11)
    assert np.isnan(encoded).all(axis=(1, 2)).tolist() == [False, True, False]


def test_an_export_without_limits_says_which_it_has(model, tokenizer, tmp_path, capsys):
    version = export(model, tmp_path, tokenizer, tokenizer, max_length=5)
    assert capsys.readouterr().out.startswith(f"{version}: the longest rows are source 256. Other limits: `max_source")
    signatures = tf.saved_model.load(version).signatures
    assert signatures["translate_ids"](source=tf.fill([1, 257], 4))["error"].numpy() != b""
    assert answer(signatures, ["abc" * 100_003])[0] == [b"bcdbc"]  # 300 kB
    export(model, tmp_path, tokenizer, tokenizer, max_source_length=7)
    assert capsys.readouterr().out == ""


def test_text_needs_a_first_signature_with_one_input(tokenizer, tmp_path):
    ids = keras.KerasTensor((None, None), "int32")
    model = OtherSignatures(teach=(lambda source, target: {"tokens": source}, {"source": ids, "target": ids}))
    with pytest.raises(ValueError, match=r"'teach' has the inputs \['source', 'target'\]"):
        export(model, tmp_path, tokenizer, tokenizer)


def test_text_needs_a_first_signature_with_tokens(tokenizer, tmp_path):
    ids = keras.KerasTensor((None, None), "int32")
    model = OtherSignatures(encode=(lambda source: {"encoded": source}, {"source": ids}))
    with pytest.raises(ValueError, match=r"must return `tokens`.* It returns \['encoded'\]"):
        export(model, tmp_path, tokenizer, tokenizer)
    assert os.listdir(tmp_path) == []
