"""Text around functions on ids, without a SavedModel: every id that they receive is known."""

import pytest
import tensorflow as tf

from keras_attention.serving.text_signatures import check_tokenizers, check_vocabularies, text_signatures
from keras_attention.tokens import END


@pytest.fixture(scope="module")
def pair_tokenizer(tokenizer):
    """The tokeniser of the other tests, which also shows its tokens."""
    tokenizer = type(tokenizer)()
    tokenizer.token_strings = lambda ids: tf.where(ids == END, "[END]", tokenizer.to_letters.lookup(ids))
    return tokenizer


def around(endpoints, tokenizer, limits):
    """`{name: function(argument=texts)}` of the signatures on text."""

    def on_lists(function, arguments):
        @tf.function(autograph=False, input_signature=[{name: tf.TensorSpec((None,), tf.string) for name in arguments}])
        def compiled(texts):
            return function(texts)

        return lambda **texts: {
            name: output.numpy().tolist()
            for name, output in compiled({name: tf.constant(text, tf.string) for name, text in texts.items()}).items()
        }

    signatures = text_signatures(endpoints, "ids", tokenizer, tokenizer, limits)
    return {name: on_lists(*signature) for name, signature in signatures.items()}


def echo(inputs):
    """Answers with the ids that it was given."""
    return {"tokens": inputs["ids"], "scores": tf.zeros(tf.shape(inputs["ids"])[:1])}


def given(inputs):
    return dict(inputs)


@pytest.fixture
def signatures(pair_tokenizer):
    return around(
        {"first": echo, "score_ids": given, "align_ids": given}, pair_tokenizer, {"ids": (7,), "target": (3,)}
    )


def test_the_source_is_padded_and_the_target_has_the_end_symbol(signatures):
    ids = signatures["score"](source=["abc", "", "g?"], target=["", "ab", "d"])
    sources, targets = [[4, 5, 6], [0, 0, 0], [10, 3, 0]], [[2, 0, 0], [4, 5, 2], [7, 2, 0]]
    assert ids == {"source": sources, "target": targets, "error": [b""] * 3}


def test_align_shows_the_tokens_and_nothing_at_padding(signatures):
    outputs = signatures["align"](source=["ab", "c"], target=["d", "ef"])
    assert outputs["source_tokens"] == [[b"a", b"b"], [b"c", b""]]
    assert outputs["target_tokens"] == [[b"d", b"[END]", b""], [b"e", b"f", b"[END]"]]
    assert outputs["target"] == [[7, 2, 0], [8, 9, 2]]  # what the signature on ids returns is passed on


def test_nothing_but_empty_texts_has_length_zero_and_no_text_has_no_rows(signatures):
    outputs = signatures["align"](source=["", ""], target=["", ""])
    assert outputs["source"] == outputs["source_tokens"] == [[], []]
    assert outputs["target_tokens"] == [[b"[END]"], [b"[END]"]]
    assert signatures["score"](source=[], target=[]) == {"source": [], "target": [], "error": []}
    assert signatures["serving_default"](text=["", ""])["text"] == [b"", b""]
    assert signatures["serving_default"](text=[]) == {"text": [], "scores": []}


def test_several_answers_to_a_text_come_in_rows(pair_tokenizer):
    def two(inputs):
        return {"tokens": tf.stack([inputs["ids"], tf.reverse(inputs["ids"], [1])], axis=1)}  # (B, 2, S)

    serving_default = around({"first": two}, pair_tokenizer, {})["serving_default"]
    assert serving_default(text=["abc", "def", "gab"])["text"] == [[b"abc", b"cba"], [b"def", b"fed"], [b"gab", b"bag"]]
    assert serving_default(text=[])["text"] == []
    assert serving_default(text=[""])["text"] == [[b"", b""]]


def test_a_source_beyond_the_limit_is_cut_and_a_target_is_not(pair_tokenizer):
    signatures = around({"first": echo, "score_ids": given}, pair_tokenizer, {"ids": (2,)})
    assert signatures["serving_default"](text=["abc", "d"])["text"] == [b"ab", b"d"]
    ids = signatures["score"](source=["abc", "d"], target=["abc", "d"])
    assert ids == {"source": [[4, 5], [7, 0]], "target": [[4, 5, 6, 2], [7, 2, 0, 0]], "error": [b"", b""]}


