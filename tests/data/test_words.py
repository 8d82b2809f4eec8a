import json

import pytest
import tensorflow as tf

from keras_attention.data import Tokenizer, WordTokenizer
from keras_attention.tokens import UNKNOWN


@pytest.fixture(scope="module")
def words():
    """Tokeniser whose ids are 4 to 8."""
    return WordTokenizer(["not", "bad", ".", "don't", "grün"])


def split(text, lowercase=True):
    return [
        token.decode() for token in WordTokenizer(["a" if lowercase else "A"], lowercase).split([text]).to_list()[0]
    ]


def test_word_tokenizer_is_a_tokenizer(words):
    assert isinstance(words, Tokenizer)
    assert words.vocabulary == ["[PAD]", "[START]", "[END]", "�", "not", "bad", ".", "don't", "grün"]
    assert words.vocabulary_size == 9


def test_ids_are_those_of_words_and_marks_and_unknown(words):
    ids = words.tokenize(["Not BAD.", "", "don't say bad...", " \n"])
    assert ids.dtype == tf.int32
    assert ids.to_list() == [[4, 5, 6], [], [7, UNKNOWN, 5, 6, 6, 6], []]
    assert words.tokenize(["", ""]).to_list() == [[], []]
    assert words.tokenize([]).to_list() == []


@pytest.mark.parametrize(
    "text, tokens",
    [
        ("Well-kept: 3.5!", ["well", "-", "kept", ":", "3", ".", "5", "!"]),
        ("the dogs' 'bone' isn’t l'été", ["the", "dogs", "'", "'", "bone", "'", "isn’t", "l'été"]),
        ("snake_case R2D2 (x)", ["snake", "_", "case", "r2d2", "(", "x", ")"]),
        ("ÄRGER Ωμέγα МИР", ["ärger", "ωμέγα", "мир"]),
        ("e\u0301te\u0301 हिन्दी", ["e\u0301te\u0301", "हिन्दी"]),
        ("a\u00a0b\u3000c\u2028d\u200be\0f\tg", ["a", "b", "c", "d", "e", "f", "g"]),
        ("so😀so 👩\u200d🔬", ["so", "😀", "so", "👩", "🔬"]),
        (b"a\xffb \xc3", ["a", "�", "b", "�"]),
    ],
)
def test_text_is_cut_into_words_of_any_script_and_single_marks(text, tokens):
    assert split(text) == tokens


def test_case_is_kept_on_request():
    assert split("Ärger UND", lowercase=False) == ["Ärger", "UND"]
    assert WordTokenizer(["US", "us"], lowercase=False).tokenize(["US us Us"]).to_list() == [[4, 5, UNKNOWN]]


def test_bytes_that_are_not_utf8_and_the_replacement_character_are_unknown(words):
    assert words.tokenize([b"bad \xff bad", "�"]).to_list() == [[5, UNKNOWN, 5], [UNKNOWN]]


def test_detokenize_puts_spaces_between_tokens_and_stops_at_the_end(words):
    texts = words.detokenize([[1, 4, 0, 5, 6, 2, 7], [2, 4, 4, 4, 4, 4, 4], [UNKNOWN, 5, 0, 0, 0, 0, 0]])
    assert [text.decode() for text in texts.numpy()] == ["not bad .", "", "� bad"]
    assert words.detokenize(tf.ragged.constant([[8], []])).numpy().tolist() == ["grün".encode(), b""]


def test_training_sorts_by_frequency_then_code_point():
    texts = ["b a. B", tf.constant("ä b"), b"\xff"]
    assert WordTokenizer.train(texts).vocabulary[4:] == ["b", ".", "a", "ä"]
    assert WordTokenizer.train(texts, minimum_count=2).vocabulary[4:] == ["b"]
    assert WordTokenizer.train(texts, maximum_size=6).vocabulary[4:] == ["b", "."]
    assert WordTokenizer.train(texts, lowercase=False).vocabulary[4:] == ["b", ".", "B", "a", "ä"]


def test_training_reads_texts_beyond_one_batch():
    assert WordTokenizer.train(f"w{number}" for number in range(2053)).vocabulary_size == 4 + 2053


@pytest.mark.parametrize("lowercase", [True, False])
def test_saved_file_is_readable_and_loads_to_the_same_tokenizer(tmp_path, lowercase):
    tokenizer = WordTokenizer.train(["Grün isn't", "blau ."], lowercase=lowercase)
    path = tmp_path / "new folder" / "words.json"
    tokenizer.save(path)
    assert "ün" in path.read_text(encoding="utf-8")
    loaded = WordTokenizer.load(path)
    assert (loaded.vocabulary, loaded.lowercase) == (tokenizer.vocabulary, lowercase)


@pytest.mark.parametrize(
    "content, reason",
    [
        ("abc", "Expecting value"),
        (json.dumps({"tokenizer": "CharacterTokenizer", "characters": ["a"]}), "it is of a CharacterTokenizer"),
        (json.dumps({"tokenizer": "WordTokenizer", "words": ["a"]}), "'lowercase'"),
        (json.dumps({"tokenizer": "WordTokenizer", "lowercase": True, "words": ["a", "A"]}), "Received 'A' among 2"),
    ],
)
def test_malformed_file_raises(tmp_path, content, reason):
    path = tmp_path / "words.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=rf"words\.json is not a file that .* wrote: .*{reason}.* Train and save"):
        WordTokenizer.load(path)


@pytest.mark.parametrize("words", [["a", "not bad"], ["a", "a"], ["a", "�"], ["a", ""], ["a", "B"], ["a", 7]])
def test_wrong_words_raise(words):
    with pytest.raises(ValueError, match=rf"lowercase=True, .* Received {words[-1]!r} among 2\."):
        WordTokenizer(words)


def test_training_without_words_or_without_room_raises():
    with pytest.raises(ValueError, match=r"at least one word\. Received none"):
        WordTokenizer.train(["", " "])
    with pytest.raises(ValueError, match=r"Received maximum_size=4\. Pass at least 5"):
        WordTokenizer.train(["a"], maximum_size=4)


def test_one_text_without_a_batch_raises(words):
    with pytest.raises(ValueError, match=r"Received shape \(\)\. Pass one text as `\[text\]`"):
        words.tokenize("bad")


def test_function_and_saved_model_give_the_same(tmp_path, words):
    module = tf.Module()
    module.tokenizer = words

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def ids_of(texts):
        return module.tokenizer.tokenize(texts).to_tensor()

    module.ids_of = ids_of
    tf.saved_model.save(module, tmp_path)
    for form in (module, tf.saved_model.load(tmp_path)):
        assert form.ids_of(["Bad.", "", "GRÜN 😀 x"]).numpy().tolist() == [[5, 6, 0], [0, 0, 0], [8, 3, 3]]
        assert form.ids_of(["", ""]).shape == (2, 0)
