import sys

import keras
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from keras_attention.data import SubwordTokenizer, Tokenizer
from keras_attention.tokens import UNKNOWN

TEXTS = [
    "A dog walks.",
    "",
    " ",
    "  two  spaces  ",
    "\ttab\nline\r\nbreak\u2028",
    "👩\u200d🚒 läuft 😀",
    "2015年3月3日",
    "a\0b",
    "ﬁ ½ ß ẞ İ",
    "<s> [PAD] [END] <unk> <0x41> �",
]


def decoded(texts):
    return [text.decode() for text in texts.numpy()]


def round_trip(tokenizer, texts):
    return decoded(tokenizer.detokenize(tokenizer.tokenize(texts)))


def test_subword_tokenizer_is_a_tokenizer(subwords):
    assert isinstance(subwords, Tokenizer)


def test_vocabulary_starts_with_the_special_ids_and_the_bytes(subwords):
    assert subwords.vocabulary[:4] == ["[PAD]", "[START]", "[END]", "�"]
    assert subwords.vocabulary[4:260] == [f"<0x{byte:02X}>" for byte in range(256)]
    assert subwords.vocabulary_size == len(subwords.vocabulary) == 293


@pytest.mark.parametrize("algorithm", ["unigram", "bpe"])
def test_every_text_comes_back(english, algorithm):
    tokenizer = SubwordTokenizer.train(english, vocabulary_size=293, algorithm=algorithm, verbose=0)
    assert round_trip(tokenizer, TEXTS) == TEXTS
    assert round_trip(tokenizer, english) == english


def test_the_sign_of_a_space_becomes_a_space_and_bytes_that_are_not_utf8_are_replaced(subwords):
    assert round_trip(subwords, ["a▁b", b"a\xffb"]) == ["a b", "a�b"]


def test_half_a_surrogate_pair_is_replaced(subwords, english):
    assert round_trip(subwords, ["a\ud800b"]) == ["a�b"]
    vocabulary = SubwordTokenizer.train([*english, "A \ud800"], vocabulary_size=293, verbose=0).vocabulary
    assert vocabulary == SubwordTokenizer.train([*english, "A �"], vocabulary_size=293, verbose=0).vocabulary


def test_a_tokenizer_prints_its_size(subwords):
    assert repr(subwords) == "SubwordTokenizer(vocabulary_size=293)"


def test_no_text_has_an_unknown_token(subwords):
    assert UNKNOWN not in subwords.tokenize(TEXTS).flat_values.numpy()


def test_frequent_words_are_shorter_than_their_bytes(subwords, english):
    lengths = subwords.tokenize(english).row_lengths().numpy()
    assert sum(lengths) < 0.7 * sum(map(len, english))


def test_first_word_is_the_piece_it_is_elsewhere(subwords):
    first, second = subwords.token_strings(subwords.tokenize(["walks walks"])[0]).numpy()[[0, -1]]
    assert first == second or first.startswith("▁".encode())
    ids = subwords.tokenize(["the the"]).to_list()[0]
    assert ids[: len(ids) // 2] == ids[len(ids) // 2 :]


def test_ids_agree_with_sentencepiece_itself(subwords, english, tmp_path):
    subwords.save(tmp_path / "subwords.model")
    processor = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "subwords.model"))
    assert subwords.tokenize(english).to_list() == processor.encode([f" {text}" for text in english])


def test_empty_texts_give_empty_rows(subwords):
    assert subwords.tokenize(["", ""]).to_list() == [[], []]
    assert subwords.tokenize([]).to_list() == []
    assert subwords.tokenize(["", "the", ""]).row_lengths().numpy()[[0, 2]].tolist() == [0, 0]
    assert subwords.tokenize(["the"]).dtype == tf.int32


