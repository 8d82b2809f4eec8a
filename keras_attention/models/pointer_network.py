"""The Pointer Network: from a source of any length to a sequence of its positions."""

import functools

import keras
from keras import ops

from keras_attention import scores
from keras_attention.checks.arguments import check_positive_integer, check_rate, check_seed
from keras_attention.decoding import constraints
from keras_attention.layers import Pointer
from keras_attention.layers.pointer import check_clipping, get_glimpse
from keras_attention.models.config import config_of_model
from keras_attention.models.encoders import (
    RealFirst,
    RealInPlace,
    Recurrence,
    encode_elements,
    get_decoder,
    get_encoder,
    on_a_row,
)
from keras_attention.models.ids import shift_right
from keras_attention.models.pointer_parts import Choices, TargetPadding, _Outside, nan_after_no_position, real_targets
from keras_attention.models.pointer_signatures import pointer_signatures
from keras_attention.models.points import check_indices, check_points, check_targets, checked_inputs
from keras_attention.models.sequence_model import SequenceModel
from keras_attention.ops.random import split_seed
from keras_attention.ops.softmax import LOWEST, at_least_float32, masked_softmax
from keras_attention.saving.dtype_policies import default_policy, policy_at
from keras_attention.saving.lookup import config_of
from keras_attention.saving.models import made_of_arguments
from keras_attention.tokens import PAD


