"""Word tokeniser: words and punctuation marks, cut by a regular expression inside the graph."""

import collections
import itertools
import json

import tensorflow as tf

from keras_attention.data.text import (
    REPLACEMENT,
    SPECIAL_TOKENS,
    as_ids,
    as_texts,
    is_silent,
    read_whole,
    strings,
    write_whole,
)
from keras_attention.tokens import UNKNOWN

# A word, or one mark; or what stands between them: white space, control characters and characters without a form.
TOKEN_OR_SPACE = r"([\p{L}\p{M}\p{N}]+(?:['’][\p{L}\p{M}\p{N}]+)*|[^\s\p{Z}\p{C}])|[\s\p{Z}\p{C}]+"
TEXTS_AT_ONCE = 1024


class WordTokenizer(tf.Module):
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
        super().__init__(name=name)
        self.lowercase = lowercase
        words = list(words)
        check_words(words, self)
        self._tokens = tf.constant([*SPECIAL_TOKENS.values(), *words])  # (V,)
        ids = tf.range(len(SPECIAL_TOKENS), self.vocabulary_size, dtype=tf.int32)
        self._table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(tf.constant(words), ids), default_value=UNKNOWN
        )

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
        if maximum_size is not None and maximum_size <= len(SPECIAL_TOKENS):
            raise ValueError(
                f"`maximum_size` counts the {len(SPECIAL_TOKENS)} special ids and must leave room for words. "
                f"Received maximum_size={maximum_size}. Pass at least {len(SPECIAL_TOKENS) + 1}, or None for no limit."
            )
        counts = collections.Counter()
        texts = strings(texts)
        while batch := list(itertools.islice(texts, TEXTS_AT_ONCE)):
            counts.update(word.decode() for word in words_of(batch, lowercase).flat_values.numpy())
        counts.pop(REPLACEMENT, None)
        frequent = sorted((word for word in counts if counts[word] >= minimum_count), key=lambda w: (-counts[w], w))
        return cls(frequent if maximum_size is None else frequent[: maximum_size - len(SPECIAL_TOKENS)], lowercase)

    @property
    def vocabulary(self):
        return [token.decode() for token in self._tokens.numpy()]

    @property
    def vocabulary_size(self):
        return self._tokens.shape[0]

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

    def token_strings(self, ids):
        return tf.gather(self._tokens, ids)

    def save(self, path):
        """Write the words as JSON, whole or not at all."""
        words = self.vocabulary[len(SPECIAL_TOKENS) :]
        content = {"tokenizer": "WordTokenizer", "lowercase": self.lowercase, "words": words}
        write_whole(path, (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode())

    @classmethod
    def load(cls, path):
        """Read the file that `save` wrote."""
        saved = read_whole(path)
        try:
            content = json.loads(saved.decode())
            if content["tokenizer"] != "WordTokenizer":
                raise ValueError(f"it is of a {content['tokenizer']}")
            return cls(content["words"], content["lowercase"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path} is not a file that `WordTokenizer.save` wrote: {error}. Train and save a tokeniser again."
            ) from error


def words_of(texts, lowercase):
    """`["It isn't bad.", ""]`, True  ->  `[["it", "isn't", "bad", "."], []]`, a ragged tensor"""
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
    texts = tf.strings.regex_replace(texts, TOKEN_OR_SPACE, r" \1 ")
    # Only now: `lower` ends a text at the control character 0.
    return tf.strings.split(tf.strings.lower(texts, encoding="utf-8") if lowercase else texts)


def check_words(words, tokenizer):
    """`["bad", "."]` passes; `[]`, `["bad", "bad"]`, `["not bad"]`, `["�"]` and, in lower case, `["Bad"]` do not."""
    if not words:
        raise ValueError("A tokeniser needs at least one word. Received none. Train on texts that are not empty.")
    seen = {REPLACEMENT}
    split = tokenizer.split([word if isinstance(word, str) else "" for word in words]).to_list()
    for word, tokens in zip(words, split, strict=True):
        if word in seen or [token.decode() for token in tokens] != [word]:
            raise ValueError(
                f"`words` must be single words and marks as `split` gives them with lowercase={tokenizer.lowercase}, each "
                f"there once, without {REPLACEMENT!r} (the unknown one). Received {word!r} among {len(words)}. "
                "`WordTokenizer.train(texts)` collects them."
            )
        seen.add(word)
