"""Subword tokeniser: sentencepiece learns the pieces, tensorflow-text cuts text into them inside the graph."""

import base64
import contextlib
import hashlib
import io
import pathlib
import sys
import tempfile

import keras
import tensorflow as tf
import tensorflow_text

from keras_attention.checks.arguments import check_at_least
from keras_attention.checks.messages import shortened
from keras_attention.data.tokenizers.saved import read_whole, written_by
from keras_attention.data.tokenizers.texts import as_texts, is_silent, padded_ids, strings
from keras_attention.data.tokenizers.tokenizer import SPECIAL_TOKENS
from keras_attention.extras import how_to_install
from keras_attention.files import write_whole
from keras_attention.tokens import END, PAD, START, UNKNOWN

TEXTS_BETWEEN_UPDATES = 1000
LONGEST_TEXT = 2**20  # bytes; sentencepiece passes over longer ones, and over everything above 4192 by default


class SubwordTokenizer(tf.Module):
    """Tokeniser whose tokens are frequent pieces of words, learned from text with sentencepiece.

    Frequent words are one token, rare words a few, and a character that was never seen is written as its UTF-8 bytes:
    no text is unknown, and `detokenize(tokenize(text))` is the text again, spaces, emoji and line breaks included. The
    exceptions: bytes that are not UTF-8 become "�", "▁" (U+2581), by which sentencepiece writes the space, becomes a
    space, and a tokeniser trained with `normalize` or `lowercase` gives the normalised or lower-case text.

    One tokeniser trained on the texts of both languages is a joint vocabulary, as `tie_embeddings` of a Transformer
    with one vocabulary needs it; two tokenisers, each trained on one side, are separate ones.

    Args:
        model: Bytes of a sentencepiece model that `SubwordTokenizer.train` made.

    Attributes:
        vocabulary: List of strings; entry `i` is the token with id `i`. The first four are `"[PAD]"`, `"[START]"`,
            `"[END]"` and `"�"`, 256 bytes follow, and "▁" stands for a space.
        vocabulary_size: Integer, length of `vocabulary`.

    Raises:
        ValueError: `model` is not a sentencepiece model, or its first four ids are not those of this package.

    Example:
        >>> texts = ["a low tower", "a lower town", "the lowest tower of the town", "two towers"]
        >>> tokenizer = SubwordTokenizer.train(texts, vocabulary_size=290, verbose=0)
        >>> ids = tokenizer.tokenize(["the tower 😀", ""])
        >>> [text.decode() for text in tokenizer.detokenize(ids).numpy()]
        ['the tower 😀', '']

    References:
        Kudo and Richardson, 2018, arXiv:1808.06226; unigram pieces: Kudo, 2018, arXiv:1804.10959; byte-pair encoding:
        Sennrich, Haddow and Birch, 2016, arXiv:1508.07909.
    """

    def __init__(self, model, name=None):
        super().__init__(name=name)
        self._model = model
        try:
            self._loaded = loaded(model)
            self.vocabulary_size = int(self._loaded.vocab_size())
            self._tokens = self._loaded.id_to_string(tf.range(self.vocabulary_size))  # (V,)
        except (tf.errors.OpError, TypeError, ValueError) as error:
            raise ValueError(
                f"`model` must be the bytes of a sentencepiece model. Received {shortened(repr(model))}. "
                "`SubwordTokenizer.train(texts)` makes one."
            ) from error
        first = self.vocabulary[: len(SPECIAL_TOKENS)]
        if first != list(SPECIAL_TOKENS.values()):
            raise ValueError(
                f"The first ids of a model must be {list(SPECIAL_TOKENS.values())}. Received a sentencepiece model that "
                f"starts with {first}. Train one with `SubwordTokenizer.train(texts)`."
            )

    @classmethod
    def train(cls, texts, vocabulary_size=8000, algorithm="unigram", normalize=False, lowercase=False, verbose=1):
        """Learn the pieces from texts.

        Args:
            texts: Iterable of strings, bytes, string tensors or string arrays, a `tf.data.Dataset` of strings included.
            vocabulary_size: Integer V, number of tokens, with the 4 special ids and the 256 bytes in it.
            algorithm: "unigram", or "bpe" for byte-pair encoding.
            normalize: Boolean, Unicode NFKC ("ﬁ" becomes "fi"); white space, "�" and characters without width become a
                space.
            lowercase: Boolean, every text in lower case; with `normalize` by the case folding of sentencepiece.
            verbose: 0 shows nothing, 1 shows how many texts have been read, 2 also shows the log of sentencepiece.

        Returns:
            A tokeniser.

        Raises:
            ImportError: The package sentencepiece is not installed.
            TypeError: A text is not a string, or `vocabulary_size` is not an integer.
            ValueError: There is no text, `vocabulary_size` is more or less than the texts allow, or an unknown
                algorithm.
        """
        try:
            import sentencepiece
        except ImportError as error:
            raise ImportError(
                "Training subwords needs the package sentencepiece, which is not installed. "
                f"{how_to_install('translation')} A saved tokeniser loads without it."
            ) from error
        if algorithm not in ("unigram", "bpe"):
            raise ValueError(f'`algorithm` must be "unigram" or "bpe". Received: {algorithm!r}.')
        vocabulary_size = check_at_least("vocabulary_size", vocabulary_size, 1)
        model, failures = io.BytesIO(), []
        # With a space before each text its first word is the piece it is elsewhere. sentencepiece can add the space by
        # itself, but then takes every space off the front again.
        sentences = (" " + text for text in remember(with_progress(strings(texts), verbose), failures) if text)
        with normalization_rule(normalize, lowercase) as rule:
            try:
                sentencepiece.SentencePieceTrainer.train(
                    sentence_iterator=sentences,
                    model_writer=model,
                    vocab_size=vocabulary_size,
                    model_type=algorithm,
                    byte_fallback=True,
                    add_dummy_prefix=False,
                    remove_extra_whitespaces=False,
                    max_sentence_length=LONGEST_TEXT,
                    pad_id=PAD,
                    bos_id=START,
                    eos_id=END,
                    unk_id=UNKNOWN,
                    pad_piece=SPECIAL_TOKENS[PAD],
                    bos_piece=SPECIAL_TOKENS[START],
                    eos_piece=SPECIAL_TOKENS[END],
                    unk_piece=SPECIAL_TOKENS[UNKNOWN],
                    unk_surface=SPECIAL_TOKENS[UNKNOWN],
                    minloglevel=0 if verbose > 1 else 2,
                    **rule,
                )
            except RuntimeError as error:
                if failures:  # errors of the texts themselves, which sentencepiece has replaced
                    raise failures[0] from None
                raise ValueError(
                    "sentencepiece cannot learn these pieces. Received "
                    f"vocabulary_size={vocabulary_size!r}, and it says: {str(error).splitlines()[0]} "
                    "Pass texts that are not empty, and a `vocabulary_size` for which they have enough pieces."
                ) from error
        return cls(model.getvalue())

    @property
    def _tokenizer(self):
        with tf.init_scope():
            try:
                self._loaded.vocab_size()
            except tf.errors.NotFoundError:  # `keras.utils.clear_session()` takes the model from TensorFlow's memory
                self._loaded = loaded(self._model)
        return self._loaded

    @property
    def vocabulary(self):
        return [token.decode() for token in self._tokens.numpy()]

    def tokenize(self, texts):
        texts = as_texts(texts)
        return self._tokenizer.tokenize(tf.where(texts == "", "", tf.strings.join([" ", texts])))

    def detokenize(self, ids):
        ids = padded_ids(ids)
        texts = self._tokenizer.detokenize(tf.ragged.boolean_mask(ids, ~is_silent(ids)))
        return tf.strings.regex_replace(texts, "^ ", "")  # the space that `tokenize` has put there

    def token_strings(self, ids):
        return tf.gather(self._tokens, ids)

    def save(self, path):
        """Write the sentencepiece model, whole or not at all. Other programs can read it as well."""
        write_whole(path, self._model)

    @classmethod
    def load(cls, path):
        """Read the file that `save` wrote."""
        model = read_whole(path)
        with written_by(path, cls):
            return cls(model)

    def saved(self):
        return {"model": base64.b64encode(self._model).decode()}

    @classmethod
    def from_saved(cls, content):
        return cls(base64.b64decode(content["model"], validate=True))

    def __repr__(self):
        return f"SubwordTokenizer(vocabulary_size={self.vocabulary_size})"