def test_detokenize_stops_at_the_end_and_leaves_out_pad_and_start(subwords):
    (ids,) = subwords.tokenize(["the dog"]).to_list()
    rows = [[1, *ids, 2, 9, 9], [2, *ids, 0, 0, 0], [0] * (len(ids) + 4), [ids[0], 0, *ids[1:], 2, 0, 0]]
    assert decoded(subwords.detokenize(np.array(rows))) == ["the dog", "", "", "the dog"]
    assert decoded(subwords.detokenize(tf.zeros((0, 5), tf.int32))) == []
    assert decoded(subwords.detokenize(tf.zeros((3, 0), tf.int32))) == ["", "", ""]


def test_tokens_can_be_shown(subwords):
    ids = subwords.tokenize(["the 😀"])
    tokens = [token.decode() for token in subwords.token_strings(ids)[0].numpy()]
    assert "".join(tokens[-4:]) == "<0xF0><0x9F><0x98><0x80>"
    assert tokens[0].startswith("▁")


@pytest.mark.parametrize("wrong", [-1, 293])
def test_an_id_outside_the_vocabulary_raises(subwords, wrong):
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"= {wrong} is not in \[0, 293\)"):
        subwords.token_strings([[4, wrong]])


def test_lower_case_is_in_the_model(english, tmp_path):
    SubwordTokenizer.train(english, vocabulary_size=283, lowercase=True, verbose=0).save(tmp_path / "lower.model")
    tokenizer = SubwordTokenizer.load(tmp_path / "lower.model")
    assert round_trip(tokenizer, ["A CAT İ ÄÖÜ ß ﬁ  😀"]) == ["a cat i̇ äöü ß ﬁ  😀"]


def test_normalization_is_in_the_model(english):
    tokenizer = SubwordTokenizer.train(english, vocabulary_size=293, normalize=True, verbose=0)
    assert round_trip(tokenizer, ["ﬁ A\u00a0b\tc ẞ"]) == ["fi A b c ẞ"]
    folded = SubwordTokenizer.train(english, vocabulary_size=283, normalize=True, lowercase=True, verbose=0)
    assert round_trip(folded, ["ﬁ A ẞ"]) == ["fi a ß"]


def test_two_trainings_agree(subwords, english):
    again = SubwordTokenizer.train(tf.data.Dataset.from_tensor_slices(english), vocabulary_size=293, verbose=0)
    assert again.vocabulary == subwords.vocabulary


def test_progress_is_shown(english, capsys):
    SubwordTokenizer.train(english, vocabulary_size=293, verbose=1)
    assert "24" in capsys.readouterr().out


def test_loading_gives_the_same_tokenizer(subwords, english, tmp_path):
    path = tmp_path / "new folder" / "subwords.model"
    subwords.save(path)
    loaded = SubwordTokenizer.load(str(path))
    assert loaded.vocabulary == subwords.vocabulary
    assert loaded.tokenize(english).to_list() == subwords.tokenize(english).to_list()
    assert [file.name for file in path.parent.iterdir()] == ["subwords.model"]


