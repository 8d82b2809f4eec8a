"""The base class of the models that write a target sequence for a source sequence."""

import contextlib
import types

import keras
import numpy as np
from keras import ops

from keras_attention import decoding
from keras_attention.checks.arguments import check_positive_integer
from keras_attention.decoding.symbols import check_end
from keras_attention.models.compiled_search import CompiledSearches
from keras_attention.models.config import config_of_model
from keras_attention.models.ids import shift_real_right, take_input, vocabulary_check, vocabulary_ids
from keras_attention.ops.ids import checked_ids
from keras_attention.ops.known_values import known_values
from keras_attention.ops.masks import padding_mask
from keras_attention.saving.dtype_policies import default_policy
from keras_attention.tokens import END, START
from keras_attention.training.losses import SmoothedCrossentropy, check_labels
from keras_attention.training.token_model import TokenModel


class SequenceModel(TokenModel):
    """Base class of the models that write a target sequence for a source sequence.

    A subclass makes its layers, keeps its arguments in the dictionary `self.config`, and calls

        super().__init__(**self.training_graph(source), dtype=dtype, name=name, trainable=trainable)

    with a symbolic source. Over the layers it writes three methods:

        encode(source): the encoded source.
        initial_state(source, max_length=None): the state before the first token, a nest of tensors, batch first, and
            scalars. With `max_length` it has room for so many steps; without, `decode` gets the whole target at once, as
            in training.
        decode(target, state, return_attention_scores=False): `(logits, weights, state)`. The logits `(B, T, V)` are those
            of the token after each of `target (B, T)`. The weights `(B, T, S)` tell which source positions each of them
            attended to; `None` unless asked for. The state is the one after the whole target.

    The same `decode` makes the graph for training and takes the steps of a search. Where the state is a dictionary with
    "coverage" `(B, S)`, the attention that each source position has received, 1 at padding, `decode_step` adds the
    weights of its step to it, and `BeamSearch(coverage_penalty=...)` can be used.

    Sources and targets are ids of the vocabularies in `vocabulary_sizes`. A model that reads something else writes
    `check_source` and `check_target`. A model whose sequences do not start and end with the symbols of
    `keras_attention.tokens` names its own in `start_id` and `end_id`.

    In return it gets `decode_step`, `generate`, `log_probability`, `alignment`, `serving_signatures`, `get_config` and
    `from_config`. It may still write `decode_step` and `align` itself, and its graph, config and checks, as in version 0.1.
    """

    start_id = START
    end_id = END
    config = None
    vocabulary_sizes = types.MappingProxyType({})  # {"source": number of ids, "target": number of ids}

    # === Building ===

    def __init__(self, *args, dtype=None, **kwargs):
        super().__init__(*args, **kwargs)
        if dtype is not None:
            self.dtype_policy = default_policy(dtype)  # `compile` reads it to scale the loss in float16

    def __setattr__(self, name, value):
        # The layers come before the graph that is made of them, and torch takes no layer before its own `__init__`.
        # Keras finds them in the graph.
        values = value if isinstance(value, list) else [value]
        if not hasattr(self, "inputs") and all(isinstance(each, keras.layers.Layer) for each in values):
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    def training_graph(self, source):
        """Inputs and outputs of the graph that predicts each token of a target from those before it.

        Args:
            source: `keras.Input` of the source ids `(B, S)`, named "source", or a dictionary of inputs by their names.
        """
        target = keras.Input((None,), dtype="int32", name="target")
        logits, _, _ = self.decode(target, self.initial_state(source))
        return {"inputs": graph_inputs(source, target), "outputs": logits}

    def call(self, inputs, training=None, mask=None):
        # Keras casts floats to the integers of the `Input`, by which a fraction would be another id.
        if isinstance(inputs, dict):
            sizes = {name: size for name, size in self.vocabulary_sizes.items() if name in inputs}
            inputs = {**inputs, **{name: checked_ids(name, inputs[name], size) for name, size in sizes.items()}}
        return super().call(inputs, training=training, mask=mask)

    def make_train_function(self, force=False):
        # An optimizer that makes its variables inside the first step has TensorFlow trace that step twice.
        strategy = getattr(self, "distribute_strategy", None)
        with contextlib.nullcontext() if strategy is None else strategy.scope():
            self.optimizer.build(self.trainable_variables)
        return super().make_train_function(force)

    # === Decoding ===

    def decode(self, target, state, return_attention_scores=False):
        raise NotImplementedError(
            f"{type(self).__name__} must define `decode(target, state, return_attention_scores=False)`, which returns "
            "`(logits, weights, state)`."
        )

    def decode_step(self, tokens, state):
        """Logits `(B, V)` of the position after `tokens (B,)`, and the next state."""
        has_coverage = isinstance(state, dict) and "coverage" in state
        logits, weights, state = self.decode(tokens[:, None], state, return_attention_scores=has_coverage)
        if has_coverage:
            state = {**state, "coverage": state["coverage"] + weights[:, 0]}
        return logits[:, 0], state

    def search(self, source, max_length, sampler="greedy", end=None):
        """`generate` as a function of tensors, to be called inside a graph: what the sampler returns, `(tokens, scores)`."""
        end = self.end_id if end is None else end
        start = ops.full((ops.shape(keras.tree.flatten(source)[0])[0],), self.start_id, dtype="int32")
        state = self.initial_state(source, max_length)
        return decoding.get(sampler)(self.decode_step, state, start, max_length, end=end)

    def generate(self, inputs, max_length=64, sampler="greedy", return_scores=False, end=None):
        """Target sequences for a batch of sources, by one compiled call.

        Args:
            inputs: Integer ids of the source `(B, S)`, padded with 0 in any place, or `{"source": ids}`.
            max_length: Integer, length of the result.
            sampler: "greedy", "beam", "sample", or a callable `(step, state, start, max_length, end) -> (tokens, scores)`
                such as `BeamSearch(beam_width=5)` of `keras_attention.decoding`. Each is compiled once. Equal `BeamSearch`
                objects count as one; every `Sample` object is another, so make it once and keep it.
            return_scores: Boolean. Also return the scores as the sampler defines them.
            end: Integer, or a list or tuple of integers: the ids that end an answer. `None`: the model's own, `end_id`.

        Returns:
            NumPy int32 ids `(B, max_length)`, without the start symbol, with the end symbol, padded after it; of a
            `BeamSearch` with `num_results` n `(B, n, max_length)`, the best first. With `return_scores`
            `(ids, scores)`, the scores float32 `(B,)` or `(B, n)`. Where the model gives no distribution, as after
            training that diverged, the answer is padding and its score NaN.

        Raises:
            ValueError: If ids are outside the vocabulary, or the sampler is unknown.
        """
        max_length = self.check_max_length(max_length)
        decoding.get(sampler)
        end = self.end_id if end is None else end
        source = self.check_source(inputs)
        B = len(keras.tree.flatten(source)[0])
        if B == 0:  # Keras predicts nothing on an empty batch
            source = keras.tree.map_structure(lambda array: np.zeros((1, *array.shape[1:]), array.dtype), source)
        ids, scores = (answers[:B] for answers in self._run_search(source, max_length, sampler, end))
        return (ids, scores) if return_scores else ids

    def check_max_length(self, max_length):
        """`max_length` as `search` takes it, after checking it."""
        return check_positive_integer("max_length", max_length)

    def _run_search(self, source, max_length, sampler, end):
        if not hasattr(self, "_compiled_searches"):
            self._compiled_searches = CompiledSearches(self)
        return self._compiled_searches(source, max_length, sampler, check_end(end))

    # === Given targets ===

    def decoder_inputs(self, target):
        """What the decoder has read when it predicts each token of `target (B, T)`."""
        return shift_real_right(target, self.start_id)

    def teacher_forcing(self, source, target):
        """The inputs of the graph with which it predicts each token of `target (B, T)`."""
        return graph_inputs(source, self.decoder_inputs(target))

    def target_mask(self, target):
        """Mask `(B, T)` of the real tokens of a target."""
        return padding_mask(target)

    def token_log_probabilities(self, source, target):
        """log p of each token `(B, T)`, given those before it; 0 at padding."""
        logits = self(self.teacher_forcing(source, target), training=False)
        log_probabilities = ops.log_softmax(logits, axis=-1)  # (B, T, V)
        gained = ops.take_along_axis(log_probabilities, target[..., None], axis=-1)[..., 0]  # (B, T)
        return ops.where(self.target_mask(target), gained, 0.0)

    def score(self, source, target):
        """`log_probability` as a function of tensors, to be called inside a graph."""
        return ops.sum(self.token_log_probabilities(source, target), axis=-1)

    def log_probability(self, inputs):
        """How probable the model finds given targets for given sources.

        `log_probability = sum over t of log p(target[t] | source, target[:t])`, over all that is not padding

        The targets are in the format of `generate`, so that a greedy answer gets the score of `greedy_search`. With the
        end symbol it is the log-probability of the whole target, without it of all targets that begin like this.

        Args:
            inputs: `{"source": (B, S), "target": (B, T)}`, integer ids padded with 0 in any place. The target has no start
                symbol; its end symbol is a token like the others. (In training the model reads it shifted, behind the
                start symbol.)

        Returns:
            NumPy float32 `(B,)`; 0 for a target of padding alone.

        Raises:
            ValueError: If ids are outside the vocabulary, or there is not one target for each source.
        """
        return ops.convert_to_numpy(self.score(*self.check_pairs(inputs)))

    def align(self, source, target):
        """`alignment` as a function of tensors, to be called inside a graph."""
        state = self.initial_state(source)
        _, weights, _ = self.decode(self.decoder_inputs(target), state, return_attention_scores=True)
        return ops.where(self.target_mask(target)[..., None], weights, 0.0)

    def alignment(self, inputs):
        """Which source positions the model attends to when it predicts each token of given targets.

        Args:
            inputs: `{"source": (B, S), "target": (B, T)}`, as in `log_probability`.

        Returns:
            NumPy float32 `(B, T, S)`: row t is the distribution over the source for the prediction of `target[t]`. It
            is zero at padding of the source, and for padding of the target.

        Raises:
            ValueError: As in `log_probability`.
        """
        return ops.convert_to_numpy(self.align(*self.check_pairs(inputs)))

    # === Checks ===

    def check_source(self, inputs):
        """The source of `generate`'s inputs as an array, or as a nest of arrays, batch first; here int32 ids `(B, S)`."""
        source = take_input(inputs, "source") if isinstance(inputs, dict) else inputs
        return vocabulary_ids("source", source, self.vocabulary_sizes["source"])

    def check_target(self, target, source):
        """The target as int32 ids `(B, T)`."""
        return vocabulary_ids("target", target, self.vocabulary_sizes["target"])

    def check_pairs(self, inputs):
        """Source and target `(B, T)` as tensors, after checking them."""
        _, target = (take_input(inputs, name) for name in ("source", "target"))
        source = self.check_source(inputs)
        target = self.check_target(target, source)
        source_shape = keras.tree.flatten(source)[0].shape
        if source_shape[0] != len(target):
            raise ValueError(
                "There must be one target for each source. Received source of shape "
                f"{source_shape} and target of shape {target.shape}. Repeat a source for each of its targets."
            )
        return keras.tree.map_structure(ops.convert_to_tensor, (source, target))

    def logits_mask(self, target):
        """Mask `(B, T)` of the logits that count, for the ids `target (B, T)` that the decoder reads."""
        return padding_mask(target)

    def number_of_classes(self, inputs):
        """How many classes the logits for `{"source", "target"}` have."""
        return self.outputs[0].shape[-1]

    def check_labels(self, x, y=None, sample_weight=None):
        labels = None if y is None else known_values(y)
        if not is_smoothed(self.loss) or not isinstance(x, dict) or labels is None:
            return
        target = ops.convert_to_tensor(x["target"])
        check_label_shapes(labels, sample_weight, tuple(target.shape))
        weights = ops.convert_to_numpy(self.logits_mask(target))
        if sample_weight is not None:  # one for each example or one for each token
            weights = weights * np.reshape(ops.convert_to_numpy(sample_weight), (len(labels), -1))
        check_labels(labels, weights, self.number_of_classes(x))

    # === Serving and config ===

    def serving_signatures(self, max_length=64, sampler="greedy"):
        """What `keras_attention.serving.export` writes: name -> (function of tensors, inputs, checks).

        The first is the default. A check is `(reason, function of the inputs -> boolean (B,))`, True for a row that has no
        answer for this reason.
        """
        checks = {name: vocabulary_check(name, size) for name, size in self.vocabulary_sizes.items()}
        of_source, of_both = (
            [checks[name] for name in names if name in checks] for names in (["source"], ["source", "target"])
        )
        source, target = (keras.KerasTensor((None, None), dtype="int32", name=name) for name in ("source", "target"))

        def translate_ids(source):
            tokens, scores = self.search(source, max_length, sampler)
            return {"tokens": tokens, "scores": scores}

        def encode(source):
            return {"encoded": self.encode(source)}

        def score_ids(source, target):
            return {"scores": self.score(source, target)}

        def align_ids(source, target):
            return {"weights": self.align(source, target)}

        return {
            "translate_ids": (translate_ids, {"source": source}, of_source),
            "encode": (encode, {"source": source}, of_source),
            "score_ids": (score_ids, {"source": source, "target": target}, of_both),
            "align_ids": (align_ids, {"source": source, "target": target}, of_both),
        }

    def get_config(self):
        return super().get_config() if self.config is None else config_of_model(self)

    @classmethod
    def from_config(cls, config, custom_objects=None):
        is_graph = "layers" in config  # Keras' own config, of a subclass without `config`
        return super().from_config(config, custom_objects) if is_graph else cls(**config)


def graph_inputs(source, target):
    """The inputs of the graph: `{"source": ids, "target": ids}`, or with the dictionary that the source is."""
    return {**(source if isinstance(source, dict) else {"source": source}), "target": target}


def is_smoothed(loss):
    """Whether a compiled loss is `SmoothedCrossentropy`, whose labels are ids."""
    return isinstance(getattr(loss, "loss_object", loss), SmoothedCrossentropy)


def check_label_shapes(labels, sample_weight, target_shape):
    """Raises unless there is a label for each token of a target `(B, T)`, and a weight for each example or for each token."""
    if labels.shape != target_shape:
        raise ValueError(
            f"Labels must be ids of the shape of the target, (B, T), here {target_shape}. Received shape {labels.shape}. Pass "
            "ids, not one-hot vectors, without a last axis of size one."
        )
    B, T = target_shape
    if sample_weight is not None and np.shape(sample_weight) not in ((B,), (B, 1), (B, T)):
        raise ValueError(
            f"`sample_weight` must have one weight for each example, shape ({B},), or for each token, shape ({B}, {T}). "
            f"Received shape {np.shape(sample_weight)}."
        )