@keras.saving.register_keras_serializable(package="keras_attention")
@made_of_arguments
class PointerNetwork(SequenceModel):
    """Encoder, recurrent decoder and a pointer: the answer is a sequence of positions of the source.

        elements = [outside, embedding(source[1]), ..., embedding(source[S])]      (S + 1 of them)
        memory   = encoder(elements)
        hidden[t] = decoder(elements[indices[t - 1]], hidden[t - 1])               indices[0] = 0: the start
        logits[t] = pointer(hidden[t], memory)                                     over the end and the S positions

    Indices count from 1. Index 0 stands outside of the source: it is the start, the end and the padding of an answer, and
    its element is learned. The decoder reads what was pointed at, not how, so in training all steps go through one call.
    The paper starts the decoder from the encoder's last state; here it starts from a projection of the memory's mean,
    which every encoder has.

    The logits are under the constraint: an index that may not come next has LOWEST, in training as in decoding, so the
    loss, `generate`, `log_probability` and the served answers speak of one distribution.

    Args:
        feature_dim: Integer F, features of a source position; 2 for points in the plane.
        encoder: "lstm"; "transformer", whose pre-LN blocks know no positions, so that the order of the source is no
            information; or a layer `(B, S, D)` -> `(B, S, E)`, such as `Bidirectional(LSTM(64, return_sequences=True))`.
            A layer reads the real positions of a source side by side, then zeros, and gets their mask if its call takes
            `mask`.
        decoder: "lstm", "gru", or a recurrent Keras layer with `return_sequences=True, return_state=True`.
        hidden_dim: Integer D, width of embedding, encoder and decoder; with "transformer" a multiple of 8, its heads.
        num_layers: Integer, layers of the encoder, where it is a name.
        score: A name ("additive", ...) or a `Score`, of the pointer.
        tanh_clipping: Number or `None`, as in `Pointer`.
        glimpse: Attention layer or `None`, as in `Pointer`.
        constraint: "permutation", "polygon", "triangles", a `Constraint` of `keras_attention.decoding`, or `None`.
        dropout: Float in [0, 1), on the embeddings and on the output of the decoder, and in the blocks of "transformer".
        seed: Integer seed of the dropouts, or `None`.
        dtype: Name or policy of the layers, such as "mixed_bfloat16"; the logits are float32 in any case.
        name, trainable: As in `keras.Model`.

    Call arguments:
        inputs: `{"source": (B, S, F), "source_mask": (B, S), "target": (B, T)}`: floats, booleans (True = a real position)
            and int32 indices, the wanted answer shifted right behind a start 0: `[0, 3, 1, 2]` for the labels
            `[3, 1, 2, 0]`. Where values are not known, inside a graph, an index that is not in [0, S] makes the
            logits NaN from its step on.

    Returns:
        Float32 logits of shape `(B, T, S + 1)`, the end first. They carry the mask of the target: its first position and
        all that are not 0.

    Answers:
        `generate(source, max_length=None)` -> int32 `(B, L)`: indices from 1 on, 0 for the end and after it. Without
            `max_length` L is what the constraint can need for S positions, S + 1 unless it says otherwise. The source
            is an array `(B, S, F)`; or a list of B arrays `(n, F)`, each of a length of its own; or a dictionary of
            "source" and "source_mask".
        `log_probability` and `alignment` take such a source and "target", indices `(B, T)` in the format of `generate`,
            which count up to and with the first 0. An index that the constraint forbids costs 1e30. The alignment
            `(B, T, S + 1)` is the pointer: the distribution of each index, the end first.

    Raises:
        ValueError: If a size is not positive, a name is unknown, a layer does not fit, or values are known and an index of
            the target is not in [0, S].
        TypeError: If a layer, a score or the like has another type.

    Example:
        >>> model = PointerNetwork(encoder="transformer", hidden_dim=16, constraint="permutation")
        >>> points = [[[0.1, 0.2], [0.9, 0.4], [0.3, 0.8]]]
        >>> sorted(model.generate(points)[0].tolist())  # each point once, and the end
        [0, 1, 2, 3]

    References:
        Vinyals, Fortunato and Jaitly, 2015, arXiv:1506.03134.
        Bello et al., 2016, arXiv:1611.09940.
    """

    start_id = PAD
    end_id = PAD

    def __init__(
        self,
        feature_dim=2,
        encoder="lstm",
        decoder="lstm",
        hidden_dim=128,
        num_layers=1,
        score="additive",
        tanh_clipping=None,
        glimpse=None,
        constraint=None,
        dropout=0.0,
        seed=None,
        dtype=None,
        name=None,
        trainable=True,
    ):
        dropout = check_rate("dropout", dropout)
        feature_dim = check_positive_integer("feature_dim", feature_dim)
        hidden_dim = check_positive_integer("hidden_dim", hidden_dim)
        num_layers = check_positive_integer("num_layers", num_layers)
        score, glimpse = scores.get(score), get_glimpse(glimpse)
        tanh_clipping = check_clipping(tanh_clipping)
        dtype = keras.dtype_policies.get(dtype)
        self.constraint = constraints.get(constraint)
        self.config = {
            "feature_dim": feature_dim,
            "encoder": config_of(encoder) if isinstance(encoder, keras.layers.Layer | dict) else encoder,
            "decoder": config_of(decoder) if isinstance(decoder, keras.layers.Layer | dict) else decoder,
            "hidden_dim": hidden_dim,
            "num_layers": num_layers,
            "score": config_of(score),
            "tanh_clipping": tanh_clipping,
            "glimpse": None if glimpse is None else config_of(glimpse),
            "constraint": None if constraint is None else config_of(self.constraint),
            "dropout": dropout,
            "seed": check_seed(seed),
            "dtype": keras.saving.serialize_keras_object(dtype),
        }

        self._make_layers(encoder, decoder, score, tanh_clipping, glimpse, dtype)
        source = {
            "source": keras.Input((None, feature_dim), dtype="float32", name="source"),
            "source_mask": keras.Input((None,), dtype="bool", name="source_mask"),
        }
        super().__init__(**self.training_graph(source), dtype=dtype, name=name, trainable=trainable)

    # === Layers ===

    def _make_layers(self, encoder, decoder, score, tanh_clipping, glimpse, dtype):
        hidden_dim, dropout = self.config["hidden_dim"], self.config["dropout"]
        element_seed, encoder_seed, decoder_seed = split_seed(self.config["seed"], 3)
        self.embedding = keras.layers.Dense(hidden_dim, dtype=policy_at(dtype, "embedding"), name="embedding")
        self.outside = _Outside(dtype=dtype, name="outside")
        self.element_dropout, self.hidden_dropout = (
            keras.layers.Dropout(dropout, seed=seed, dtype=dtype, name=name)
            for name, seed in (("element_dropout", element_seed), ("hidden_dropout", decoder_seed))
        )
        self.real_first = self.real_in_place = None
        if not isinstance(encoder, str):  # those made by name pass padding over by its mask, wherever it stands
            self.real_first, self.real_in_place = RealFirst(name="real_first"), RealInPlace(name="real_in_place")
        self.encoder = get_encoder(
            encoder, hidden_dim, self.config["num_layers"], dropout, seed=encoder_seed, dtype=dtype
        )
        self.decoder = Recurrence(get_decoder(decoder, hidden_dim, dtype), name="decoder")
        sizes = keras.tree.flatten(self.decoder.layer.state_size)
        states, policy = (
            (f"initial_state_{index}" for index in range(len(sizes))),
            default_policy(self.decoder.dtype_policy),
        )
        self.initial_states = [
            keras.layers.Dense(size, "tanh", dtype=policy_at(dtype, name, policy), name=name)
            for name, size in zip(states, sizes, strict=True)
        ]
        self.pointer = Pointer(score, tanh_clipping, glimpse, dtype=dtype, name="pointer")
        self.choices = Choices(self.constraint, dtype="float32", name="choices")
        self.target_padding = TargetPadding(dtype="float32", name="target_padding")

    # === Forward ===

    def call(self, inputs, training=None, mask=None):
        # Keras casts what comes to the type of the `Input`, by which an additive mask would be inverted.
        inputs = checked_inputs(inputs)
        check_targets(inputs)
        return on_a_row(functools.partial(super().call, training=training, mask=mask), inputs)

    def encode(self, source):
        """The memory `(B, S + 1, E)` of `{"source": (B, S, F), "source_mask": (B, S)}`; position 0 is the end."""
        return self._encode(source)[1]

    def _encode(self, source):
        return on_a_row(self._encode_rows, source)

    def _encode_rows(self, source):
        """The elements `(B, S + 1, D)`, their memory `(B, S + 1, E)` and their mask `(B, S + 1)`."""
        mask = source["source_mask"]
        points = ops.where(mask[..., None], source["source"], 0.0)  # NaN in padding must not reach a gradient
        elements = self.element_dropout(self.outside(self.embedding(points)))
        mask = ops.pad(mask, ((0, 0), (1, 0)), constant_values=True)
        elements = ops.where(mask[..., None], elements, 0)  # the embedding of padding is the bias, not zeros
        if self.real_first is None:
            return elements, encode_elements(self.encoder, elements, mask), mask
        memory = encode_elements(self.encoder, *self.real_first(elements, mask))
        return elements, self.real_in_place(memory, mask), mask

    def initial_state(self, source, max_length=None):
        """State before the first step: elements, memory, mask, how often each position was chosen, the decoder's state.

        With `max_length` the memory is what the pointer prepares of it, once for all steps.
        """
        elements, memory, mask = self._encode(source)
        real = mask[..., None]
        total = ops.sum(ops.where(real, at_least_float32(memory), 0.0), axis=1)
        mean = total / ops.sum(ops.cast(real, total.dtype), axis=1)  # (B, E)
        prepared = {"memory": memory} if max_length is None else {"prepared": self.pointer.prepare(memory, mask)}
        return {
            **prepared,
            "elements": elements,
            "mask": source["source_mask"],
            "counts": ops.zeros_like(source["source_mask"], dtype="int32"),
            "recurrent": [dense(mean) for dense in self.initial_states],
        }

    def decode(self, target, state, return_attention_scores=False):
        """Logits `(B, T, S + 1)` after each index of `target (B, T)`, their softmax if asked for, and the state after all."""
        ids = ops.cumsum(ops.ones_like(state["counts"]), axis=-1)  # (B, S): 1, 2, ..., S
        pointed = ops.equal(target[..., None], ids[:, None])  # (B, T, S)
        chosen = ops.concatenate([ops.equal(target[..., None], 0), pointed], axis=-1)  # (B, T, S + 1)
        inputs = ops.matmul(ops.cast(chosen, state["elements"].dtype), state["elements"])  # (B, T, D)
        hidden, recurrent = self.decoder(inputs, state["recurrent"])
        counts = ops.concatenate([state["counts"][:, None], ops.cast(pointed, "int32")], axis=1)
        counts = ops.cumsum(counts, axis=1)  # (B, T + 1, S), before the first index and after each
        allowed = self.choices(state["mask"][:, None], counts[:, 1:], target)  # (B, T, S + 1)
        logits = self._point(self.hidden_dropout(hidden), state, allowed)
        logits = ops.where(allowed, logits, LOWEST)  # whatever the pointer says for "never" in float16
        logits = self.target_padding(target, nan_after_no_position(logits, target, state["mask"]))
        weights = masked_softmax(logits) if return_attention_scores else None
        return logits, weights, {**state, "counts": counts[:, -1], "recurrent": recurrent}

    def _point(self, hidden, state, allowed):
        if "prepared" in state:
            return self.pointer.read(hidden, state["prepared"], attention_mask=allowed)
        return self.pointer(hidden, state["memory"], attention_mask=allowed)

    def decoder_inputs(self, target):
        return shift_right(target, self.start_id)

    def target_mask(self, target):
        return self.logits_mask(self.decoder_inputs(target))

    def logits_mask(self, target):
        return real_targets(target)

    def check_labels(self, x, y=None, sample_weight=None):
        check_targets(x)
        super().check_labels(x, y, sample_weight)

    def number_of_classes(self, inputs):
        return 1 + inputs["source"].shape[1]

    # === Inputs ===

    def check_source(self, inputs):
        """`{"source", "source_mask"}` of such a dictionary, an array `(B, S, F)` or a list of B arrays `(n, F)`."""
        return check_points(inputs, self.config["feature_dim"])

    def check_target(self, target, source):
        return check_indices(target, source["source_mask"])

    def generate(self, inputs, max_length=None, sampler="greedy", return_scores=False):
        """As in every sequence model; without `max_length` as long as the constraint can need."""
        return super().generate(inputs, max_length, sampler, return_scores)

    def check_max_length(self, max_length):
        """`None` stays: the longest answer follows from the source, and one search serves sources of every length."""
        return None if max_length is None else super().check_max_length(max_length)

    def search(self, source, max_length=None, sampler="greedy", end=None):
        """As in every sequence model; without `max_length` as long as the constraint can need."""
        if max_length is None:
            max_length = self.longest_answer(ops.shape(source["source"])[1])
        return super().search(source, max_length, sampler, end)

    def longest_answer(self, length):
        """The most ids that an answer for a source of `length` positions can need, the end included."""
        return self.constraint.max_length(length)

    # === Serving and config ===

    def serving_signatures(self, max_length=None, sampler="greedy"):
        """`point` and `score`, for any number of points: see `models/pointer_signatures.py`."""
        return pointer_signatures(self, max_length, sampler)

    def get_config(self):
        parts = {"score": self.pointer.score, "glimpse": self.pointer.glimpse}
        return config_of_model(self, encoder=self.encoder[0], decoder=self.decoder.layer, **parts)
