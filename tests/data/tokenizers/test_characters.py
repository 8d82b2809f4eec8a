import json
import re

import numpy as np
import pytest
import tensorflow as tf

from keras_attention.data import CharacterTokenizer, Tokenizer
from keras_attention.tokens import UNKNOWN


def decoded(texts):
    return [text.decode() for text in texts.numpy()]


def test_character_tokenizer_is_a_tokenizer(letters):
    assert isinstance(letters, Tokenizer)
    assert not isinstance("abc", Tokenizer)


def test_ids_follow_the_four_special_ones(letters):
    ids = letters.tokenize(["cab", "g"])
    assert ids.dtype == tf.int32
    assert ids.to_list() == [[6, 4, 5], [10]]


def test_vocabulary_names_every_id(letters):
    assert letters.vocabulary == ["[PAD]", "[START]", "[END]", "�", "a", "b", "c", "d", "e", "f", "g"]
    assert letters.vocabulary_size == 11


def test_empty_text_gives_an_empty_row(letters):
    assert letters.tokenize(["", "a", ""]).to_list() == [[], [4], []]
    assert letters.tokenize(["", ""]).to_list() == [[], []]
    assert letters.tokenize([]).to_list() == []


def test_unknown_characters_get_the_unknown_id(letters):
    assert letters.tokenize(["axb", " ", "😀"]).to_list() == [[4, UNKNOWN, 5], [UNKNOWN], [UNKNOWN]]
    assert decoded(letters.detokenize([[4, UNKNOWN, 5]])) == ["a�b"]


def test_bytes_that_are_not_utf8_are_unknown(letters):
    assert letters.tokenize([b"a\xffb"]).to_list() == [[4, UNKNOWN, 5]]


def test_replacement_character_is_the_unknown_one():
    tokenizer = CharacterTokenizer.train(["a�", b"b\xff"])
    assert tokenizer.vocabulary[4:] == ["a", "b"]
    assert tokenizer.tokenize(["�"]).to_list() == [[UNKNOWN]]


@pytest.mark.parametrize(
    "text",
    [
        "mardi 3 mars",
        "2015年3月3日",
        "3 марта 2015\u202fг.",
        "03\u200f/03",
        "मंगलवार",
        "a😀b",
        "👩\u200d🔬",
        "a\0b\0",
        " ",
        "",
    ],
)
def test_text_comes_back(text):
    tokenizer = CharacterTokenizer.train(["x", text])
    assert decoded(tokenizer.detokenize(tokenizer.tokenize([text, "x"]))) == [text, "x"]


def test_detokenize_stops_at_the_end_and_leaves_out_pad_and_start(letters):
    ids = np.array([[1, 4, 0, 5, 2, 6], [2, 4, 4, 4, 4, 4], [0, 0, 0, 0, 0, 0], [4, 5, 6, 7, 8, 9]])
    assert decoded(letters.detokenize(ids)) == ["ab", "", "", "abcdef"]


def test_detokenize_takes_ragged_ids_and_zero_lengths(letters):
    assert decoded(letters.detokenize(tf.ragged.constant([[4, 5], [], [6, 2, 6]], dtype=tf.int64))) == ["ab", "", "c"]
    assert decoded(letters.detokenize(tf.zeros((3, 0), tf.int32))) == ["", "", ""]
    assert decoded(letters.detokenize(tf.zeros((0, 5), tf.int32))) == []


def test_id_outside_the_vocabulary_raises(letters):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"= 11 is not in \[0, 11\)"):
        letters.detokenize([[4, 11]])


def test_training_sorts_by_frequency_then_code_point():
    assert CharacterTokenizer.train(["cab", "ca", "c", "d"]).vocabulary[4:] == ["c", "a", "b", "d"]


@pytest.mark.parametrize(
    "texts",
    [
        ["abb", "c"],
        ("abb", b"c"),
        [np.array(["abb", "c"])],
        [np.array([b"abb", b"c"], dtype=object)],
        [tf.constant(["abb", "c"])],
        tf.constant(["abb", "c"]),
        tf.data.Dataset.from_tensor_slices(["abb", "c"]),
        tf.data.Dataset.from_tensor_slices(["abb", "c"]).batch(2),
        (text for text in ["abb", "c"]),
    ],
    ids=["list", "bytes", "array", "object array", "tensors", "tensor", "dataset", "batches", "generator"],
)
def test_training_takes_texts_in_every_form(texts):
    assert CharacterTokenizer.train(texts).vocabulary[4:] == ["b", "a", "c"]


def test_training_leaves_out_rare_characters():
    assert CharacterTokenizer.train(["aaabbc"], minimum_count=2).vocabulary[4:] == ["a", "b"]
    assert CharacterTokenizer.train(["aaabbc"], maximum_size=5).vocabulary_size == 5


def test_saved_file_is_readable_and_loads_to_the_same_tokenizer(tmp_path):
    tokenizer = CharacterTokenizer.train(['年3\u202f"\\\n😀'])
    path = tmp_path / "new folder" / "characters.json"
    tokenizer.save(path)
    assert "年" in path.read_text(encoding="utf-8")
    assert CharacterTokenizer.load(path).vocabulary == tokenizer.vocabulary
    assert [file.name for file in path.parent.iterdir()] == ["characters.json"]


