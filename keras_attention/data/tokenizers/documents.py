"""Documents: texts that are cut into paragraphs, sentences and words inside the graph.

Letters in shapes: P paragraphs, L sentences (lines), W words of a sentence.
"""

import tensorflow as tf

from keras_attention.checks.arguments import check_positive_integer
from keras_attention.checks.messages import shortened
from keras_attention.data.tokenizers.characters import CharacterTokenizer
from keras_attention.data.tokenizers.saved import load_json, save_json
from keras_attention.data.tokenizers.subwords import SubwordTokenizer
from keras_attention.data.tokenizers.texts import as_texts
from keras_attention.data.tokenizers.tokenizer import check_tokenizer
from keras_attention.data.tokenizers.words import ATTACHED, WordTokenizer

SENTENCE_END = rf"""(?:[.!?]{ATTACHED}*)+(?:["'”’)\]]{ATTACHED}*)*[\s\p{{Z}}]+|[\r\n]+"""
PARAGRAPH_END = r"\n[\s\p{Z}]*\n"
LEVELS = ("word", "sentence", "paragraph")
SAVED = {kind.__name__: kind for kind in (CharacterTokenizer, SubwordTokenizer, WordTokenizer)}  # which a file may hold
SEPARATOR = "\x1e"  # the control character "record separator"


class DocumentTokenizer(tf.Module):
    """Tokeniser of documents, for models that read words in sentences: raw text in, nested ids out.

    `"Good! I like it.\\n\\nSee it."`  ->  with the levels word, sentence and paragraph
    `[[["good", "!"], ["i", "like", "it", "."]], [["see", "it", "."]]]`

    A sentence ends at a line break, and behind `.`, `!` and `?` that white space follows; quotation marks and brackets
    that close go with it, and characters without a form. The rule knows no abbreviations: "Mr. Smith" is cut after the
    point. A paragraph ends at an empty line. Sentences and paragraphs without a token are dropped; a document may be
    empty.

    Args:
        tokenizer: `Tokenizer` of sentences, such as a `WordTokenizer`.
        levels: The levels of the model from below: "word", and after it "sentence", "paragraph" or both.
        max_words, max_sentences, max_paragraphs: Integer or None, the largest number of words in a sentence, of
            sentences in a paragraph (or document), and of paragraphs. The rest is cut off. None for no limit.
        sentence_end: Regular expression (RE2) of the end of a sentence; the match stays with the sentence. For texts
            with one sentence in each line pass `r"\\n"`.

    Attributes:
        vocabulary_size: Integer, that of the tokeniser.

    Raises:
        TypeError: `tokenizer` lacks a method of `Tokenizer`.
        ValueError: Unknown levels or another order, a limit that is not a positive integer or whose level is missing, a
            regular expression that RE2 can't read.

    Example:
        >>> words = WordTokenizer(["good", "it", "like", "see", "."])
        >>> tokenizer = DocumentTokenizer(words, max_words=3)
        >>> tokenizer.tokenize(["Good. I like it.", ""])
        <tf.RaggedTensor [[[4, 8], [3, 6, 5]], []]>
        >>> tokenizer.split(["Good. I like it.", ""])
        <tf.RaggedTensor [[[b'good', b'.'], [b'i', b'like', b'it']], []]>
    """

    def __init__(
        self,
        tokenizer,
        levels=("word", "sentence"),
        max_words=None,
        max_sentences=None,
        max_paragraphs=None,
        sentence_end=SENTENCE_END,
        name=None,
    ):
        super().__init__(name=name)
        check_tokenizer("tokenizer", tokenizer)
        self.tokenizer = tokenizer
        self.levels = document_levels(levels)
        self.max_words = max_words
        self.max_sentences = max_sentences
        self.max_paragraphs = max_paragraphs
        self.sentence_end = sentence_end
        check_limits(self.levels, self._limits())
        check_pattern(sentence_end)

    @property
    def vocabulary_size(self):
        return self.tokenizer.vocabulary_size

    def tokenize(self, texts):
        """Strings `(B,)` -> `tf.RaggedTensor` of int32 ids, `(B, None, None)` for words in sentences."""
        return self._nested(texts, self.tokenizer.tokenize)

    def split(self, texts):
        """The tokens behind the ids of `tokenize`: the words of the text where the tokeniser can `split`."""
        return self._nested(texts, getattr(self.tokenizer, "split", self._token_strings))

    def save(self, path):
        """Write the levels, the limits and the tokeniser of sentences into one file of JSON, whole or not at all."""
        if SAVED.get(type(self.tokenizer).__name__) is not type(self.tokenizer):
            raise TypeError(
                f"The tokeniser of sentences must be one of {[*SAVED]} to be saved. Received a "
                f"{type(self.tokenizer).__name__}. Save it by itself, and make the `DocumentTokenizer` around it again."
            )
        save_json(path, self)

    @classmethod
    def load(cls, path):
        """Read the file that `save` wrote."""
        return load_json(path, cls)

    def saved(self):
        sentences = {"tokenizer": type(self.tokenizer).__name__, **self.tokenizer.saved()}
        limits = {f"max_{level}s": limit for level, limit in self._limits().items()}
        return {"levels": self.levels, **limits, "sentence_end": self.sentence_end, "sentences": sentences}

    @classmethod
    def from_saved(cls, content):
        sentences = SAVED[content["sentences"]["tokenizer"]].from_saved(content["sentences"])
        options = ("levels", *(f"max_{level}s" for level in LEVELS), "sentence_end")
        return cls(sentences, **{name: content[name] for name in options})

    def __repr__(self):
        limits = "".join(f", max_{level}s={limit}" for level, limit in self._limits().items() if limit is not None)
        return f"DocumentTokenizer({self.tokenizer!r}, levels={self.levels}{limits})"

    def _token_strings(self, texts):
        ids = self.tokenizer.tokenize(texts)
        return ids.with_flat_values(self.tokenizer.token_strings(ids.flat_values))

    def _limits(self):
        return {"word": self.max_words, "sentence": self.max_sentences, "paragraph": self.max_paragraphs}

    def _nested(self, texts, rows_of):
        """`["a b. c", ""]`, `split`  ->  `[[["a", "b", "."], ["c"]], []]`"""
        ends = {"sentence": self.sentence_end, "paragraph": PARAGRAPH_END}
        limits = self._limits()
        levels = self.levels[1:]
        texts, pieces = as_texts(texts), {}
        for level in reversed(levels):
            pieces[level] = pieces_of(texts, ends[level])  # (N, None)
            texts = pieces[level].flat_values
        rows = rows_of(texts)[:, : limits["word"]]  # (N, None)
        for level in levels:
            # Not by `tf.ragged.boolean_mask`, which takes as much memory as if all rows were as long as the longest.
            has_tokens = rows.row_lengths() > 0
            counts = tf.reduce_sum(pieces[level].with_values(tf.cast(has_tokens, tf.int64)), axis=1)
            rows = tf.gather(rows, tf.where(has_tokens)[:, 0])
            rows = tf.RaggedTensor.from_row_lengths(rows, counts)[:, : limits[level]]
        return rows


