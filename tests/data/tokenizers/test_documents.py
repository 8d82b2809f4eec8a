import re

import pytest
import tensorflow as tf

from keras_attention.data import CharacterTokenizer, DocumentTokenizer, WordTokenizer

ALL = ("word", "sentence", "paragraph")


@pytest.fixture(scope="module")
def words():
    """Tokeniser whose ids are 4 to 8."""
    return WordTokenizer(["good", "it", "like", "see", "."])


def split(tokenizer, *texts, **options):
    """Documents as nested lists in which each sentence is its tokens with spaces between them."""

    def joined(nested):
        return [joined(each) for each in nested] if nested and isinstance(nested[0], list) else plain(nested)

    def plain(tokens):
        return " ".join(token.decode() for token in tokens) if tokens else []

    return joined(DocumentTokenizer(tokenizer, **options).split(list(texts)).to_list())


def test_a_document_becomes_sentences_of_ids(words):
    ids = DocumentTokenizer(words).tokenize(["Good. I like it.\nSee", "", "it"])
    assert ids.dtype == tf.int32
    assert ids.to_list() == [[[4, 8], [3, 6, 5, 8], [7]], [], [[5]]]
    assert ids.to_tensor().numpy().tolist()[0] == [[4, 8, 0, 0], [3, 6, 5, 8], [7, 0, 0, 0]]


def test_one_file_has_the_words_the_levels_and_the_limits(words, tmp_path, letters, subwords):
    texts = ["Good. I like it.\n\nIt; see; good; like", ""]
    options = {"levels": ALL, "max_words": 3, "max_sentences": 2, "max_paragraphs": 5, "sentence_end": ";"}
    for tokenizer in (words, letters, subwords):
        documents = DocumentTokenizer(tokenizer, **options)
        documents.save(tmp_path / "new folder" / "documents.json")
        loaded = DocumentTokenizer.load(tmp_path / "new folder" / "documents.json")
        assert {name: getattr(loaded, name) for name in options} == options
        assert loaded.tokenize(texts).to_list() == documents.tokenize(texts).to_list()
        assert repr(loaded) == repr(documents)
    assert [path.name for path in (tmp_path / "new folder").iterdir()] == ["documents.json"]


def test_a_file_that_is_no_document_tokenizer_is_named(words, tmp_path):
    words.save(tmp_path / "words.json")
    with pytest.raises(
        ValueError, match=r"words\.json is not a file that `DocumentTokenizer\.save` .* of a WordTokenizer"
    ):
        DocumentTokenizer.load(tmp_path / "words.json")
    path = tmp_path / "documents.json"
    DocumentTokenizer(words).save(path)
    for old, new in (('"max_words": null', '"max_words": -1'), ('"WordTokenizer"', '"Other"'), ('"word"', '"letter"')):
        path.write_text(path.read_text().replace(old, new))
        with pytest.raises(ValueError, match=r"documents\.json is not a file that `DocumentTokenizer\.save` wrote"):
            DocumentTokenizer.load(path)


def test_a_tokenizer_of_the_user_is_not_half_saved(tmp_path):
    class Own(WordTokenizer):
        pass

    with pytest.raises(TypeError, match=r"must be one of .* to be saved\. Received a Own"):
        DocumentTokenizer(Own(["a"])).save(tmp_path / "documents.json")
    assert list(tmp_path.iterdir()) == []


def test_a_document_tokenizer_prints_its_settings(words):
    expected = f"DocumentTokenizer({words!r}, levels=('word', 'sentence'), max_words=3)"
    assert repr(DocumentTokenizer(words, max_words=3)) == expected


def test_characters_without_a_form_hide_no_end_of_a_sentence(words):
    assert split(words, "Good.\u200f It!\u00ad\u201d See 3.\u200f5") == [
        ["good .\u200f", "it !\u00ad ”", "see 3 .\u200f 5"]
    ]


def test_half_a_surrogate_pair_is_replaced(words):
    assert split(words, "Good\ud800. It") == [["good � .", "it"]]


def test_split_gives_the_words_that_are_not_known_as_well(words):
    assert split(words, "Good. I love it", "") == [["good .", "i love it"], []]


@pytest.mark.parametrize(
    "text, sentences",
    [
        ("so it is. or not? yes! ok", ["so it is .", "or not ?", "yes !", "ok"]),
        ("a\nb\r\nc\rd\n\n\ne", ["a", "b", "c", "d", "e"]),
        ("'so (it is.)' said he", ["' so ( it is . ) '", "said he"]),
        ("really?! yes... no.", ["really ? !", "yes . . .", "no ."]),
        ("it cost 3.5 at example.com today", ["it cost 3 . 5 at example . com today"]),
        ("mr. smith", ["mr .", "smith"]),
        ("a.\u00a0b.\u3000c", ["a .", "b .", "c"]),
        (" \n \t\n", []),
        ("a \x1e b", ["a b"]),
        ("a b .\nc .\n", ["a b .", "c ."]),
        (b"\xff. b", ["� .", "b"]),
    ],
)
def test_sentences_end_at_line_breaks_and_at_marks_that_white_space_follows(words, text, sentences):
    assert split(words, text) == [sentences]


