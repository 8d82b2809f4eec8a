"""Tokenisers: objects that turn text into ids and ids into text, alone, in a data pipeline and in a SavedModel."""

from typing import Protocol, runtime_checkable

from keras_attention.data.tokenizers.texts import REPLACEMENT
from keras_attention.tokens import END, PAD, START, UNKNOWN

SPECIAL_TOKENS = {PAD: "[PAD]", START: "[START]", END: "[END]", UNKNOWN: REPLACEMENT}


@runtime_checkable
class Tokenizer(Protocol):
    """The methods of a tokeniser that the pipelines, the serving signatures and the callbacks of this package call.

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


def check_tokenizer(name, tokenizer):
    if not isinstance(tokenizer, Tokenizer):
        raise TypeError(
            f"`{name}` must have the methods of `keras_attention.data.Tokenizer`. Received {type(tokenizer).__name__}. "
            "Pass an object such as `CharacterTokenizer.train(texts)`."
        )
