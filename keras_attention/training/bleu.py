"""Translating texts with a model, and the BLEU of the translations while it trains."""

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
    texts = strings("texts", texts)
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
        for row, translation in zip(rows, strings("translations", target_tokenizer.detokenize(ids)), strict=True):
            translations[row] = translation
        progress.add(len(rows))
    return translations


class EvaluateBleu(keras.callbacks.Callback):
    """Callback that translates held-out texts after an epoch and logs the BLEU of the translations as `val_bleu`.

    `BLEU = 100 · brevity penalty · geometric mean of the precisions of n-grams, n = 1 ... 4`

    It is computed by sacrebleu on the whole corpus of detokenised text, with its own tokenisation, so that the number
    can be compared with published ones. Each text has one reference.

    Callbacks share the logs of an epoch from first to last: put this one before those that read `val_bleu`, such as
    `ModelCheckpoint`, `EarlyStopping`, `TensorBoard` and `CSVLogger` (which takes its columns from the first epoch: it
    needs `every=1`). The printed line and the history come last by themselves. As with Keras' `validation_freq`, the
    logs of the epochs between have no `val_bleu`, and the history one entry for each evaluation.

    When a training is resumed, Keras' `ModelCheckpoint` has forgotten its best value, and a worse epoch replaces the file.
    Its file tells the value, `evaluate(keras.saving.load_model("best.keras"))[0].score`: pass that as
    `initial_value_threshold`.

    Without training, `evaluate(model)` returns `(score, translations)`: the `BLEUScore` of sacrebleu, whose `score` is
    the number and which prints as a line with precisions and lengths, and a list of strings.

    Args:
        source_texts: List, array or tensor of strings or bytes.
        target_texts: As many, the references.
        source_tokenizer: `keras_attention.data.Tokenizer` of the source texts.
        target_tokenizer: `keras_attention.data.Tokenizer` of the target texts; it may be the same.
        sampler: As in `model.generate`; greedy search is fast, beam search gives the number to publish.
        max_length: Integer, number of tokens after which a translation is cut.
        batch_size: Integer, texts that are translated at once.
        every: Integer, number of epochs from one evaluation to the next.
        bleu_options: Arguments of `sacrebleu.BLEU` by name, such as `lowercase=True`, or `tokenize="none"` for texts
            that are tokenised already. The default, `tokenize="13a"` with case, is what papers call sacreBLEU.

    Raises:
        ImportError: If sacrebleu is not installed.
        TypeError: If the texts are not strings or a tokeniser lacks the methods of one.
        ValueError: If there are no texts, or not as many sources as targets, or a number is not positive.

    Example:
        >>> from keras_attention.data import CharacterTokenizer
        >>> from keras_attention.models import Transformer
        >>> tokenizer = CharacterTokenizer("abc")
        >>> model = Transformer(tokenizer.vocabulary_size, num_layers=1, num_heads=2, hidden_dim=6, intermediate_dim=13)
        >>> bleu = EvaluateBleu(["a", "cab"], ["b", "bac"], tokenizer, tokenizer, max_length=5)
        >>> best = keras.callbacks.ModelCheckpoint("best.keras", monitor="val_bleu", mode="max", save_best_only=True)
        >>> callbacks = [bleu, best]  # for `fit`, in this order
        >>> score, translations = bleu.evaluate(model, verbose=0)
        >>> len(translations)
        2

    References:
        Papineni et al., 2002, ACL; Post, 2018, arXiv:1804.08771.
    """

    def __init__(
        self,
        source_texts,
        target_texts,
        source_tokenizer,
        target_tokenizer,
        sampler="greedy",
        max_length=64,
        batch_size=128,
        every=1,
        **bleu_options,
    ):
        super().__init__()
        self.source_texts = strings("source_texts", source_texts)
        self.target_texts = strings("target_texts", target_texts)
        check_pairs(self.source_texts, self.target_texts)
        check_method("source_tokenizer", source_tokenizer, "tokenize")
        check_method("target_tokenizer", target_tokenizer, "detokenize")
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.sampler = sampler
        self.max_length = check_positive_integer("max_length", max_length)
        self.batch_size = check_positive_integer("batch_size", batch_size)
        self.every = check_positive_integer("every", every)
        self.bleu = sacrebleu_metric(**bleu_options)

    def evaluate(self, model, verbose=1):
        translations = translate_texts(
            model,
            self.source_texts,
            self.source_tokenizer,
            self.target_tokenizer,
            sampler=self.sampler,
            max_length=self.max_length,
            batch_size=self.batch_size,
            verbose=verbose,
        )
        return self.bleu.corpus_score(translations, [self.target_texts]), translations

    def on_epoch_end(self, epoch, logs):
        if (epoch + 1) % self.every == 0:
            score, _ = self.evaluate(self.model, verbose=0)  # the progress bar of `fit` has the line
            logs["val_bleu"] = score.score


def sacrebleu_metric(**options):
    """The metric of sacrebleu, which is imported only here."""
    try:
        import sacrebleu
    except ImportError as error:
        raise ImportError(
            f"BLEU is computed by sacrebleu, which is not installed. {how_to_install('translation')}"
        ) from error
    return sacrebleu.BLEU(**options)


def strings(name, texts):
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


def check_pairs(source_texts, target_texts):
    """Raises unless there are texts, as many sources as targets."""
    if not source_texts or len(source_texts) != len(target_texts):
        raise ValueError(
            "BLEU needs at least one text, and one target for each source. Received "
            f"{len(source_texts)} source_texts and {len(target_texts)} target_texts. Pass the two sides of one corpus."
        )


def check_method(name, tokenizer, method):
    """Raises unless the tokeniser has the method, before an epoch of training is lost."""
    if not callable(getattr(tokenizer, method, None)):
        raise TypeError(
            f"`{name}` must have the method `{method}` of `keras_attention.data.Tokenizer`. Received "
            f"{type(tokenizer).__name__}. Pass an object such as `CharacterTokenizer.train(texts)`."
        )
