"""Word tokeniser: words and punctuation marks, cut by a regular expression inside the graph."""

import collections
import itertools
import unicodedata

import tensorflow as tf

from keras_attention.checks.messages import shortened
from keras_attention.data.tokenizers.tables import TableTokenizer, check_maximum_size, most_frequent
from keras_attention.data.tokenizers.texts import REPLACEMENT, TEXTS_AT_ONCE, as_texts, is_silent, padded_ids, strings
from keras_attention.data.tokenizers.tokenizer import SPECIAL_TOKENS

# Characters that belong to the one before them (Unicode, UAX #29, rule WB4): marks, skin tones, and characters without a
# form but the space without width. After a joiner also the next symbol does (WB3c).
ATTACHED = r"(?:[\p{M}\x{1F3FB}-\x{1F3FF}]|[^\P{Cf}\x{200B}])"
SELECTORS = r"\x{FE00}-\x{FE0F}\x{E0100}-\x{E01EF}"  # of variants; without a character before them they have no form
WORD = rf"(?:[\p{{L}}\p{{N}}]|[^\P{{M}}{SELECTORS}])(?:[\p{{L}}\p{{N}}]|{ATTACHED})*"
APOSTROPHE = rf"['’]{ATTACHED}*"
MARK = rf"[^\s\p{{Z}}\p{{C}}{SELECTORS}](?:{ATTACHED}*\x{{200D}}\p{{S}})*{ATTACHED}*"

# A word, or one mark; or the separators between them: white space, control characters and characters without a form.
TOKEN_OR_SPACE = {
    1: r"([\p{L}\p{M}\p{N}]+(?:['’][\p{L}\p{M}\p{N}]+)*|[^\s\p{Z}\p{C}])|[\s\p{Z}\p{C}]+",
    2: rf"({WORD}(?:{APOSTROPHE}{WORD})*|{MARK})|[\s\p{{Z}}\p{{C}}{SELECTORS}]+",
}


class WordTokenizer(TableTokenizer):
    """Tokeniser whose tokens are words and punctuation marks.

    A word is a run of letters and digits of any script, with apostrophes between them (`don't`); every other character
    that can be seen is a token of its own: `"Well-kept: 3.5!"` has `well - kept : 3 . 5 !`. White space and control
    characters separate tokens and are lost. Characters without a form, such as the soft hyphen, the joiners of Persian,
    Sinhala and emoji, and variation selectors, stay within the word or mark that they follow, as Unicode says (UAX
    #29). Words that are not in the vocabulary become unknown, as do bytes that are not UTF-8. A letter with its accent
    is the same word as one character and as two. A script that writes no spaces, such as Chinese or Thai, needs a
    `SubwordTokenizer`.

    The work is done by operations of TensorFlow itself, so a server needs nothing else.

    Args:
        words: Iterable of different words and marks, in lower case if `lowercase`. The first one has id 4.
        lowercase: Boolean, whether texts are put into lower case.
        rules: 2; or 1, as files of version 0.1 load, which cuts at characters without a form and takes a letter and its
            accent as they are written, so that models trained with such a file read the ids that they know.

    Attributes:
        vocabulary: List of strings; entry `i` is the token with id `i`. The first four are `"[PAD]"`, `"[START]"`,
            `"[END]"` and `"�"`.
        vocabulary_size: Integer, length of `vocabulary`.

    Raises:
        ValueError: `words` is empty, or an entry occurs twice or is not a token of `split`, or unknown rules.

    Example:
        >>> tokenizer = WordTokenizer.train(["It isn't bad.", "Not bad."])
        >>> tokenizer.vocabulary[4:]
        ['.', 'bad', "isn't", 'it', 'not']
        >>> tokenizer.tokenize(["NOT good.", ""])
        <tf.RaggedTensor [[8, 3, 4], []]>
        >>> tokenizer.detokenize([[8, 5, 4, 2, 5]]).numpy().tolist()
        [b'not bad .']
    """

    def __init__(self, words, lowercase=True, name=None, rules=2):
        words = list(words)
        if rules not in TOKEN_OR_SPACE:
            raise ValueError(
                f"`rules` must be one of {[*TOKEN_OR_SPACE]}. Received rules={shortened(rules)}. Leave it out."
            )
        check_words(words, lowercase, rules)
        super().__init__(words, None if rules == 1 else [spellings(word) for word in words], name=name)
        self.lowercase = lowercase
        self.rules = rules

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
            words = words_of(as_texts(batch), lowercase).flat_values.numpy()
            counts.update(unicodedata.normalize("NFC", word.decode()) for word in words)
        return cls(most_frequent(counts, minimum_count, maximum_size), lowercase)

    def split(self, texts):
        """The words themselves, known or not: `["NOT good.", ""]`  ->  `[["not", "good", "."], []]`"""
        return words_of(as_texts(texts), self.lowercase, self.rules)

    def tokenize(self, texts):
        words = self.split(texts)  # (B, None)
        return words.with_flat_values(self._table.lookup(words.flat_values))

    def detokenize(self, ids):
        """The tokens with a space between any two, also before a mark."""
        ids = padded_ids(ids)
        shown = tf.ragged.boolean_mask(self.token_strings(ids), ~is_silent(ids))  # (B, None)
        return tf.strings.reduce_join(shown, axis=1, separator=" ")

    def saved(self):
        words = self.vocabulary[len(SPECIAL_TOKENS) :]
        return {"rules": self.rules, "lowercase": self.lowercase, "words": words}

    @classmethod
    def from_saved(cls, content):
        return cls(content["words"], content["lowercase"], rules=content.get("rules", 1))

    def __repr__(self):
        return f"WordTokenizer(vocabulary_size={self.vocabulary_size}, lowercase={self.lowercase}, rules={self.rules})"


