import json
import unicodedata

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
        ("so😀so 👩\u200d🔬", ["so", "😀", "so", "👩\u200d🔬"]),
        ("co\u00adoperate می\u200cخواهم ක්\u200dරම", ["co\u00adoperate", "می\u200cخواهم", "ක්\u200dරම"]),
        ("I ❤\ufe0f it 👍🏽!", ["i", "❤\ufe0f", "it", "👍🏽", "!"]),
        ("don\u00ad't (a\u200f) \u200fb \ufeffc", ["don\u00ad't", "(", "a\u200f", ")", "b", "c"]),
        ("\ufe0f a \ufe0fb \u0301", ["a", "b", "\u0301"]),
        ("a\ud800b \udc00", ["a", "�", "b", "�"]),
        (b"a\xffb \xc3", ["a", "�", "b", "�"]),
    ],
)
def test_text_is_cut_into_words_of_any_script_and_single_marks(text, tokens):
    assert split(text) == tokens


@pytest.mark.parametrize(
    "word",
    ["étage", "Ελλάδα".replace("ά", "\u03ac"), "việt", "한국어", "Ångström"],
    ids=["French", "Greek", "Vietnamese", "Korean", "Swedish"],
)
@pytest.mark.parametrize("written", ["NFC", "NFD"])
def test_a_word_is_the_same_however_its_accents_are_written(word, written):
    forms = [unicodedata.normalize(form, word) for form in ("NFC", "NFD")]
    tokenizer = WordTokenizer.train([unicodedata.normalize(written, word), *forms])
    assert tokenizer.vocabulary[4:] == [forms[0].lower()]
    assert tokenizer.tokenize(forms).to_list() == [[4], [4]]


def test_an_accent_that_follows_a_letter_with_another_one_is_part_of_it():
    assert WordTokenizer(["tiếng"]).tokenize(["ti\u00ea\u0301ng"]).to_list() == [[4]]


def test_a_word_in_two_spellings_is_there_twice():
    with pytest.raises(ValueError, match=r"each there once, .* among 2"):
        WordTokenizer(["é", "e\u0301"])


OLD = {"tokenizer": "WordTokenizer", "lowercase": True, "words": ["❤", "\ufe0f", "co", "operate", "e\u0301", "é"]}


def test_a_file_of_version_0_1_gives_the_ids_that_its_model_knows(tmp_path):
    path = tmp_path / "words.json"
    path.write_text(json.dumps(OLD))
    for _ in range(2):
        tokenizer = WordTokenizer.load(path)
        assert tokenizer.tokenize(["❤\ufe0f co\u00adoperate e\u0301 é"]).to_list() == [[4, 5, 6, 7, 8, 9]]
        tokenizer.save(path)


def test_unknown_rules_raise():
    with pytest.raises(ValueError, match=r"`rules` must be one of \[1, 2\]\. Received rules=3"):
        WordTokenizer(["a"], rules=3)


def test_a_tokenizer_prints_its_size_and_options(words):
    assert repr(words) == "WordTokenizer(vocabulary_size=9, lowercase=True, rules=2)"


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
