"""Translations of texts by a model, and the BLEU of them."""

import keras
import numpy as np

from keras_attention.checks.arguments import check_positive_integer
from keras_attention.checks.messages import shortened
from keras_attention.extras import how_to_install


def translate_texts(
    model, texts, source_tokenizer, target_tokenizer, sampler="greedy", max_length=64, batch_size=128, verbose=1
):
    """Translations of texts by a trained model.

    The texts are translated in batches of similar length, the longest first, so that little padding is needed; the
    translations come in the order of the texts.

    Args:
        model: A model with `generate`, such as `keras_attention.models.Transformer`.
        texts: List, array or tensor of strings or bytes, of shape `(B,)`.
        source_tokenizer: `keras_attention.data.Tokenizer` of the texts.
        target_tokenizer: `keras_attention.data.Tokenizer` of the translations; it may be the same.
        sampler: As in `model.generate`.
        max_length: Integer, number of tokens after which a translation is cut.
        batch_size: Integer, texts that are translated at once.
        verbose: 1 for a progress bar, 0 for silence.

    Returns:
        List of strings, one for each text.

    Raises:
        TypeError: If `texts` is not a sequence of strings.
        ValueError: If `batch_size` is not positive.

    Example:
        >>> from keras_attention.data import CharacterTokenizer
        >>> from keras_attention.models import Transformer
        >>> tokenizer = CharacterTokenizer("abc")
        >>> model = Transformer(tokenizer.vocabulary_size, num_layers=1, num_heads=2, hidden_dim=6, intermediate_dim=13)
        >>> len(translate_texts(model, ["a", "", "cab"], tokenizer, tokenizer, max_length=5, verbose=0))
        3
    """
    texts = list_of_strings("texts", texts)
    batch_size = check_positive_integer("batch_size", batch_size)
    order = sorted(range(len(texts)), key=lambda row: len(texts[row]), reverse=True)
    translations = [""] * len(texts)
    progress = keras.utils.Progbar(len(texts), verbose=verbose, unit_name="text")
    for first in range(0, len(texts), batch_size):
        rows = order[first : first + batch_size]
        source = source_tokenizer.tokenize([texts[row] for row in rows]).to_tensor()
        ids = model.generate(source, max_length=max_length, sampler=sampler)
        if len(ids.shape) != 2:
            raise ValueError(
                "A text gets one translation: `sampler` must find one answer. Received ids of shape "
                f"{tuple(ids.shape)} from {sampler!r}. Leave out `num_results`."
            )
        for row, translation in zip(
            rows, list_of_strings("translations", target_tokenizer.detokenize(ids)), strict=True
        ):
            translations[row] = translation
        progress.add(len(rows))
    return translations


def sacrebleu_metric(**options):
    """The metric of sacrebleu, which is imported only here."""
    try:
        import sacrebleu
    except ImportError as error:
        raise ImportError(
            f"BLEU is computed by sacrebleu, which is not installed. {how_to_install('translation')}"
        ) from error
    return sacrebleu.BLEU(**options)


def list_of_strings(name, texts):
    """`["ab", b"c"]` or an array or tensor of them  ->  `["ab", "c"]`"""
    array = np.asarray(texts, dtype=object)
    if array.ndim != 1 or not all(isinstance(text, str | bytes) for text in array):
        wrong = next((text for text in array.ravel() if not isinstance(text, str | bytes)), texts)
        raise TypeError(
            f"`{name}` must be a list, array or tensor of strings, of shape (B,). Received {type(texts).__name__} of "
            f"shape {array.shape} with {shortened(repr(wrong))} of type {type(wrong).__name__}. Pass one text as `[text]`, and "
            "a data set as a list of its texts."
        )
    return [text if isinstance(text, str) else text.decode("utf-8", "replace") for text in array]