def test_another_end_of_sentences_is_followed(words):
    assert split(words, "mr . x\nb . c", sentence_end=r"\n") == [["mr . x", "b . c"]]


def test_three_levels_have_paragraphs_between_empty_lines(words):
    texts = ["\n\na b. c\nd\n \t\n\n\ne. f\r\n\r\ng\n\n \n", "", "h"]
    assert split(words, *texts, levels=ALL) == [[["a b .", "c", "d"], ["e .", "f"], ["g"]], [], [["h"]]]


def test_a_level_may_be_left_out(words):
    assert split(words, "a. b\nc", "", levels=("word",)) == ["a . b c", []]
    assert split(words, "a. b\nc\n\nd", "", levels=("word", "paragraph")) == [["a . b c", "d"], []]


def test_what_is_beyond_the_limits_is_cut_off(words):
    text = "a b c. d e f. g\n\nh i j. k. l\n\nm"
    limits = {"max_words": 2, "max_sentences": 2, "max_paragraphs": 2}
    assert split(words, text, levels=ALL, **limits) == [[["a b", "d e"], ["h i", "k ."]]]


def test_empty_sentences_do_not_count_for_the_limit(words):
    assert split(words, "\n\n \na\n\nb\nc", max_sentences=2) == [["a", "b"]]


@pytest.mark.parametrize("levels, rank", [(ALL[:1], 2), (ALL[:2], 3), (ALL, 4)])
def test_batches_without_any_token_have_sizes_of_zero(words, levels, rank):
    tokenizer = DocumentTokenizer(words, levels, max_words=3)
    assert tokenizer.tokenize(["", " \n"]).to_tensor().shape == (2,) + (0,) * (rank - 1)
    assert tokenizer.tokenize([]).to_tensor().shape == (0,) * rank


def test_tokens_of_any_tokenizer_are_shown(words):
    characters = CharacterTokenizer("ab. ")
    tokenizer = DocumentTokenizer(characters)
    assert tokenizer.vocabulary_size == 8
    assert split(characters, "ab. cb") == [["a b .  ", "� b"]]


def test_function_and_saved_model_give_the_same(tmp_path, words):
    module = tf.Module()
    module.tokenizer = DocumentTokenizer(words, ALL, max_words=3)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def nested(texts):
        return {
            "ids": module.tokenizer.tokenize(texts).to_tensor(),
            "tokens": module.tokenizer.split(texts).to_tensor(""),
        }

    module.nested = nested
    tf.saved_model.save(module, tmp_path)
    for form in (module, tf.saved_model.load(tmp_path)):
        outputs = form.nested(["Good. I like it", ""])
        assert outputs["ids"].numpy().tolist() == [[[[4, 8, 0], [3, 6, 5]]], [[[0] * 3] * 2]]
        assert outputs["tokens"].numpy()[0, 0].tolist() == [[b"good", b".", b""], [b"i", b"like", b"it"]]
        assert form.nested(["", ""])["ids"].shape == (2, 0, 0, 0)


@pytest.mark.parametrize(
    "levels", [(), ("sentence",), ("sentence", "word"), ("word", "line"), ("word", "word"), "word", None]
)
def test_other_levels_raise(words, levels):
    with pytest.raises(
        ValueError, match=r'`levels` must be "word", then .* Received levels=' + re.escape(repr(levels))
    ):
        DocumentTokenizer(words, levels)


def test_a_limit_of_another_level_or_that_is_not_positive_raises(words):
    with pytest.raises(ValueError, match=r"`max_paragraphs` needs the level 'paragraph'. Received max_paragraphs=3"):
        DocumentTokenizer(words, max_paragraphs=3)
    with pytest.raises(ValueError, match=r"`max_words` must be a positive integer\. Received: 0"):
        DocumentTokenizer(words, max_words=0)


@pytest.mark.parametrize("pattern", ["(", "a(?=b)", 7])
def test_a_pattern_that_is_none_of_re2_raises(words, pattern):
    with pytest.raises(ValueError, match=r"`sentence_end` must be a regular expression .* Received .*look-ahead"):
        DocumentTokenizer(words, sentence_end=pattern)


@pytest.mark.parametrize("pattern", ["", "x*"])
def test_a_pattern_that_matches_nothing_at_all_raises(words, pattern):
    with pytest.raises(ValueError, match=r"`sentence_end` must not match the empty string.* Received "):
        DocumentTokenizer(words, sentence_end=pattern)


def test_an_object_that_is_no_tokenizer_raises():
    with pytest.raises(TypeError, match=r"`tokenizer` must have the methods .* Received str"):
        DocumentTokenizer("words")


def test_one_text_without_a_batch_raises(words):
    with pytest.raises(ValueError, match=r"Received shape \(\)\. Pass one text as `\[text\]`"):
        DocumentTokenizer(words).tokenize("good")