class Measuring(tf.Module):
    """Has one id for each text: its length in characters."""

    def tokenize(self, texts):
        return tf.RaggedTensor.from_tensor(tf.strings.length(texts, "UTF8_CHAR")[:, None])


def test_what_no_id_can_need_is_not_even_tokenised():
    signatures = around({"first": given, "score_ids": given}, Measuring(), {"ids": (3,), "target": (2,)})
    outputs = signatures["score"](source=["é" * 1001, "a"], target=["b" * 65, "é" * 64])
    assert outputs["source"] == [[0], [1]]  # the row of the refused target has no source either
    assert outputs["target"] == [[0, 0], [64, 2]]
    assert outputs["error"] == [b"`target` must have at most 64 characters. Send a shorter one.", b""]
    assert signatures["score"](source=["é" * 1001], target=["b"])["source"] == [[96]]


class MeasuringBytes(tf.Module):
    def tokenize(self, texts):
        return tf.RaggedTensor.from_tensor(tf.strings.length(texts)[:, None])


def test_bytes_that_are_no_characters_are_limited_too():
    signatures = around({"first": given, "score_ids": given}, MeasuringBytes(), {"ids": (3,), "target": (2,)})
    outputs = signatures["score"](source=[b"\x80" * 5003, "😀" * 101], target=["a", b"\x80" * 257])
    assert outputs["error"] == [b"", b"`target` must have at most 64 characters. Send a shorter one."]
    assert outputs["source"][0] == [4 * 96]
    assert signatures["score"](source=["😀" * 101], target=["😀" * 64]) == {
        "source": [[4 * 96]],
        "target": [[4 * 64, 2]],
        "error": [b""],
    }


def test_a_target_that_is_too_long_lengthens_nothing_of_its_neighbours(pair_tokenizer):
    signatures = around({"first": echo, "align_ids": given}, pair_tokenizer, {"ids": (7,), "target": (3,)})
    outputs = signatures["align"](source=["a", "b"], target=["c", "abcdefg"])
    assert outputs["target_tokens"][0] == [b"c", b"[END]", b""]
    assert outputs["target"][1] == [4, 5, 6, 7]  # enough for the signature on ids to refuse it


def test_only_what_exists_on_ids_exists_on_text(pair_tokenizer):
    assert set(around({"first": echo}, pair_tokenizer, {})) == {"serving_default"}
    assert set(around({"first": echo, "align_ids": given}, pair_tokenizer, {})) == {"serving_default", "align"}


def test_methods_are_asked_for_where_they_are_called(tokenizer, pair_tokenizer):
    class Reader(tf.Module):
        def detokenize(self, ids): ...

    check_tokenizers({"first": None}, tokenizer, Reader())
    check_tokenizers({"first": None, "score_ids": None, "align_ids": None}, pair_tokenizer, pair_tokenizer)
    with pytest.raises(TypeError, match=r"`target_tokenizer` must be .* the method `tokenize`.* type Reader"):
        check_tokenizers({"first": None, "score_ids": None}, tokenizer, Reader())
    with pytest.raises(TypeError, match=r"`source_tokenizer` must be .* the method `token_strings`.* LetterTokenizer"):
        check_tokenizers({"first": None, "align_ids": None}, tokenizer, pair_tokenizer)


def test_the_target_must_be_written_and_read_in_the_vocabulary_of_the_model():
    class Sized:
        def __init__(self, vocabulary_size):
            self.vocabulary_size = vocabulary_size

    class Model:
        vocabulary_sizes = {"source": 19, "target": 23}  # noqa: RUF012

    check_vocabularies(Model(), Sized(17), Sized(23))
    check_vocabularies(Model(), object(), object())
    for source, target, message in (
        (20, 23, "`source_tokenizer` must .* Received 20 ids, and the model has 19 for its source"),
        (19, 22, "`target_tokenizer` must .* Received 22 ids, and the model has 23 for its target"),
        (19, 24, "`target_tokenizer` must .* Received 24 ids, and the model has 23 for its target"),
    ):
        with pytest.raises(ValueError, match=message):
            check_vocabularies(Model(), Sized(source), Sized(target))
