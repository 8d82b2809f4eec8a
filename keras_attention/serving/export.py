"""A model as a SavedModel that answers requests by itself: text in, text out, the decoding loop inside."""

import os

import keras
import tensorflow as tf

from keras_attention.serving.versions import free_version, new_folder
from keras_attention.serving.warm_up import write_warm_up_requests
from keras_attention.tokens import PAD


def export(
    model,
    path,
    source_tokenizer=None,
    target_tokenizer=None,
    max_length=64,
    version=None,
    warm_up_requests=None,
):
    """Write `model` as the next version of a SavedModel: `path/1`, `path/2`, ...

    The model says what it can serve:

        model.serving_signatures(max_length) -> {name: (function, {argument: keras.KerasTensor})}
        function(argument=tensor) -> {output: tensor}

    Every signature is written under its name, for any batch size and any length that its shapes leave open. The first
    is the default. Without tokenisers it is also called `serving_default`. With both tokenisers `serving_default` is
    text to text around it:

        text ──source_tokenizer──▶ ids ──first signature──▶ tokens ──target_tokenizer──▶ text
        (B,)                       (B, S)                   (B, max_length)              (B,)

    Its outputs are `text` and whatever the first signature returns beside `tokens`, such as `scores`.

    The version is prepared in a hidden folder inside `path` and moved to its place when it is whole, so a server that
    watches `path` never sees half of it. It loads with `tf.saved_model.load` and in TF Serving, where neither Keras nor
    this package is installed; tokenisers built on tensorflow-text need its ops there (TF Serving has them).

    A text goes to the model at its full length; nothing is cut in silence. Attention's memory grows with the square of
    the longest text of a batch, and learned positions end somewhere: where that matters, `source_tokenizer.tokenize`
    cuts. An answer stops after `max_length` ids, also when it has not reached the end symbol. An empty text is a row of
    padding, and a batch of nothing but empty texts has the length S = 0.

    Args:
        model: Keras model with the method `serving_signatures`, built. Keras must run on TensorFlow.
        path: Folder of all versions of this model; made if it does not exist.
        source_tokenizer: `tf.Module` whose `tokenize(strings (B,))` returns a `tf.RaggedTensor (B, None)` of the ids
            that the model reads in training. Its tables must be its attributes, else they are not saved.
        target_tokenizer: `tf.Module` whose `detokenize(int32 (B, L))` returns strings `(B,)`; it gets the ids that the
            model returns, so it must end at the end symbol and drop padding. May be the same object.
        max_length: Integer, the largest number of ids in an answer.
        version: Integer from 1 on; must not exist. By default the number after the last one.
        warm_up_requests: List of dicts `{input name: value}` for `serving_default`, which TF Serving runs before it
            opens the version; see `write_warm_up_requests`.

    Returns:
        The version's folder, a string.

    Raises:
        ValueError: Another backend than TensorFlow, one tokeniser without the other or of another vocabulary than the
            model's, a version that exists.
        TypeError: A model without `serving_signatures`, a tokeniser without its method.
        OSError: `path` cannot be made or written to.

    Example:
        >>> version = serving.export(model, "dates", tokenizer, tokenizer, max_length=12)
        >>> tf.saved_model.load(version).signatures["serving_default"](text=tf.constant(["3 March 2015"]))["text"]
        <tf.Tensor: shape=(1,), dtype=string, numpy=array([b'2015-03-03'], dtype=object)>
    """
    check_backend()
    check_tokenizers(source_tokenizer, target_tokenizer)
    check_vocabularies(model, source_tokenizer, target_tokenizer)
    path = os.path.abspath(path)
    target = os.path.join(path, str(free_version(path, version)))
    signatures = own_signatures(model, max_length)
    with new_folder(target) as folder:
        archive = keras.export.ExportArchive()
        archive.track(model)
        endpoints = [
            archive.add_endpoint(name, keyword_function(function), [tensor_specs(inputs)])
            for name, (function, inputs) in signatures.items()
        ]
        if source_tokenizer is not None:
            archive.track(source_tokenizer)
            archive.track(target_tokenizer)
            function = text_function(source_tokenizer, endpoints[0], source_argument(signatures), target_tokenizer)
            archive.add_endpoint("serving_default", function, [tf.TensorSpec((None,), "string", name="text")])
        archive.write_out(folder, verbose=False)
        if warm_up_requests is not None:
            write_warm_up_requests(folder, warm_up_requests)
    return target