def loaded(model):
    """The tokeniser of tensorflow-text.

    TensorFlow keeps the resources of a SavedModel under the names of its nodes, for the whole process: two models of
    one name would share them. So the name is made from the model's bytes.
    """
    name = f"sentencepiece_{hashlib.sha256(model).hexdigest()}"
    return tensorflow_text.SentencepieceTokenizer(model, out_type=tf.int32, name=name)


def with_progress(texts, verbose):
    """The same texts, counted on the screen while they are read."""
    if not verbose:
        yield from texts
        return
    bar, count = keras.utils.Progbar(None, unit_name="text"), 0
    for count, text in enumerate(texts, 1):
        if count % TEXTS_BETWEEN_UPDATES == 0:
            bar.update(count)
        yield text
    bar.update(count, finalize=True)


def remember(texts, failures):
    """The same texts; an exception that comes instead of the next one is put into the list."""
    try:
        yield from texts
    except Exception as error:
        failures.append(error)
        raise


@contextlib.contextmanager
def normalization_rule(normalize, lowercase):
    """sentencepiece's options for both, which it writes into the model: reading text needs no code for them."""
    if normalize:
        yield {"normalization_rule_name": "nmt_nfkc_cf" if lowercase else "nmt_nfkc"}
    elif not lowercase:
        yield {"normalization_rule_name": "identity"}
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "lowercase.tsv"
            path.write_text("".join(lowercase_rules()))
            yield {"normalization_rule_tsv": str(path)}


def lowercase_rules():
    """`"41\\t61\\n"` (A becomes a), ...: a line for each character that has a lower case, in hexadecimal."""
    for number in range(sys.maxunicode + 1):
        lower = chr(number).lower()
        if lower != chr(number):
            yield f"{number:X}\t{' '.join(f'{ord(each):X}' for each in lower)}\n"
