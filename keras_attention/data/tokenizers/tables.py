"""Tokenisers whose tokens stand in a table, and how the table is made from texts."""

import tensorflow as tf

from keras_attention.data.tokenizers.saved import load_json, save_json
from keras_attention.data.tokenizers.texts import REPLACEMENT
from keras_attention.data.tokenizers.tokenizer import SPECIAL_TOKENS
from keras_attention.tokens import UNKNOWN


class TableTokenizer(tf.Module):
    """Base of `CharacterTokenizer` and `WordTokenizer`: tokens in a table, and a JSON file of them.

    `spellings` has for each token the strings of a text that stand for it, by default the token alone.

    A subclass writes `tokenize`, `detokenize`, `saved()`, which gives what `save` writes, and the class method
    `from_saved(content)`, which reads that.
    """

    def __init__(self, tokens, spellings=None, name=None):
        super().__init__(name=name)
        self._tokens = tf.constant([*SPECIAL_TOKENS.values(), *tokens])  # (V,)
        spellings = [[token] for token in tokens] if spellings is None else spellings
        ids = {spelling: number for number, each in enumerate(spellings, len(SPECIAL_TOKENS)) for spelling in each}
        self._table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(tf.constant([*ids]), tf.constant([*ids.values()], tf.int32)),
            default_value=UNKNOWN,
        )

    @property
    def vocabulary(self):
        return [token.decode() for token in self._tokens.numpy()]

    @property
    def vocabulary_size(self):
        return self._tokens.shape[0]

    def token_strings(self, ids):
        return tf.gather(self._tokens, ids)

    def save(self, path):
        """Write the tokens as JSON, whole or not at all."""
        save_json(path, self)

    @classmethod
    def load(cls, path):
        """Read the file that `save` wrote."""
        return load_json(path, cls)

    def __repr__(self):
        return f"{type(self).__name__}(vocabulary_size={self.vocabulary_size})"


def check_maximum_size(maximum_size, tokens):
    """`None` and `5` pass; `4` leaves no room beside the special ids."""
    if maximum_size is not None and maximum_size <= len(SPECIAL_TOKENS):
        raise ValueError(
            f"`maximum_size` counts the {len(SPECIAL_TOKENS)} special ids and must leave room for {tokens}. "
            f"Received maximum_size={maximum_size}. Pass at least {len(SPECIAL_TOKENS) + 1}, or None for no limit."
        )


def most_frequent(counts, minimum_count, maximum_size):
    """`{"b": 2, "c": 1, "a": 2}`, 2, None  ->  `["a", "b"]`, equally frequent ones in code point order"""
    counts.pop(REPLACEMENT, None)
    frequent = sorted((token for token in counts if counts[token] >= minimum_count), key=lambda t: (-counts[t], t))
    return frequent if maximum_size is None else frequent[: maximum_size - len(SPECIAL_TOKENS)]
