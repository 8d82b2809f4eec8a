"""A model as a SavedModel that answers requests by itself: text in, text out, the decoding loop inside."""

import keras
import tensorflow as tf

from keras_attention import decoding
from keras_attention.checks.arguments import check_at_least
from keras_attention.serving.rows import answer_rows, row_limits
from keras_attention.serving.text_signatures import check_tokenizers, check_vocabularies, text_signatures
from keras_attention.serving.versions import new_version
from keras_attention.serving.warm_up import write_warm_up_requests


def export(
    model,
    path,
    source_tokenizer=None,
    target_tokenizer=None,
    max_length=None,
    sampler="greedy",
    max_source_length=None,
    version=None,
    warm_up_requests=None,
):
    """Write `model` as the next version of a SavedModel: `path/1`, `path/2`, ...

    The model describes what it serves:

        model.serving_signatures(max_length=64, sampler="greedy")
            -> {name: (function, {argument: keras.KerasTensor}, checks)}
        function(argument=tensor) -> {output: tensor}, batch first
        checks: list of (reason, function(argument=tensor) -> boolean (B,), True = a bad row); may be left out

    Every signature is written under its name, for any batch size and any length that its shapes leave open. The first
    is the default; without tokenisers it is also called `serving_default`. A Transformer has these, on ids padded with 0:

        translate_ids   source (B, S) -> tokens (B, max_length), scores (B,): the answer as the sampler finds it
        encode          source (B, S) -> encoded (B, S, D)
        score_ids       source (B, S), target (B, T) -> scores (B,): `model.log_probability`
        align_ids       source (B, S), target (B, T) -> weights (B, T, S): `model.alignment`

    and a `PointerNetwork` has `point` and `score` on points; its `serving_signatures` describes them. A target has no start
    symbol, and its end symbol is a token of it, as in the answers. With both tokenisers there is text around the first
    signature, and around `score_ids` and `align_ids` if the model has them:

        serving_default text (B,) -> text (B,), and what the first signature returns beside `tokens`: scores (B,)
        score           source (B,), target (B,) -> scores (B,): the log-probability of the whole target, its end included
        align           source (B,), target (B,) -> weights (B, T, S), source_tokens (B, S), target_tokens (B, T):
                        the tokens as strings, the end symbol of the target among them, and "" at padding

    A sampler that finds n answers, as `BeamSearch(num_results=n)`, makes of it text `(B, n)`, tokens `(B, n, max_length)`
    and scores `(B, n)`, the best first. The scores of an answer are those of the sampler: log-probabilities from greedy
    search and sampling, normalised by the length from beam search.

    Every signature also returns `error` (B,): strings, empty where all is well. A bad row (an id outside the
    vocabulary, a point that is not finite, an impossible length, a row beyond a limit) and a row for which a diverged model
    finds no number have the reason there, and empty values as answer: floats are NaN, ids 0 and texts empty. The other
    rows of the request are answered as usual. Wrong names, ranks and types, and unequal numbers of sources and targets,
    are an error of the whole request.

    The version is prepared in a hidden folder inside `path` and moved to its place when it is whole, so a server that
    watches `path` never sees half of it. It loads with `tf.saved_model.load` and in TF Serving, where neither Keras nor
    this package is installed; tokenisers built on tensorflow-text need its ops there. TF Serving has them; a Python
    program gets them by `import tensorflow_text`, which wants Keras to be installed.

    Attention's memory grows with the square of the longest row of a batch, and learned positions end somewhere: limits
    protect a server from rows that are too long, 256 ids or points by default. An answer stops after
    `max_length` ids, also when it has not reached the end symbol. An empty text is a row of padding, and a batch of
    empty texts alone has the length S = 0.

    Args:
        model: Keras model with the method `serving_signatures`, built. Keras must run on TensorFlow.
        path: Folder of all versions of this model; made if it does not exist.
        source_tokenizer: `tf.Module` whose `tokenize(strings (B,))` returns a `tf.RaggedTensor (B, None)` of the ids
            that the model reads in training. Its tables must be its attributes, else they are not saved. `align` also
            calls `token_strings(ids (B, S))`, the token of each id as a string.
        target_tokenizer: `tf.Module` whose `detokenize(int32 (B, L))` returns strings `(B,)`; it gets the ids that the
            model returns, so it must end at the end symbol and drop padding. `score` and `align` also call `tokenize`,
            without start and end, and `align` calls `token_strings`. May be the same object.
        max_length: Integer, the largest number of ids in an answer. `None`: the model's own choice, 64 for a Transformer
            and as many as an answer can have for a `PointerNetwork`.
        sampler: How an answer is found: "greedy", "beam", "sample" or an object of `keras_attention.decoding`, such as
            `BeamSearch(beam_width=5, num_results=3)`. A `Sample` gives each request another answer; a version that is
            loaded again begins again with the seed that the sampler had here.
        max_source_length: Integer, the longest source in ids or points. Of a text that is longer its first
            `max_source_length` ids are read; it is cut to 32 characters for each of them before it is tokenised. Ids and
            points that are longer have their reason in `error`; padding behind them does not count and is cut. `None`: what
            the model says in an attribute `max_source_length`, or 256, and a line on the screen that says so. A target, as
            text too, has its reason in `error` if it has more than `max_length` ids, since the score of a cut target would be
            that of another one; where `max_length` is not given, more than a source may have, and of a `PointerNetwork` more
            than an answer can need. Documents of a `HierarchicalClassifier` are limited as in `export_classifier`.
        version: Integer from 1 on; must not exist. By default the number after the last one.
        warm_up_requests: List of dicts `{input name: value}` for `serving_default`, which TF Serving runs before it
            opens the version; see `write_warm_up_requests`.

    Returns:
        The version's folder, a string.

    Raises:
        ValueError: Another backend than TensorFlow, one tokeniser without the other or of another vocabulary than the
            model's, an unknown sampler, a length below 1, a version that exists.
        TypeError: A model without `serving_signatures`, a tokeniser without a method that is called.
        OSError: `path` cannot be made or written to.

    Example:
        >>> version = serving.export(model, "dates", tokenizer, tokenizer, max_length=12)
        >>> tf.saved_model.load(version).signatures["serving_default"](text=tf.constant(["3 March 2015"]))["text"]
        <tf.Tensor: shape=(1,), dtype=string, numpy=array([b'2015-03-03'], dtype=object)>
    """
    check_tensorflow()
    for name, length in (("max_length", max_length), ("max_source_length", max_source_length)):
        if length is not None:
            check_at_least(name, length, 1)
    lengths = {} if max_length is None else {"max_length": max_length}
    signatures = own_signatures(model, sampler=decoding.get(sampler), **lengths)
    check_tokenizers(signatures, source_tokenizer, target_tokenizer)
    check_vocabularies(model, source_tokenizer, target_tokenizer)
    limits = row_limits(model, signatures, max_source_length, max_length)
    if source_tokenizer is None:
        version = write_version(model, path, signatures, limits, version, warm_up_requests)
    else:
        argument = source_argument(signatures)

        def on_text(endpoints):
            return text_signatures(endpoints, argument, source_tokenizer, target_tokenizer, limits)

        tokenizers = (source_tokenizer, target_tokenizer)
        version = write_version(model, path, signatures, limits, version, warm_up_requests, on_text, tokenizers)
    if max_source_length is None and limits:
        said = ", ".join(f"{name} {' x '.join(map(str, longest))}" for name, longest in limits.items())
        print(f"{version}: the longest rows are {said}. Other limits: `max_source_length` and `max_length`.")
    return version


