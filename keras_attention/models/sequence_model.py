"""What all sequence models share: decoding from a source, and the signatures they can serve."""

import contextlib

import keras
import numpy as np
from keras import ops

from keras_attention import decoding
from keras_attention.checks.arguments import check_positive_integer
from keras_attention.decoding.symbols import check_end
from keras_attention.ops.known_values import known_values
from keras_attention.ops.masks import padding_mask
from keras_attention.ops.positions import order_real_first, places_real_first, reordered
from keras_attention.tokens import END, PAD, START
from keras_attention.training.losses import SmoothedCrossentropy, check_labels
from keras_attention.training.token_model import TokenModel


class SequenceModel(TokenModel):
    """Base class of the models that write a target sequence for a source sequence.

    A subclass builds its functional graph on `{"source": (B, S), "target": (B, T)}` and writes five methods over the
    same layers:

        encode(source): the encoded source.
        initial_state(source, max_length): nest of tensors from which decoding starts, batch first, and scalars; for a
            coverage penalty a dictionary with "coverage", as in `decoding.beam_search`.
        decode_step(tokens (B,), state): `(logits (B, V), state)` of the next position.
        align(source, target): the weights (B, T, S) with which each target token attends to the source.
        check_source(inputs): the source of `generate`'s inputs, an array or a nest of arrays, batch first; raises a clear
            error for what the model cannot read.
        check_target(target, source): the target as int32 ids (B, T), likewise.

    Where its sequences do not start and end with the symbols of `keras_attention.tokens`, it says with which, in
    `start_id` and `end_id`. In return it gets `generate`, `log_probability`, `alignment` and `serving_signatures`.
    """

    start_id = START
    end_id = END

    def __setattr__(self, name, value):
        # The layers come before the graph that is made of them, and torch takes no layer before its own `__init__`.
        # Keras finds them in the graph.
        values = value if isinstance(value, list) else [value]
        if not hasattr(self, "inputs") and all(isinstance(each, keras.layers.Layer) for each in values):
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    def make_train_function(self, force=False):
        # An optimizer that makes its variables inside the first step has TensorFlow trace that step twice.
        strategy = getattr(self, "distribute_strategy", None)
        with contextlib.nullcontext() if strategy is None else strategy.scope():
            self.optimizer.build(self.trainable_variables)
        return super().make_train_function(force)

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
                as `BeamSearch(beam_width=5)` of `keras_attention.decoding` is one. Each is compiled once; equal
                `BeamSearch` objects are one, but every `Sample` object is another: make it once and keep it.
            return_scores: Boolean. Also return the scores as the sampler defines them.
            end: Integer, or a list or tuple of integers: the ids that end an answer. `None`: the model's own, `end_id`.

        Returns:
            NumPy int32 ids `(B, max_length)`, without the start symbol, with the end symbol, padded after it; of a
            `BeamSearch` with `num_results` n `(B, n, max_length)`, the best first. With `return_scores`
            `(ids, scores)`, the scores float32 `(B,)` or `(B, n)`; an answer of padding with the score NaN where the
            model gives no distribution, as after training that diverged.

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
            self._compiled_searches = _CompiledSearches(self)
        return self._compiled_searches(source, max_length, sampler, check_end(end))

    def score(self, source, target):
        """`log_probability` as a function of tensors, to be called inside a graph."""
        return ops.sum(self.token_log_probabilities(source, target), axis=-1)

    def token_log_probabilities(self, source, target):
        """log p of each token `(B, T)`, given those before it; 0 at padding."""
        logits = self(self.teacher_forcing(source, target), training=False)
        log_probabilities = ops.log_softmax(logits, axis=-1)  # (B, T, V)
        gained = ops.take_along_axis(log_probabilities, target[..., None], axis=-1)[..., 0]  # (B, T)
        return ops.where(self.target_mask(target), gained, 0.0)

    def teacher_forcing(self, source, target):
        """The inputs of the graph with which it predicts each token of `target (B, T)`."""
        return {"source": source, "target": shift_real_right(target, self.start_id)}

    def target_mask(self, target):
        """Mask `(B, T)` of what is not padding."""
        return padding_mask(target)

    def log_probability(self, inputs):
        """How probable the model finds given targets for given sources.

        `log_probability = sum over t of log p(target[t] | source, target[:t])`, over all that is not padding

        The targets are in the format of `generate`, so that a greedy answer gets the score of `greedy_search`. With the
        end symbol it is the log-probability of the whole target, without it that of all targets which begin so.

        Args:
            inputs: `{"source": (B, S), "target": (B, T)}`, integer ids padded with 0 in any place. The target has no start
                symbol; its end symbol is a token like the others. (In training the model reads it shifted, behind the
                start symbol.)

        Returns:
            NumPy float32 `(B,)`; 0 for a target of nothing but padding.

        Raises:
            ValueError: If ids are outside the vocabulary, or there is not one target for each source.
        """
        return ops.convert_to_numpy(self.score(*self.check_pairs(inputs)))

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

    def serving_signatures(self, max_length=64, sampler="greedy"):
        """What `keras_attention.serving.export` writes: name -> (function of tensors, inputs, checks).

        The first is the default. A check is `(reason, function of the inputs -> boolean (B,))`, True for a row that has no
        answer for this reason.
        """
        checks = {name: vocabulary_check(name, size) for name, size in getattr(self, "vocabulary_sizes", {}).items()}
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


