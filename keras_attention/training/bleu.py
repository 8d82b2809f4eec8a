"""The BLEU of a model's translations while it trains."""

import keras

from keras_attention.checks.arguments import check_positive_integer, check_same_number
from keras_attention.evaluation.translations import list_of_strings, sacrebleu_metric, translate_texts


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
        self.source_texts = list_of_strings("source_texts", source_texts)
        self.target_texts = list_of_strings("target_texts", target_texts)
        advice = "Pass the two sides of one corpus."
        check_same_number(advice, source_texts=self.source_texts, target_texts=self.target_texts)
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


def check_method(name, tokenizer, method):
    """Raises unless the tokeniser has the method, before an epoch of training is lost."""
    if not callable(getattr(tokenizer, method, None)):
        raise TypeError(
            f"`{name}` must have the method `{method}` of `keras_attention.data.Tokenizer`. Received "
            f"{type(tokenizer).__name__}. Pass an object such as `CharacterTokenizer.train(texts)`."
        )
