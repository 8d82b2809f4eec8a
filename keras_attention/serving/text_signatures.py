"""Text around the id signatures of a model: strings come in, the tokenisers run inside the graph, strings go out."""

import tensorflow as tf

from keras_attention.serving.rows import CHARACTERS_OF_AN_ID, answer_rows, checked_inputs
from keras_attention.tokens import END, PAD

BYTES_OF_A_CHARACTER = 4  # at most, in UTF-8


def text_signatures(endpoints, source_argument, source_tokenizer, target_tokenizer, limits):
    """The signatures on text around those on ids: `serving_default`, and `score` and `align` where their ids exist.

    Args:
        endpoints: Dict `{name: function of the dict {argument: ids}}`; the first is the default.
        source_argument: String, the one argument of the first.
        source_tokenizer, target_tokenizer: Tokenisers that `check_tokenizers` has passed.
        limits: Dict of the limits of the arguments, `{"source": (256,), "target": (64,)}`.

    Returns:
        Dict `{name: (function of the dict {argument: strings (B,)}, list of the arguments)}`.
    """

    (longest_source,), (longest_target,) = limits.get(source_argument, (None,)), limits.get("target", (None,))

    def source_ids(texts):
        """`["ab", ""]` -> `[[4, 5], [0, 0]]`"""
        longest_text = None if longest_source is None else longest_source * CHARACTERS_OF_AN_ID
        ids = source_tokenizer.tokenize(first_characters(texts, longest_text))[:, :longest_source]
        return ids.to_tensor(default_value=PAD)  # (B, S)

    def target_ids(texts):
        """`["ab", ""]` -> `[[4, 5, 2], [2, 0, 0]]`, as the model answers (2 = end)"""
        ids = target_tokenizer.tokenize(texts)
        ends = tf.fill([ids.nrows(), 1], tf.constant(END, ids.dtype))
        ids = tf.concat([ids, ends], axis=1)  # (B, None)
        return ids[:, : longest_target and longest_target + 1].to_tensor(
            default_value=PAD
        )  # (B, T), too long by one at most

    def is_too_long(source, target):
        return target != first_characters(target, longest_target * CHARACTERS_OF_AN_ID)

    def pair_ids(texts):
        return {"source": source_ids(texts["source"]), "target": target_ids(texts["target"])}

    def serving_default(texts):
        translate = next(iter(endpoints.values()))
        outputs = dict(translate({source_argument: source_ids(checked_inputs(texts)["text"])}))
        if "tokens" not in outputs:
            raise ValueError(
                "The first signature must return `tokens`, so that `target_tokenizer` can turn them into text. "
                f"It returns {sorted(set(outputs) - {'error'})}. Put a signature with `tokens` first, or leave the tokenisers "
                "out."
            )
        return {"text": detokenized(outputs.pop("tokens"), target_tokenizer), **outputs}

    def score(texts):
        return endpoints["score_ids"](pair_ids(texts))

    def align(texts):
        ids = pair_ids(texts)
        return {
            **endpoints["align_ids"](ids),
            "source_tokens": visible_tokens(ids["source"], source_tokenizer),
            "target_tokens": visible_tokens(ids["target"][:, :longest_target], target_tokenizer),
        }

    checks = []
    if longest_target:  # not even tokenised
        reason = f"`target` must have at most {longest_target * CHARACTERS_OF_AN_ID} characters. Send a shorter one."
        checks = [(reason, is_too_long)]
    signatures = {"serving_default": (serving_default, ["text"])}
    if "score_ids" in endpoints:
        signatures["score"] = (answer_rows(score, checks), ["source", "target"])
    if "align_ids" in endpoints:
        signatures["align"] = (answer_rows(align, checks), ["source", "target"])
    return signatures


def first_characters(texts, number):
    """The first `number` characters of each text, in so many bytes as these can have; `None` for all."""
    if number is None:
        return texts
    # Bytes that are not UTF-8 may be no character at all to TensorFlow, however many they are.
    texts = tf.strings.substr(texts, 0, number * BYTES_OF_A_CHARACTER)
    return tf.strings.substr(texts, 0, number, unit="UTF8_CHAR")


def detokenized(tokens, tokenizer):
    """Ids `(B, L)` or `(B, n, L)` as texts `(B,)` or `(B, n)`."""
    shape = tf.shape(tokens)
    rows = tf.reshape(tokens, [tf.reduce_prod(shape[:-1]), shape[-1]])
    return tf.reshape(tokenizer.detokenize(rows), shape[:-1])


def visible_tokens(ids, tokenizer):
    """`[[4, 5, 2], [2, 0, 0]]` -> `[["a", "b", "[END]"], ["[END]", "", ""]]`"""
    return tf.where(ids == PAD, "", tokenizer.token_strings(ids))


def check_tokenizers(signatures, source_tokenizer, target_tokenizer):
    """Raises unless both are there, with the methods that text around `signatures` calls, or neither."""
    if (source_tokenizer is None) != (target_tokenizer is None):
        raise ValueError(
            "`source_tokenizer` and `target_tokenizer` must be given together. Received "
            f"source_tokenizer={source_tokenizer} and target_tokenizer={target_tokenizer}. "
            "Give both for text to text (one object may be both), or neither for ids to ids."
        )
    if source_tokenizer is None:
        return
    of_pairs = ["tokenize"] if {"score_ids", "align_ids"} & set(signatures) else []
    of_tokens = ["token_strings"] if "align_ids" in signatures else []
    for argument, tokenizer, methods in (
        ("source_tokenizer", source_tokenizer, ["tokenize", *of_tokens]),
        ("target_tokenizer", target_tokenizer, ["detokenize", *of_pairs, *of_tokens]),
    ):
        for method in methods:
            if not (isinstance(tokenizer, tf.Module) and hasattr(tokenizer, method)):
                raise TypeError(
                    f"`{argument}` must be a `tf.Module` with the method `{method}`, so that its tables are saved with "
                    f"the model. Received an object of type {type(tokenizer).__name__}."
                )


def check_vocabularies(model, source_tokenizer, target_tokenizer):
    """Raises for tokenisers that write ids which the model cannot read, or cannot read ids which it writes."""
    sizes = getattr(model, "vocabulary_sizes", None)
    if sizes is None or source_tokenizer is None:
        return
    for argument, tokenizer, fits, side in (
        ("source_tokenizer", source_tokenizer, lambda size: size <= sizes["source"], "source"),
        ("target_tokenizer", target_tokenizer, lambda size: size == sizes["target"], "target"),
    ):
        size = getattr(tokenizer, "vocabulary_size", None)
        if size is not None and not fits(size):
            raise ValueError(
                f"`{argument}` must have the vocabulary that the model was made for. Received {size} ids, and the model "
                f"has {sizes[side]} for its {side}. Pass the tokeniser that made the training data."
            )
