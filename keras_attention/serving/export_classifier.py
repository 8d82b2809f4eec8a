"""A classifier of documents as a SavedModel that reads raw text and returns its attention weights."""

import functools
import math

import tensorflow as tf

from keras_attention.serving.export import (
    check_tensorflow,
    own_signatures,
    source_argument,
    write_version,
)
from keras_attention.serving.rows import CHARACTERS_OF_AN_ID, LONGEST_DOCUMENT, checked_inputs, level_limits
from keras_attention.serving.text_signatures import first_characters
from keras_attention.tokens import PAD

NO_LABEL = -1


def export_classifier(model, path, tokenizer, class_names=None, version=None, warm_up_requests=None):
    """Write a classifier of documents as the next version of a SavedModel: `path/1`, `path/2`, ...

    Its signatures, of a `HierarchicalClassifier` with the levels word and sentence:

        serving_default text (B,) -> probabilities (B, C), label (B,), class_name (B,) strings if there are names,
                        tokens (B, L, W) strings, word_weights (B, L, W), sentence_weights (B, L), logits (B, C)
        classify_ids    ids (B, L, W), padded with 0 -> the same without tokens, label and class_name

    and `error` (B,) with both, as `export` says: strings, empty where all is well. A document for which a diverged model finds
    no number has the label -1 and the class name "". `tokens` are the words as the tokeniser cuts them, those that are
    not in the vocabulary too, and "" at padding, where the weights are 0: one answer is enough to colour a document, as
    `visualization.plot_document` does. An empty text is a row of padding, and a batch of empty texts alone has
    L = W = 0.

    The version is prepared and loaded as `export` says.

    Args:
        model: Keras model, built, whose `serving_signatures()` begin with a function of ids that returns
            `probabilities` (B, C); what else it returns is served as well. Keras must run on TensorFlow.
        path: Folder of all versions of this model; made if it does not exist.
        tokenizer: `keras_attention.data.DocumentTokenizer` with the levels of the model, or any `tf.Module` whose
            `tokenize` and `split` make of strings (B,) ragged ids and ragged strings of the same form. Its limits protect a
            server from documents that are too long; of a level without one the first 128 words, 128 sentences or 16
            paragraphs are read, all in the first 131,072 characters. Ids beyond the limits have their reason in `error`.
        class_names: List of C strings or `None`.
        version, warm_up_requests: As in `export`.

    Returns:
        The version's folder, a string.

    Raises:
        ValueError: Another backend than TensorFlow, a tokeniser of other levels or of more ids than the model has, names
            that are not one for each class, a version that exists.
        TypeError: A model without `serving_signatures`, a tokeniser without a method that is called.
        OSError: `path` cannot be made or written to.

    Example:
        >>> version = serving.export_classifier(model, "reviews", tokenizer, class_names=["negative", "positive"])
        >>> tf.saved_model.load(version).signatures["serving_default"](text=tf.constant(["Good!"]))["class_name"]
        <tf.Tensor: shape=(1,), dtype=string, numpy=array([b'positive'], dtype=object)>
    """
    check_tensorflow()
    signatures = own_signatures(model)
    argument = source_argument(signatures)
    signature = next(iter(signatures.values()))
    rank = len(signature[1][argument].shape)
    check_document_tokenizer(model, tokenizer, rank)
    check_class_names(class_names)
    longest = level_limits(rank - 1, tokenizer)
    on_text = functools.partial(classifier_signature, argument, tokenizer, class_names, longest)
    signatures, limits = {"classify_ids": signature}, {argument: longest}
    return write_version(model, path, signatures, limits, version, warm_up_requests, on_text, [tokenizer])


def classifier_signature(argument, tokenizer, class_names, longest, endpoints):
    """`serving_default` on text around `classify_ids`."""
    levels = getattr(tokenizer, "levels", ())
    has_limits = levels and all(getattr(tokenizer, f"max_{level}s", None) for level in levels)
    longest_text = math.prod(longest) * CHARACTERS_OF_AN_ID if has_limits else LONGEST_DOCUMENT

    def first_units(ragged, nothing):
        """The units within the limits, padded: `(B, L, W)`."""
        return ragged[(slice(None), *(slice(limit) for limit in longest))].to_tensor(nothing)

    def serving_default(texts):
        texts = first_characters(checked_inputs(texts)["text"], longest_text)
        outputs = dict(endpoints["classify_ids"]({argument: first_units(tokenizer.tokenize(texts), PAD)}))
        check_probabilities(outputs, class_names)
        has_answer = outputs["error"] == ""
        label = tf.argmax(outputs["probabilities"], axis=-1, output_type=tf.int32)  # (B,)
        outputs["label"] = tf.where(has_answer, label, NO_LABEL)
        if class_names is not None:
            outputs["class_name"] = tf.where(has_answer, tf.gather(tf.constant(list(class_names)), label), "")  # (B,)
        outputs["tokens"] = first_units(tokenizer.split(texts), "")  # (B, L, W)
        return outputs

    return {"serving_default": (serving_default, ["text"])}


def check_document_tokenizer(model, tokenizer, rank):
    for method in ("tokenize", "split"):
        if not (isinstance(tokenizer, tf.Module) and hasattr(tokenizer, method)):
            raise TypeError(
                f"`tokenizer` must be a `tf.Module` with the method `{method}`, so that its tables are saved with the model. "
                f"Received an object of type {type(tokenizer).__name__}. Pass a `DocumentTokenizer`."
            )
    levels = getattr(tokenizer, "levels", None)
    if levels is not None and 1 + len(levels) != rank:
        raise ValueError(
            f"`tokenizer` must have as many levels as the model, {rank - 1}. Received {len(levels)}: {levels}. Pass the "
            "tokeniser that made the training data."
        )
    size, limit = getattr(tokenizer, "vocabulary_size", None), getattr(model, "vocabulary_size", None)
    if None not in (size, limit) and size > limit:
        raise ValueError(
            f"`tokenizer` must have the vocabulary that the model was made for. Received {size} ids, and the model has "
            f"{limit}. Pass the tokeniser that made the training data."
        )


def check_class_names(class_names):
    if class_names is None:
        return
    are_names = not isinstance(class_names, str) and all(isinstance(name, str) for name in class_names)
    if not are_names or len(set(class_names)) < len(class_names):
        raise ValueError(
            f"`class_names` must be different strings, one for each class. Received: {class_names!r}. Pass for example "
            '`["negative", "positive"]`.'
        )


def check_probabilities(outputs, class_names):
    if "probabilities" not in outputs:
        raise ValueError(
            "The model's first signature must return `probabilities` (B, C). It returns "
            f"{sorted(set(outputs) - {'error'})}. Put a signature with `probabilities` first, or use `export`."
        )
    count = outputs["probabilities"].shape[-1]
    if class_names is not None and len(class_names) != count:
        raise ValueError(
            f"`class_names` must name each of the {count} classes. Received {len(class_names)}: {class_names}. Pass one for "
            "each label, in their order."
        )