def text_function(source_tokenizer, translate, source, target_tokenizer):
    """`text -> {"text": ..., "scores": ...}` around `translate: {source: ids} -> {"tokens": ids, "scores": ...}`."""

    def serving_default(text):
        ids = source_tokenizer.tokenize(text).to_tensor(default_value=PAD)  # (B, S)
        outputs = dict(translate({source: ids}))
        if "tokens" not in outputs:
            raise ValueError(
                "The first signature must return `tokens`, so that `target_tokenizer` can turn them into text. "
                f"It returns {sorted(outputs)}. Put a signature with `tokens` first, or leave the tokenisers out."
            )
        return {"text": target_tokenizer.detokenize(outputs.pop("tokens")), **outputs}

    return serving_default


def keyword_function(function):
    """`function(source=ids)` as a function of the one dict `{"source": ids}`."""
    return lambda inputs: function(**inputs)


def tensor_specs(inputs):
    """`{"source": KerasTensor((None, None), "int32")}` -> the same as `tf.TensorSpec`, named by its argument."""
    return {argument: tf.TensorSpec(tensor.shape, tensor.dtype, name=argument) for argument, tensor in inputs.items()}


def own_signatures(model, max_length):
    """What the model says it can serve."""
    if not hasattr(model, "serving_signatures"):
        raise TypeError(
            "`model` must say what it can serve in `serving_signatures(max_length)`. Received an object of type "
            f"{type(model).__name__} without that method. Add it, or write the model's call with `model.export(path)`."
        )
    if isinstance(max_length, bool) or not isinstance(max_length, int):
        raise TypeError(f"`max_length` must be an integer. Received max_length={max_length!r}.")
    if max_length < 1:
        raise ValueError(f"`max_length` must be 1 or more. Received max_length={max_length}.")
    return model.serving_signatures(max_length)


def source_argument(signatures):
    """The name of the one input of the first signature."""
    name, (_, inputs) = next(iter(signatures.items()))
    if len(inputs) != 1:
        raise ValueError(
            "With tokenisers the model's first signature must have one input, the ids of the text. "
            f"{name!r} has the inputs {list(inputs)}. Put another signature first, or leave the tokenisers out."
        )
    return next(iter(inputs))


def check_tokenizers(source_tokenizer, target_tokenizer):
    if (source_tokenizer is None) != (target_tokenizer is None):
        raise ValueError(
            "`source_tokenizer` and `target_tokenizer` must be given together. Received "
            f"source_tokenizer={source_tokenizer} and target_tokenizer={target_tokenizer}. "
            "Give both for text to text (one object may be both), or neither for ids to ids."
        )
    if source_tokenizer is None:
        return
    for argument, tokenizer, method in (
        ("source_tokenizer", source_tokenizer, "tokenize"),
        ("target_tokenizer", target_tokenizer, "detokenize"),
    ):
        if not (isinstance(tokenizer, tf.Module) and hasattr(tokenizer, method)):
            raise TypeError(
                f"`{argument}` must be a `tf.Module` with the method `{method}`, so that its tables are saved with the "
                f"model. Received an object of type {type(tokenizer).__name__}."
            )


def check_vocabularies(model, source_tokenizer, target_tokenizer):
    """Raises for tokenisers that write ids which the model cannot read, or cannot read ids which it writes."""
    sizes = getattr(model, "vocabulary_sizes", None)
    if sizes is None or source_tokenizer is None:
        return
    for argument, tokenizer, fits, side in (
        ("source_tokenizer", source_tokenizer, lambda size: size <= sizes["source"], "source"),
        ("target_tokenizer", target_tokenizer, lambda size: size >= sizes["target"], "target"),
    ):
        size = getattr(tokenizer, "vocabulary_size", None)
        if size is not None and not fits(size):
            raise ValueError(
                f"`{argument}` must have the vocabulary that the model was made for. Received {size} ids, and the model "
                f"has {sizes[side]} for its {side}. Pass the tokeniser that made the training data."
            )


def check_backend():
    if keras.backend.backend() != "tensorflow":
        raise ValueError(
            f"The Keras backend must be 'tensorflow' to export. Received backend {keras.backend.backend()!r}. Save the "
            "model with `model.save('model.keras')`, then load it and export it in a process started with "
            "KERAS_BACKEND=tensorflow."
        )
