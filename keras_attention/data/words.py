"""Word tokeniser: words and punctuation marks, cut by a regular expression inside the graph."""

import collections
import itertools

import tensorflow as tf

from keras_attention.data.text import (
    REPLACEMENT,
    SPECIAL_TOKENS,
    TEXTS_AT_ONCE,
    TableTokenizer,
    as_ids,
    as_texts,
    check_maximum_size,
    is_silent,
    most_frequent,
    strings,
)

# A word, or one mark; or what stands between them: white space, control characters and characters without a form.
TOKEN_OR_SPACE = r"([\p{L}\p{M}\p{N}]+(?:['’][\p{L}\p{M}\p{N}]+)*|[^\s\p{Z}\p{C}])|[\s\p{Z}\p{C}]+"


class WordTokenizer(TableTokenizer):
    """Tokeniser whose tokens are words and punctuation marks.

    A word is a run of letters and digits of any script, with apostrophes between them (`don't`); every other character
    that can be seen is a token of its own: `"Well-kept: 3.5!"` has `well - kept : 3 . 5 !`. White space and control
    characters part tokens and are lost. Words that are not in the vocabulary become unknown, as do bytes that are not
    UTF-8. A script that writes no spaces, such as Chinese or Thai, needs a `SubwordTokenizer`.

    The work is done by operations of TensorFlow itself, so a server needs nothing else.

    Args:
        words: Iterable of different words and marks, in lower case if `lowercase`. The first one has id 4.
        lowercase: Boolean, whether texts are put into lower case.

    Attributes:
        vocabulary: List of strings; entry `i` is the token with id `i`. The first four are `"[PAD]"`, `"[START]"`,
            `"[END]"` and `"�"`.
        vocabulary_size: Integer, length of `vocabulary`.

    Raises:
        ValueError: `words` is empty, or an entry is there twice or is nothing that `split` can give.

    Example:
        >>> tokenizer = WordTokenizer.train(["It isn't bad.", "Not bad."])
        >>> tokenizer.vocabulary[4:]
        ['.', 'bad', "isn't", 'it', 'not']
        >>> tokenizer.tokenize(["NOT good.", ""])
        <tf.RaggedTensor [[8, 3, 4], []]>
        >>> tokenizer.detokenize([[8, 5, 4, 2, 5]]).numpy().tolist()
        [b'not bad .']
    """

    def __init__(self, words, lowercase=True, name=None):
        words = list(words)
        check_words(words, lowercase)
        super().__init__(words, name=name)
        self.lowercase = lowercase

    @classmethod
    def train(cls, texts, minimum_count=1, maximum_size=None, lowercase=True):
        """Take the words of the texts, the most frequent first and equally frequent ones in code point order.

        Args:
            texts: Iterable of strings, bytes, string tensors or string arrays, a `tf.data.Dataset` of strings included.
            minimum_count: Integer, how often a word must occur.
            maximum_size: Integer or None, the largest `vocabulary_size`.
            lowercase: Boolean, whether texts are put into lower case.

        Returns:
            A tokeniser.
        """
        check_maximum_size(maximum_size, "words")
        counts = collections.Counter()
        texts = strings(texts)
        while batch := list(itertools.islice(texts, TEXTS_AT_ONCE)):
            counts.update(word.decode() for word in words_of(batch, lowercase).flat_values.numpy())
        return cls(most_frequent(counts, minimum_count, maximum_size), lowercase)

    def split(self, texts):
        """The words themselves, known or not: `["NOT good.", ""]`  ->  `[["not", "good", "."], []]`"""
        return words_of(as_texts(texts), self.lowercase)

    def tokenize(self, texts):
        words = self.split(texts)  # (B, None)
        return words.with_flat_values(self._table.lookup(words.flat_values))

    def detokenize(self, ids):
        """The tokens with a space between any two, also before a mark."""
        ids = as_ids(ids)
        shown = tf.ragged.boolean_mask(self.token_strings(ids), ~is_silent(ids))  # (B, None)
        return tf.strings.reduce_join(shown, axis=1, separator=" ")

    def saved(self):
        return {"lowercase": self.lowercase, "words": self.vocabulary[len(SPECIAL_TOKENS) :]}

    @classmethod
    def from_saved(cls, content):
        return cls(content["words"], content["lowercase"])


def words_of(texts, lowercase):
    """`["It isn't bad.", ""]`, True  ->  `[["it", "isn't", "bad", "."], []]`, a ragged tensor"""
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
    texts = tf.strings.regex_replace(texts, TOKEN_OR_SPACE, r" \1 ")
    # Only now: `lower` ends a text at the control character 0.
    return tf.strings.split(tf.strings.lower(texts, encoding="utf-8") if lowercase else texts)


def check_words(words, lowercase):
    """`["bad", "."]` passes; `[]`, `["bad", "bad"]`, `["not bad"]`, `["�"]` and, in lower case, `["Bad"]` do not."""
    if not words:
        raise ValueError("A tokeniser needs at least one word. Received none. Train on texts that are not empty.")
    seen = {REPLACEMENT}
    split = words_of([word if isinstance(word, str) else "" for word in words], lowercase).to_list()
    for word, tokens in zip(words, split, strict=True):
        if word in seen or [token.decode() for token in tokens] != [word]:
            raise ValueError(
                f"`words` must be single words and marks as `split` gives them with lowercase={lowercase}, each "
                f"there once, without {REPLACEMENT!r} (the unknown one). Received {word!r} among {len(words)}. "
                "`WordTokenizer.train(texts)` collects them."
            )
        seen.add(word)