def pieces_of(texts, end):
    """`["a. b", ""]`, `SENTENCE_END`  ->  `[["a. ", "b"], [""]]`, a ragged tensor"""
    texts = tf.strings.regex_replace(texts, SEPARATOR, " ")
    return tf.strings.split(tf.strings.regex_replace(texts, end, rf"\0{SEPARATOR}"), SEPARATOR)


def document_levels(levels):
    """`levels` as a tuple, after checking that they are those of a document, from below."""
    names = tuple(levels) if isinstance(levels, list | tuple) else ()
    if names[:1] != ("word",) or names != tuple(level for level in LEVELS if level in names):
        raise ValueError(
            '`levels` must be "word", then "sentence", "paragraph" or both, in this order. '
            f'Received levels={levels!r}. Pass for example ("word", "sentence").'
        )
    return names


def check_limits(levels, limits):
    for level, limit in limits.items():
        if limit is not None:
            check_positive_integer(f"max_{level}s", limit)
            if level not in levels:
                raise ValueError(
                    f"`max_{level}s` needs the level {level!r}. Received max_{level}s={limit} and levels={levels}. Leave "
                    "it out or add the level."
                )


def check_pattern(pattern):
    try:
        tf.strings.regex_replace([""], pattern, "")
    except (tf.errors.InvalidArgumentError, TypeError, ValueError) as error:
        raise ValueError(
            f"`sentence_end` must be a regular expression as RE2 reads it. Received {shortened(pattern, 400)}. RE2 has no "
            "look-ahead and no references back."
        ) from error
    if tf.strings.regex_full_match("", pattern):
        raise ValueError(
            f"`sentence_end` must not match the empty string: every character would be a sentence. Received {pattern!r}. "
            'Pass for example r"\n+".'
        )