def test_saving_again_replaces_the_file(tmp_path, letters):
    path = tmp_path / "characters.json"
    CharacterTokenizer("xyz").save(path)
    letters.save(str(path))
    assert CharacterTokenizer.load(str(path)).vocabulary == letters.vocabulary


def test_failed_save_leaves_the_old_file(tmp_path, letters, monkeypatch):
    path = tmp_path / "characters.json"
    letters.save(path)

    def fail(*arguments):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        CharacterTokenizer("xyz").save(path)
    assert CharacterTokenizer.load(path).vocabulary == letters.vocabulary
    assert [file.name for file in tmp_path.iterdir()] == ["characters.json"]


def test_missing_file_raises(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no tokeniser file at .*none\.json"):
        CharacterTokenizer.load(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("abc", "Expecting value"),
        ("[1, 2]", "no dictionary with 'tokenizer'"),
        ("[" * 100_000, "recursion"),
        (json.dumps({"tokenizer": "W" * 9999}), r"it is of a W+ \.\.\. \(9999 characters\)"),
        ("{}", "'tokenizer'"),
        (json.dumps({"tokenizer": "CharacterTokenizer"}), "'characters'"),
        (json.dumps({"tokenizer": "WordTokenizer", "characters": ["a"]}), "it is of a WordTokenizer"),
        (json.dumps({"tokenizer": "CharacterTokenizer", "characters": ["a", "bc"]}), "Received 'bc' among 2"),
        (json.dumps({"tokenizer": "CharacterTokenizer", "characters": 7}), "not iterable"),
        (b"\xff\xfe", "utf-8"),
    ],
)
def test_malformed_file_raises(tmp_path, content, reason):
    path = tmp_path / "characters.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=rf"characters\.json is not a file that .* wrote: .*{reason}.* Train and save"):
        CharacterTokenizer.load(path)


def test_a_file_that_another_editor_saved_with_a_mark_is_read(tmp_path, letters):
    path = tmp_path / "characters.json"
    letters.save(path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert CharacterTokenizer.load(path).vocabulary == letters.vocabulary


@pytest.mark.parametrize(
    "text, read", [("a\ud800b", "a�b"), ("\udc00", "�"), ("a\ud83d\ude00b", "a😀b"), ("é\ud83d", "é�")]
)
def test_half_a_surrogate_pair_is_replaced_as_bytes_that_are_not_utf8_are(text, read, letters):
    assert letters.tokenize([text, "a"]).to_list() == letters.tokenize([read, "a"]).to_list()
    assert CharacterTokenizer.train([text, "z"]).vocabulary == CharacterTokenizer.train([read, "z"]).vocabulary


def test_a_tokenizer_prints_its_size(letters):
    assert repr(letters) == "CharacterTokenizer(vocabulary_size=11)"


@pytest.mark.parametrize("characters", [["a", "\ud800"], ["ab"], ["a", "b", "a"], ["�"], [""], [7]])
def test_wrong_characters_raise(characters):
    with pytest.raises(ValueError, match=f"Received {re.escape(repr(characters[-1]))} among {len(characters)}"):
        CharacterTokenizer(characters)


def test_training_without_characters_raises():
    with pytest.raises(ValueError, match=r"at least one character\. Received none"):
        CharacterTokenizer.train(["", ""])


def test_training_without_room_raises():
    with pytest.raises(ValueError, match=r"Received maximum_size=4\. Pass at least 5"):
        CharacterTokenizer.train(["a"], maximum_size=4)


def test_training_on_something_else_raises():
    with pytest.raises(TypeError, match=r"Received a dict: .*Map a data set to its texts first"):
        CharacterTokenizer.train(tf.data.Dataset.from_tensors({"text": "a"}))


def test_training_on_one_string_raises():
    with pytest.raises(TypeError, match=r"not one string\. Received: b'abc'"):
        CharacterTokenizer.train(b"abc")


def test_one_text_without_a_batch_raises(letters):
    with pytest.raises(ValueError, match=r"Received shape \(\)\. Pass one text as `\[text\]`"):
        letters.tokenize("abc")


def test_ids_of_wrong_shape_or_type_raise(letters):
    with pytest.raises(ValueError, match=r"Received int32 of shape \(3,\)"):
        letters.detokenize([4, 5, 6])
    with pytest.raises(ValueError, match=r"Received float32 of shape \(2, 3\)"):
        letters.detokenize(tf.zeros((2, 3)))


def test_function_and_saved_model_give_the_same(tmp_path):
    module = tf.Module()
    module.tokenizer = CharacterTokenizer("abcdefg")

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def ids_of(texts):
        return module.tokenizer.tokenize(texts).to_tensor()

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
    def texts_of(ids):
        return module.tokenizer.detokenize(ids)

    module.ids_of, module.texts_of = ids_of, texts_of
    tf.saved_model.save(module, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    for form in (module, loaded):
        ids = form.ids_of(["cab", "", "😀"])
        assert ids.numpy().tolist() == [[6, 4, 5], [0, 0, 0], [3, 0, 0]]
        assert decoded(form.texts_of(ids)) == ["cab", "", "�"]
        assert form.ids_of(["", ""]).shape == (2, 0)
