"""Tokenisers: objects that turn text into ids and ids into text, alone, in a data pipeline and in a SavedModel."""

import collections
from typing import Protocol, runtime_checkable

import numpy as np
import tensorflow as tf

from keras_attention.checks.messages import shortened
from keras_attention.data.files.lines import load_json, save_json
from keras_attention.tokens import END, PAD, START, UNKNOWN

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
TEXTS_AT_ONCE = 1024  # tokenised together: ten times as fast as one by one
SPECIAL_TOKENS = {PAD: "[PAD]", START: "[START]", END: "[END]", UNKNOWN: REPLACEMENT}


@runtime_checkable
class Tokenizer(Protocol):
    """What the pipelines, the serving signatures and the metrics of this package ask of a tokeniser.

    It is a `tf.Module`, so that a SavedModel takes its tables along. Ids 0 to 3 are pad, start, end and unknown.

    - `vocabulary_size`: number of ids, the special ones included.
    - `tokenize(texts)`: strings `(B,)` -> `tf.RaggedTensor` of int32 ids `(B, None)`, without start and end.
    - `detokenize(ids)`: integer ids `(B, L)`, padded or ragged -> strings `(B,)`. A text ends before its first end
      symbol; pad and start are left out.
    - `token_strings(ids)`: integer ids of any shape -> the token of each as a string, for pictures.
    - `save(path)` writes one readable file; the class method `load(path)` reads it.

    The conversions work on whole batches, eagerly and inside a `tf.function`.
    """

    vocabulary_size: int

    def tokenize(self, texts): ...

    def detokenize(self, ids): ...

    def token_strings(self, ids): ...

    def save(self, path): ...

    @classmethod
    def load(cls, path): ...


class TableTokenizer(tf.Module):
    """What `CharacterTokenizer` and `WordTokenizer` share: tokens in a table, and a JSON file of them.

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
        ValueError: `characters` is empty, or an entry is not one character, is there twice, or is "�".

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
        ids = as_ids(ids)
        return tf.strings.reduce_join(tf.where(is_silent(ids), "", self.token_strings(ids)), axis=1)

    def saved(self):
        return {"characters": self.vocabulary[len(SPECIAL_TOKENS) :]}

    @classmethod
    def from_saved(cls, content):
        return cls(content["characters"])


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


def strings(texts):
    """`["ab", b"c", np.array([b"d", b"e"])]`  ->  `"ab"`, `"c"`, `"d"`, `"e"`"""
    if isinstance(texts, (str, bytes)):
        raise TypeError(
            f"`texts` must be an iterable of strings, not one string. Received: {texts[:50]!r}. Pass one text as "
            "`[text]`, and of a file its lines, not its name."
        )
    for batch in texts:
        for text in np.asarray(batch, dtype=object).ravel():
            if not isinstance(text, (str, bytes)):
                raise TypeError(
                    "`texts` must hold strings, bytes, or tensors and arrays of them. Received a "
                    f"{type(text).__name__}: {shortened(text)}. Map a data set to its texts first."
                )
            yield valid(text) if isinstance(text, str) else text.decode("utf-8", "replace")


def valid(text):
    """A string that UTF-8 can write: `"a\\ud800b"` becomes `"a\N{REPLACEMENT CHARACTER}b"`, as bytes do that are not UTF-8.

    Half a surrogate pair comes from JSON that was cut in the middle of an emoji, or from file names.
    """
    is_whole = not isinstance(text, str) or text.isascii()
    return text if is_whole else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def as_texts(texts):
    """A batch of strings `(B,)` as a tensor."""
    if not tf.is_tensor(texts):
        texts = np.frompyfunc(valid, 1, 1)(np.asarray(texts, dtype=object))
    texts = tf.convert_to_tensor(texts, tf.string)
    if texts.shape.rank not in (None, 1):
        raise ValueError(
            f"`texts` must be a batch of strings (B,). Received shape {texts.shape}. Pass one text as `[text]`, "
            "and reshape other batches."
        )
    return texts


def as_ids(ids):
    """Integer ids `(B, L)`, padded or ragged, as a padded int32 tensor."""
    ids = ids.to_tensor(PAD) if isinstance(ids, tf.RaggedTensor) else tf.convert_to_tensor(ids)
    if ids.shape.rank not in (None, 2) or not ids.dtype.is_integer:
        raise ValueError(
            f"`ids` must be integers of shape (B, L). Received {ids.dtype.name} of shape {ids.shape}. Pass one row "
            "as `ids[None]`; of logits take the `argmax` first."
        )
    return tf.cast(ids, tf.int32)


def is_silent(ids):
    """Which ids write nothing (0 pad, 1 start, 2 end): `[[1, 7, 2, 7, 0]]`  ->  `[[True, False, True, True, True]]`"""
    ended = tf.cumsum(tf.cast(ids == END, tf.int32), axis=1) > 0
    return ended | (ids == PAD) | (ids == START)


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
