"""A classifier of documents as a SavedModel that reads raw text and shows what it attended to."""

import functools

import tensorflow as tf

from keras_attention.serving.export import (
    check_backend,
    keyword_function,
    own_signatures,
    source_argument,
    write_version,
)
from keras_attention.tokens import PAD


def export_classifier(model, path, tokenizer, class_names=None, version=None, warm_up_requests=None):
    """Write a classifier of documents as the next version of a SavedModel: `path/1`, `path/2`, ...

    Its signatures, of a `HierarchicalClassifier` with the levels word and sentence:

        serving_default text (B,) -> probabilities (B, C), label (B,), class_name (B,) strings if there are names,
                        tokens (B, L, W) strings, word_weights (B, L, W), sentence_weights (B, L), logits (B, C)
        classify_ids    ids (B, L, W), padded with 0 -> the same without tokens, label and class_name

    for any number of documents, sentences and words. `tokens` are the words as the tokeniser cuts them, those that are
    not in the vocabulary too, and "" at padding, where the weights are 0: one answer is all that it takes to colour a
    document, as `visualization.plot_document` does. An empty text is a row of padding, and a batch of nothing but empty
    texts has L = W = 0.

    The version is prepared and loaded as `export` says.

    Args:
        model: Keras model, built, whose `serving_signatures()` begin with a function of ids that returns
            `probabilities` (B, C); what else it returns is served as well. Keras must run on TensorFlow.
        path: Folder of all versions of this model; made if it does not exist.
        tokenizer: `keras_attention.data.DocumentTokenizer` with the levels of the model, or any `tf.Module` whose
            `tokenize` and `split` make of strings (B,) ragged ids and ragged strings of the same form. Its limits protect a
            server from documents that are too long.
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
    check_backend()
    signatures = own_signatures(model)
    argument = source_argument(signatures)
    function, inputs = next(iter(signatures.values()))
    check_document_tokenizer(model, tokenizer, rank=len(inputs[argument].shape))
    check_class_names(class_names)
    signatures = {"classify_ids": (keyword_function(function, limits={}), inputs)}
    on_text = functools.partial(classifier_signature, argument, tokenizer, class_names)
    return write_version(model, path, signatures, version, warm_up_requests, on_text, [tokenizer])


def classifier_signature(argument, tokenizer, class_names, endpoints):
    """`serving_default` on text around `classify_ids`."""

    def serving_default(texts):
        ids = tokenizer.tokenize(texts["text"]).to_tensor(PAD)  # (B, L, W)
        outputs = dict(endpoints["classify_ids"]({argument: ids}))
        check_probabilities(outputs, class_names)
        outputs["label"] = tf.argmax(outputs["probabilities"], axis=-1, output_type=tf.int32)  # (B,)
        if class_names is not None:
            outputs["class_name"] = tf.gather(tf.constant(list(class_names)), outputs["label"])  # (B,)
        outputs["tokens"] = tokenizer.split(texts["text"]).to_tensor("")  # (B, L, W)
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
            f"`class_names` must be different strings, one for each class. Received: {class_names!r}. Pass such as "
            '`["negative", "positive"]`.'
        )


def check_probabilities(outputs, class_names):
    if "probabilities" not in outputs:
        raise ValueError(
            "The model's first signature must return `probabilities` (B, C). It returns "
            f"{sorted(outputs)}. Put a signature with `probabilities` first, or use `export`."
        )
    count = outputs["probabilities"].shape[-1]
    if class_names is not None and len(class_names) != count:
        raise ValueError(
            f"`class_names` must name each of the {count} classes. Received {len(class_names)}: {class_names}. Pass one for "
            "each label, in their order."
        )