class _Search(keras.Model):
    """The decoding loop as a model of its own, so that `predict_on_batch` compiles it on every backend."""

    def __init__(self, model, max_length, sampler, end):
        super().__init__(name="search")
        self.model = model
        self.max_length = max_length
        self.sampler = decoding.get(sampler)
        self.end = end
        self.seed_generator = getattr(self.sampler, "seed_generator", None)  # tracked, so that its state is kept

    def call(self, source):
        return self.model.search(source, self.max_length, self.sampler, self.end)


class _CompiledSearches:
    """The searches of one model. A plain object, which Keras neither tracks nor saves with the model that it holds."""

    def __init__(self, model):
        self.model = model
        self.searches = {}

    def __call__(self, source, max_length, sampler, end):
        key = (max_length, sampler, end, *map(id, self.model.variables))  # LoRA and quantization exchange variables
        if key not in self.searches:
            search = _Search(self.model, max_length, sampler, end)
            search.compile()
            self.searches[key] = search
        return tuple(map(np.asarray, self.searches[key].predict_on_batch(source)))


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


def shift_right(target, start=START):
    """What the decoder has read before each token: `[[7, 8, 2, 0]]` -> `[[1, 7, 8, 2]]` (1 = start, 2 = end)."""
    return ops.concatenate([ops.full_like(target[:, :1], start), target[:, :-1]], axis=1)


def shift_real_right(target, start=START):
    """As `shift_right`, from one real token to the next, and 0 at padding: `[[0, 7, 0, 8, 2]]` -> `[[0, 1, 0, 7, 8]]`."""
    mask = padding_mask(target)
    together = reordered(target[..., None], order_real_first(mask))[..., 0]
    shifted = shift_right(together, start)
    in_place = reordered(shifted[..., None], places_real_first(mask))[..., 0]
    return ops.where(mask, in_place, PAD)


def take_input(inputs, name):
    """`inputs[name]`, or a clear error."""
    if not isinstance(inputs, dict) or name not in inputs:
        received = sorted(inputs) if isinstance(inputs, dict) else type(inputs).__name__
        raise ValueError(f'The inputs must be a dictionary with "{name}". Received: {received}.')
    return inputs[name]


def check_ids(name, ids, vocabulary_size):
    """`ids` as an int32 array `(B, length)`, after checking rank, type and range."""
    ids = integer_rows(name, ids, "ids", "length", "sequence")
    if ids.size and (ids.min() < 0 or ids.max() >= vocabulary_size):
        wrong = ids.max() if ids.max() >= vocabulary_size else ids.min()
        raise ValueError(outside_vocabulary(f"`{name}` has the id {wrong},", vocabulary_size))
    return ids.astype("int32")


def outside_vocabulary(what, vocabulary_size):
    """The words about an id that is none, in Python and in a served answer."""
    return (
        f"{what} outside the vocabulary [0, {vocabulary_size}). "
        "Tokenise with the tokeniser that the model was trained with."
    )


def vocabulary_check(name, vocabulary_size):
    """What `check_ids` checks in Python, for the rows of the argument `name` of a served signature."""

    def is_outside(**inputs):
        ids = inputs[name]
        return ops.any((ids < 0) | (ids >= vocabulary_size), axis=tuple(range(1, len(ids.shape))))  # (B,)

    return outside_vocabulary(f"`{name}` has an id", vocabulary_size), is_outside


def integer_rows(name, rows, kind, axis, item):
    """`rows` as an integer array `(B, length)`, after checking rank and type.

    The words of the messages: `kind` is what the integers are, `axis` the name of the second axis, `item` a row.
    """
    lengths = lengths_of_rows(rows)
    if len(set(lengths)) > 1:
        raise ValueError(
            f"The rows of `{name}` must be of one length. Received rows of {lengths} {kind}. "
            f"Pad them with 0, for example with `keras.utils.pad_sequences({kind}, padding='post')`."
        )
    rows = ops.convert_to_numpy(rows)
    if rows.ndim != 2 or (rows.size and not np.issubdtype(rows.dtype, np.integer)):
        raise ValueError(
            f"`{name}` must be integer {kind} of shape (B, {axis}), padded with 0. Received shape {rows.shape} and dtype "
            f"{rows.dtype}. Wrap a single {item} in a list: `[{kind}]`."
        )
    return rows


def lengths_of_rows(rows):
    """The lengths of what a list or tuple holds; of numbers, and of what is no list, none."""
    return [len(row) for row in rows if hasattr(row, "__len__")] if isinstance(rows, list | tuple) else []