def write_version(model, path, signatures, limits, version, warm_up_requests, on_text=None, tokenizers=()):
    """Writes the version, prepared beside its place, and returns its folder.

    Args:
        model: Keras model, whose weights are saved.
        path, version, warm_up_requests: As in `export`.
        signatures: Dict `{name: (function, {argument: keras.KerasTensor}, checks)}`, as a model gives them.
        limits: Dict `{argument: (longest, ...)}`, as `answer_rows` takes it.
        on_text: `None`, or a function of `{name: endpoint}` of the signatures written so far, which returns those around
            them, `{name: (function of the dict {argument: strings (B,)}, list of the arguments)}`.
        tokenizers: The tokenisers that these call, whose tables are saved.
    """
    with new_version(path, version) as (folder, move):
        archive = keras.export.ExportArchive()
        archive.track(model)
        endpoints = {
            name: add_endpoint(archive, name, served(limits, *signature), tensor_specs(signature[1]))
            for name, signature in signatures.items()
        }
        for tokenizer in tokenizers:
            archive.track(tokenizer)
        for name, (function, arguments) in (on_text(endpoints) if on_text else {}).items():
            specs = {argument: tf.TensorSpec((None,), "string", name=argument) for argument in arguments}
            add_endpoint(archive, name, function, specs)
        archive.write_out(folder, verbose=False)
        if warm_up_requests is not None:
            write_warm_up_requests(folder, warm_up_requests)
        return move()


def add_endpoint(archive, name, function, specs):
    """Adds `function` of the dict `{argument: tensor}` to the archive, which calls what is traced here, once.

    Keras traces an endpoint to find its variables, and TensorFlow does so again to save it.
    """
    traced = tf.function(function, autograph=False).get_concrete_function(specs)
    return archive.add_endpoint(name, lambda inputs: traced(inputs), [specs])


def served(limits, function, inputs, checks=()):
    """A signature of a model as a function of the one dict `{"source": ids}`, which answers the rows that it can."""
    return answer_rows(
        lambda tensors: function(**tensors), checks, {name: limits[name] for name in inputs if name in limits}
    )


def tensor_specs(inputs):
    """`{"source": KerasTensor((None, None), "int32")}` -> the same as `tf.TensorSpec`, named by its argument."""
    return {argument: tf.TensorSpec(tensor.shape, tensor.dtype, name=argument) for argument, tensor in inputs.items()}


def own_signatures(model, **options):
    """The signatures of the model."""
    if not hasattr(model, "serving_signatures"):
        raise TypeError(
            "`model` must describe its signatures in `serving_signatures(max_length=64, sampler=...)`. Received an object of "
            f"type {type(model).__name__} without that method. Add it, or write the model's call with "
            "`model.export(path)`."
        )
    return model.serving_signatures(**options)


def source_argument(signatures):
    """The name of the one input of the first signature."""
    name, (_, inputs, *_) = next(iter(signatures.items()))
    if len(inputs) != 1:
        raise ValueError(
            "With tokenisers the model's first signature must have one input, the ids of the text. "
            f"{name!r} has the inputs {list(inputs)}. Put another signature first, or leave the tokenisers out."
        )
    return next(iter(inputs))


def check_tensorflow():
    if keras.backend.backend() != "tensorflow":
        raise ValueError(
            f"The Keras backend must be 'tensorflow' to export. Received backend {keras.backend.backend()!r}. Save the "
            "model with `model.save('model.keras')`, then load it and export it in a process started with "
            "KERAS_BACKEND=tensorflow."
        )