def test_function_and_saved_model_give_the_same(subwords, tmp_path):
    module = tf.Module()
    module.tokenizer = subwords
    module.ids_of = tf.function(
        lambda texts: module.tokenizer.tokenize(texts).to_tensor(), input_signature=[tf.TensorSpec([None], tf.string)]
    )
    module.texts_of = tf.function(
        lambda ids: module.tokenizer.detokenize(ids), input_signature=[tf.TensorSpec([None, None], tf.int32)]
    )
    tf.saved_model.save(module, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    assert decoded(loaded.texts_of(loaded.ids_of(TEXTS))) == TEXTS
    assert decoded(loaded.texts_of(loaded.ids_of(["", ""]))) == ["", ""]
    assert loaded.ids_of(["", ""]).shape == (2, 0)


def test_two_tokenizers_of_one_saved_model_and_of_two_in_one_process_stay_two(subwords, english, tmp_path):
    subwords.save(tmp_path / "subwords.model")
    pairs = SubwordTokenizer.train(english, vocabulary_size=293, algorithm="bpe", verbose=0)
    both = {"unigram": SubwordTokenizer.load(tmp_path / "subwords.model"), "bpe": pairs}
    expected = {name: tokenizer.tokenize(english).to_list() for name, tokenizer in both.items()}
    assert expected["unigram"] != expected["bpe"]

    def read_back(**tokenizers):
        module = tf.Module()
        module.tokenizers = tokenizers
        module.ids_of = tf.function(
            lambda texts: {name: each.tokenize(texts).to_tensor() for name, each in module.tokenizers.items()},
            input_signature=[tf.TensorSpec([None], tf.string)],
        )
        folder = tmp_path / "-".join(tokenizers)
        tf.saved_model.save(module, folder)
        return tf.saved_model.load(folder)

    loaded = [read_back(**both), read_back(bpe=pairs), read_back(unigram=both["unigram"])]
    for module in loaded:
        for name, ids in module.ids_of(english).items():
            assert [row[row != 0].tolist() for row in ids.numpy()] == expected[name]


def test_clearing_the_session_of_keras_does_no_harm(english):
    tokenizer = SubwordTokenizer.train(english, vocabulary_size=293, verbose=0)
    keras.utils.clear_session()
    assert round_trip(tokenizer, TEXTS) == TEXTS
    keras.utils.clear_session()
    texts = tf.data.Dataset.from_tensors(TEXTS).map(lambda texts: tokenizer.detokenize(tokenizer.tokenize(texts)))
    assert decoded(next(iter(texts))) == TEXTS


def test_missing_file_raises(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no tokeniser file at .*none\.model"):
        SubwordTokenizer.load(tmp_path / "none.model")


def test_other_bytes_raise(tmp_path):
    (tmp_path / "other.model").write_bytes(b"abcde")
    with pytest.raises(
        ValueError, match=r"other\.model is not a file that .* wrote: .*Received b'abcde'\..*\. Train and"
    ):
        SubwordTokenizer.load(tmp_path / "other.model")


def test_model_with_other_special_ids_raises(english, tmp_path):
    prefix = str(tmp_path / "other")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(english), model_prefix=prefix, vocab_size=37, minloglevel=2
    )
    with pytest.raises(ValueError, match=r"starts with \['<unk>', '<s>', '</s>'"):
        SubwordTokenizer.load(f"{prefix}.model")


@pytest.mark.parametrize(
    ("texts", "size", "reason"),
    [(["abc"], 1009, "Received vocabulary_size=1009, .*<= 26"), (["", ""], 293, "sentences_"), (["abc"], 7, "size=7")],
)
def test_sizes_that_texts_do_not_allow_raise(texts, size, reason):
    with pytest.raises(ValueError, match=rf"cannot learn these pieces\. .*{reason}"):
        SubwordTokenizer.train(texts, vocabulary_size=size, verbose=0)


def test_mistakes_in_the_texts_are_named():
    with pytest.raises(TypeError, match=r"not one string\. Received: 'texts\.en'.* a file its lines"):
        SubwordTokenizer.train("texts.en", verbose=0)
    with pytest.raises(TypeError, match=r"must hold strings.* Received a int: 3"):
        SubwordTokenizer.train(["abc", 3], verbose=0)
    with pytest.raises(TypeError, match=r"`vocabulary_size` must be an integer\. Received vocabulary_size=293\.0"):
        SubwordTokenizer.train(["abc"], vocabulary_size=293.0)


def test_unknown_algorithm_raises():
    with pytest.raises(ValueError, match=r"must be \"unigram\" or \"bpe\"\. Received: 'wordpiece'"):
        SubwordTokenizer.train(["a"], algorithm="wordpiece")


def test_one_text_without_a_batch_raises(subwords):
    with pytest.raises(ValueError, match=r"Received shape \(\)\. Pass one text as `\[text\]`"):
        subwords.tokenize("abc")


def test_training_without_sentencepiece_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[translation\]'"):
        SubwordTokenizer.train(["abc"])