def spellings(word):
    """The ways in which Unicode lets a text write a word: `"é"`  ->  `["é", "e\\u0301"]`

    Accents are part of their letters, or follow them, all or the last alone, as on Vietnamese keyboards.
    """
    composed = unicodedata.normalize("NFC", word)
    stepwise = "".join(taken_apart(character) for character in composed)
    return [composed, unicodedata.normalize("NFD", word), stepwise]


def taken_apart(character):
    """`"ế"`  ->  `"ê\\u0301"`"""
    parts = unicodedata.decomposition(character)
    return "".join(chr(int(part, 16)) for part in parts.split()) if parts and parts[0] != "<" else character


def words_of(texts, lowercase, rules=2):
    """`["It isn't bad.", ""]`, True  ->  `[["it", "isn't", "bad", "."], []]`, a ragged tensor"""
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
    texts = tf.strings.regex_replace(texts, TOKEN_OR_SPACE[rules], r" \1 ")
    # Only now: `lower` ends a text at the control character 0.
    return tf.strings.split(tf.strings.lower(texts, encoding="utf-8") if lowercase else texts)


def check_words(words, lowercase, rules):
    """`["bad", "."]` passes; `[]`, `["bad", "bad"]`, `["not bad"]`, `["�"]` and, in lower case, `["Bad"]` do not."""
    if not words:
        raise ValueError("A tokeniser needs at least one word. Received none. Train on texts that are not empty.")
    seen = {REPLACEMENT}
    split = words_of(as_texts([word if isinstance(word, str) else "" for word in words]), lowercase, rules).to_list()
    for word, tokens in zip(words, split, strict=True):
        form = unicodedata.normalize("NFC", word) if isinstance(word, str) and rules > 1 else word
        if form in seen or [token.decode() for token in tokens] != [word]:
            raise ValueError(
                f"`words` must be single words and marks as `split` gives them with lowercase={lowercase}, each "
                f"there once, without {REPLACEMENT!r} (the unknown one). Received {shortened(repr(word))} among {len(words)}. "
                "`WordTokenizer.train(texts)` collects them."
            )
        seen.add(form)
