"""Character tokeniser: every character of the text is a token."""

import collections

import tensorflow as tf

from keras_attention.checks.messages import shortened
from keras_attention.data.tokenizers.tables import TableTokenizer, check_maximum_size, most_frequent
from keras_attention.data.tokenizers.texts import REPLACEMENT, as_texts, is_silent, padded_ids, strings, valid
from keras_attention.data.tokenizers.tokenizer import SPECIAL_TOKENS


class CharacterTokenizer(TableTokenizer):
    """Tokeniser whose tokens are the characters of the text.

    A character is a Unicode code point; the text is taken as it is, neither normalised nor lower-cased. Characters that
    are not in the vocabulary become unknown, which is written "�". So do bytes that are not UTF-8.

    Args:
        characters: Iterable of different characters. The first one has id 4.

    Attributes:
        vocabulary: List of strings; entry `i` is the token with id `i`. The first four are `"[PAD]"`, `"[START]"`,
            `"[END]"` and `"�"`.
        vocabulary_size: Integer, length of `vocabulary`.

    Raises:
        ValueError: `characters` is empty, or an entry is not one character, occurs twice, or is "�".

    Example:
        >>> tokenizer = CharacterTokenizer.train(["abba", "cab"])
        >>> tokenizer.vocabulary[4:]
        ['a', 'b', 'c']
        >>> tokenizer.tokenize(["back", ""])
        <tf.RaggedTensor [[5, 4, 6, 3], []]>
        >>> tokenizer.detokenize([[1, 5, 4, 6, 2, 4], [2, 0, 0, 0, 0, 0]]).numpy().tolist()
        [b'bac', b'']
    """

    def __init__(self, characters, name=None):
        characters = list(characters)
        check_characters(characters)
        super().__init__(characters, name=name)

    @classmethod
    def train(cls, texts, minimum_count=1, maximum_size=None):
        """Take the characters of the texts, the most frequent first and equally frequent ones in code point order.

        Args:
            texts: Iterable of strings, bytes, string tensors or string arrays, a `tf.data.Dataset` of strings included.
            minimum_count: Integer, how often a character must occur.
            maximum_size: Integer or None, the largest `vocabulary_size`.

        Returns:
            A tokeniser.
        """
        check_maximum_size(maximum_size, "characters")
        counts = collections.Counter()
        for text in strings(texts):
            counts.update(text)
        return cls(most_frequent(counts, minimum_count, maximum_size))

    def tokenize(self, texts):
        characters = tf.strings.unicode_split(as_texts(texts), "UTF-8", errors="replace")  # (B, None)
        return characters.with_flat_values(self._table.lookup(characters.flat_values))

    def detokenize(self, ids):
        ids = padded_ids(ids)
        return tf.strings.reduce_join(tf.where(is_silent(ids), "", self.token_strings(ids)), axis=1)

    def saved(self):
        return {"characters": self.vocabulary[len(SPECIAL_TOKENS) :]}

    @classmethod
    def from_saved(cls, content):
        return cls(content["characters"])


def check_characters(characters):
    """`["a", "b"]` passes; `[]`, `["ab"]`, `["a", "a"]` and `["�"]` do not."""
    if not characters:
        raise ValueError("A tokeniser needs at least one character. Received none. Train on texts that are not empty.")
    seen = {REPLACEMENT}
    for character in characters:
        if not isinstance(character, str) or len(character) != 1 or valid(character) in seen:
            raise ValueError(
                f"`characters` must be single characters, each there once, without {REPLACEMENT!r} (the unknown one). "
                f"Received {shortened(repr(character))} among {len(characters)}. `CharacterTokenizer.train(texts)` collects "
                "them."
            )
        seen.add(character)
