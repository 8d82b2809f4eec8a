"""The Transformer: attention blocks with positions, from source ids to target logits."""

import functools

import keras
from keras import ops

from keras_attention import alignments, scores
from keras_attention.checks.arguments import check_boolean, check_positive_integer, check_rate, check_seed
from keras_attention.layers import (
    LearnedPositionEmbedding,
    SinusoidalPositionEncoding,
    TokenEmbedding,
    TransformerDecoderBlock,
    TransformerEncoderBlock,
)
from keras_attention.layers.attention_template import copy_of_attention, get_position, get_template
from keras_attention.layers.flow import check_stepwise
from keras_attention.layers.transformer_block import call_attention
from keras_attention.models.sequence_model import SequenceModel
from keras_attention.ops.masks import padding_mask
from keras_attention.ops.random import split_seed
from keras_attention.saving.dtype_policies import policy_at
from keras_attention.saving.lookup import config_of, copy_of, get_by_name
from keras_attention.saving.models import made_of_arguments

# "learned": as many positions as there are in common models; make the layer for more or fewer.
POSITION_ENCODINGS = {
    "sinusoidal": SinusoidalPositionEncoding,
    "learned": functools.partial(LearnedPositionEmbedding, max_length=1024),
}


@keras.saving.register_keras_serializable(package="keras_attention")
@made_of_arguments
class Transformer(SequenceModel):
    """Encoder and decoder of attention blocks, with any score and any alignment in every head.

    The default is the paper's base model. Padding (id 0) never changes an output, wherever it stands: positions count the
    real tokens of a row. The logits carry the mask of the target, so that losses and metrics leave padding out.

    Args:
        source_vocabulary_size: Integer, ids of the source, the special ones of `keras_attention.tokens` included.
        target_vocabulary_size: Integer V, ids of the target. `None`: one vocabulary for both.
        num_layers: Integer, blocks in the encoder and in the decoder.
        num_heads: Integer N, heads of each attention.
        hidden_dim: Integer D, width of the model.
        intermediate_dim: Integer, hidden size of the feed-forward networks.
        dropout: Float in [0, 1), on embeddings and sub-layer outputs, as in the paper.
        attention_dropout: Float in [0, 1), on the attention weights. `None`: as `dropout`.
        activation: Activation of the feed-forward networks.
        normalize_first: Boolean, pre-LN instead of the paper's post-LN.
        tie_embeddings: Boolean. The logits are read off the target's embedding table; with one vocabulary the source
            uses that table too, as in the paper.
        score: A name of `scores.get`, or a `Score`.
        alignment: A name of `alignments.get`, or an `Alignment`. Its queries must be able to come one by one: those of
            trees are not, and go into the encoder.
        encoder_alignment: The alignment of the encoder's self-attention; any, such as "dependency_tree". `None`: as
            `alignment`.
        seed: Integer seed of the dropouts, or `None`.
        dtype: Name or policy of the layers, such as "mixed_bfloat16"; the logits are float32 in any case.
        name, trainable: As in `keras.Model`.
        attention: An unbuilt `MultiHeadAttention`, of which every attention of the model is a copy, with a name, seed and
            dtype of its own. It says all that `num_heads`, `attention_dropout`, `score` and `alignment` stand for, which
            are then left out. Its `position` is for the self-attentions, as the argument of that name.
        position_encoding: What is added to the embeddings: "sinusoidal"; "learned", a `LearnedPositionEmbedding` of 1024
            positions; `None`; or an unbuilt layer, called as these are with `mask` and `positions`. With weights source and
            target have a copy each.
        position: What acts by positions inside every self-attention: a name of `positions.get` such as "rotary", or an unbuilt
            `PositionScheme`; `position_encoding=None` then leaves the embeddings alone. Each block has a copy, but a scheme
            that is `shared`, such as "t5", is one object for the encoder and one, its `causal()`, for the decoder.
        cross_position: Likewise in every attention of the decoder to the source, where both are counted from 0. `None`, as in
            the papers: nothing.

    Call arguments:
        inputs: `{"source": (B, S), "target": (B, T)}`, int32 ids padded with 0 in any place; the target starts with
            the start symbol and is the wanted output shifted right by one.

    Returns:
        Float32 logits of shape `(B, T, V)`; use a loss with `from_logits=True` or `SmoothedCrossentropy`.

    Raises:
        ValueError: If a size is not positive, the heads do not divide the width, or a name is unknown.

    Example:
        >>> model = Transformer(11, 13, num_layers=1, num_heads=2, hidden_dim=6, intermediate_dim=17)
        >>> source, target = keras.ops.array([[4, 5, 0]]), keras.ops.array([[1, 7, 8, 9]])
        >>> model({"source": source, "target": target}).shape
        (1, 4, 13)
        >>> model.generate(source, max_length=7).shape
        (1, 7)

    References:
        Vaswani et al., 2017, arXiv:1706.03762.
    """

    def __init__(
        self,
        source_vocabulary_size,
        target_vocabulary_size=None,
        num_layers=6,
        num_heads=8,
        hidden_dim=512,
        intermediate_dim=2048,
        dropout=0.1,
        attention_dropout=None,
        activation="relu",
        normalize_first=False,
        tie_embeddings=False,
        score="scaled_dot",
        alignment="softmax",
        encoder_alignment=None,
        seed=None,
        dtype=None,
        name=None,
        trainable=True,
        attention=None,
        position_encoding="sinusoidal",
        position=None,
        cross_position=None,
    ):
        dropout = check_rate("dropout", dropout)
        if attention_dropout is not None:
            attention_dropout = check_rate("attention_dropout", attention_dropout)
        self.attention = get_template(
            attention,
            num_heads=(num_heads, 8),
            attention_dropout=(attention_dropout, None),
            score=(score, "scaled_dot"),
            alignment=(alignment, "softmax"),
        )
        if attention is not None:
            num_heads, score, alignment = self.attention.num_heads, self.attention.score, self.attention.alignment
        self.position = get_position(position, self.attention)
        self.cross_position = get_position(cross_position, None)
        # The model has copies. A file holds no weights of these two, so they must not be built.
        self.position, self.cross_position = (
            copy_of(scheme) if scheme is not None and scheme.built else scheme
            for scheme in (self.position, self.cross_position)
        )
        score, alignment = scores.get(score), alignments.get(alignment, seed)
        check_stepwise(alignment)
        encoder_alignment = None if encoder_alignment is None else alignments.get(encoder_alignment, seed)
        num_layers = check_positive_integer("num_layers", num_layers)
        hidden_dim = check_positive_integer("hidden_dim", hidden_dim)
        source_vocabulary_size = check_positive_integer("source_vocabulary_size", source_vocabulary_size)
        one_vocabulary = target_vocabulary_size is None
        if one_vocabulary:
            target_vocabulary_size = source_vocabulary_size
        target_vocabulary_size = check_positive_integer("target_vocabulary_size", target_vocabulary_size)
        self.position_encoding = position_encoding
        if position_encoding is not None:
            self.position_encoding = get_by_name(
                position_encoding, POSITION_ENCODINGS, keras.layers.Layer, "position_encoding"
            )
        dtype = keras.dtype_policies.get(dtype)
        shorthands = {
            "num_heads": check_positive_integer("num_heads", num_heads),
            "attention_dropout": attention_dropout,
            "score": config_of(score),
            "alignment": config_of(alignment),
        }
        self.config = {
            "source_vocabulary_size": source_vocabulary_size,
            "target_vocabulary_size": None if one_vocabulary else target_vocabulary_size,
            "num_layers": num_layers,
            "hidden_dim": hidden_dim,
            "intermediate_dim": check_positive_integer("intermediate_dim", intermediate_dim),
            "dropout": dropout,
            "activation": keras.activations.serialize(keras.activations.get(activation)),
            "normalize_first": check_boolean("normalize_first", normalize_first),
            "tie_embeddings": check_boolean("tie_embeddings", tie_embeddings),
            "encoder_alignment": None if encoder_alignment is None else config_of(encoder_alignment),
            "seed": check_seed(seed),
            "dtype": keras.saving.serialize_keras_object(dtype),
            **(shorthands if attention is None else {}),
            "attention": None if attention is None else config_of(self.attention),
            "position_encoding": None if position_encoding is None else config_of(self.position_encoding),
            "position": None if position is None else config_of(self.position),
            "cross_position": None if cross_position is None else config_of(self.cross_position),
        }

        self._make_layers(target_vocabulary_size, score, encoder_alignment or alignment, alignment, dtype)
        source = keras.Input((None,), dtype="int32", name="source")
        super().__init__(**self.training_graph(source), dtype=dtype, name=name, trainable=trainable)

    # === Layers ===

    def _make_layers(self, target_vocabulary_size, score, encoder_alignment, decoder_alignment, dtype):
        config, D = self.config, self.config["hidden_dim"]
        encoder_positions, decoder_positions = self._positions_of_stacks()
        seeds = iter(split_seed(config["seed"], 2 * config["num_layers"] + 2))
        self.target_embedding = TokenEmbedding(target_vocabulary_size, D, dtype=dtype, name="target_embedding")
        self.source_embedding = self.target_embedding
        if not (config["tie_embeddings"] and config["target_vocabulary_size"] is None):
            self.source_embedding = TokenEmbedding(
                config["source_vocabulary_size"], D, dtype=dtype, name="source_embedding"
            )
        self.source_positions, self.target_positions = self._make_positions(dtype)
        self.source_dropout, self.target_dropout = (
            keras.layers.Dropout(config["dropout"], seed=next(seeds), dtype=dtype, name=f"{side}_dropout")
            for side in ("source", "target")
        )
        options = {name: config[name] for name in ("intermediate_dim", "dropout", "activation", "normalize_first")}
        self.encoder_blocks, self.decoder_blocks = (
            [
                kind(
                    **options,
                    **self._attention_options(score, alignment, schemes, 2 * index + (side == "decoder")),
                    seed=next(seeds),
                    dtype=dtype,
                    name=f"{side}_block_{index}",
                )
                for index in range(config["num_layers"])
            ]
            for side, kind, alignment, schemes in (
                ("encoder", TransformerEncoderBlock, encoder_alignment, encoder_positions),
                ("decoder", TransformerDecoderBlock, decoder_alignment, decoder_positions),
            )
        )
        self.encoder_norm = self.decoder_norm = self.logits_dense = None
        if config["normalize_first"]:
            self.encoder_norm, self.decoder_norm = (
                keras.layers.LayerNormalization(epsilon=1e-6, dtype=dtype, name=f"{side}_norm")
                for side in ("encoder", "decoder")
            )
        if not config["tie_embeddings"]:
            self.logits_dense = keras.layers.Dense(
                target_vocabulary_size, dtype=policy_at(dtype, "logits", "float32"), name="logits"
            )

    def _make_positions(self, dtype):
        """What is added to the embeddings of source and target: one layer, or two where it has weights."""
        if self.position_encoding is None:
            return None, None
        shared = copy_of(self.position_encoding, dtype=dtype, name="position_encoding")
        shared.build((None, None, self.config["hidden_dim"]))
        if not shared.weights:
            return shared, shared
        names = ("source_position_encoding", "target_position_encoding")
        return [copy_of(self.position_encoding, dtype=dtype, name=name) for name in names]

    def _positions_of_stacks(self):
        """What acts by positions in the encoder and in the decoder, by the argument of a block; without those that do not."""
        position = self.position if self.attention is None else self.position or self.attention.position
        encoder = {} if position is None else {"position": copy_of(position)}
        decoder = {} if position is None else {"position": copy_of(position).causal()}
        across = {} if self.cross_position is None else {"cross_position": copy_of(self.cross_position)}
        return encoder, {**decoder, **across}

    def _attention_options(self, score, alignment, schemes, index):
        """Which attention a block gets: a copy of the template, or the shorthands."""
        alignment = copy_of(alignment, index)
        schemes = {name: scheme if scheme.shared else copy_of(scheme, index) for name, scheme in schemes.items()}
        if self.attention is not None:
            attention = copy_of_attention(self.attention, index, alignment=alignment, position=None)
            return {"attention": attention, **schemes}
        shorthands = {name: self.config[name] for name in ("num_heads", "attention_dropout")}
        return {**shorthands, "score": copy_of(score), "alignment": alignment, **schemes}

    # === Forward ===

    @property
    def vocabulary_sizes(self):
        return {"source": self.source_embedding.vocabulary_size, "target": self.target_embedding.vocabulary_size}

    def encode(self, source):
        """The encoded source `(B, S, D)` of integer ids `(B, S)`."""
        return self._encode(source)[0]

    def _encode(self, source, return_attention_scores=False):
        """The encoded source `(B, S, D)`, its mask `(B, S)`, and the weights of every block, if asked for."""
        mask, weights = padding_mask(source), []
        hidden = self.source_embedding(source)
        if self.source_positions is not None:
            hidden = self.source_positions(hidden, mask=mask)
        hidden = self.source_dropout(hidden)
        options = {"mask": mask, "return_attention_scores": return_attention_scores}
        for block in self.encoder_blocks:
            hidden, block_weights, _ = call_attention(block, hidden, **options)
            weights.append(block_weights)
        return (hidden if self.encoder_norm is None else self.encoder_norm(hidden)), mask, weights

    def initial_state(self, source, max_length=None):
        """The state before the first token, for source ids `(B, S)`.

        Without `max_length` it holds the encoded source and its mask. With it there are caches for so many positions of the
        target, the index of the first free one, and the coverage `(B, S)`: the attention that each source position has
        received from the last block so far, the mean over the heads; 1 at padding.
        """
        encoded, mask, _ = self._encode(source)
        if max_length is None:
            return {"encoded": encoded, "source_mask": mask}
        state = {
            "caches": [block.initial_cache(encoded, max_length, source_mask=mask) for block in self.decoder_blocks],
            "index": ops.zeros((), "int32"),
        }
        if self.decoder_blocks[-1].cross_attention.flash_attention:  # which never holds its weights
            return state
        return {**state, "coverage": ops.cast(ops.logical_not(mask), "float32")}

    def decode(self, target, state, return_attention_scores=False):
        """Logits `(B, T, V)` after each of `target (B, T)`, weights `(B, T, S)` if asked for, and the state after all.

        The weights are those of the last block's cross-attention, the mean over the heads. A state without caches reads
        the whole target, and its padding counts nothing, wherever it stands. A state with caches goes on from what they
        hold, and every id counts: what comes after the end of a row is read by nobody.
        """
        asked = [False] * (len(self.decoder_blocks) - 1) + [return_attention_scores]
        logits, weights, state = self._decode(target, state, asked)
        if return_attention_scores:
            return logits, ops.mean(ops.cast(weights[-1]["cross"], "float32"), axis=1), state
        return logits, None, state

    def _decode(self, target, state, asked):
        """As `decode`, with the weights of every block, `None` for those not `asked` for."""
        mask = positions = None
        index, T = state.get("index"), ops.shape(target)[1]
        if index is None:
            mask = padding_mask(target)
        else:
            positions = index + ops.arange(T, dtype="int32")
        hidden = self.target_embedding(target)
        if self.target_positions is not None:
            hidden = self.target_positions(hidden, mask=mask, positions=positions)
        hidden, weights, caches = self.target_dropout(hidden), [], []
        options = {"target_mask": mask, "source_mask": state.get("source_mask"), "cache_index": index}
        memories = state.get("caches", [None] * len(self.decoder_blocks))
        for block, cache, is_asked in zip(self.decoder_blocks, memories, asked, strict=True):
            hidden, block_weights, cache = call_attention(
                block, hidden, state.get("encoded"), cache=cache, return_attention_scores=is_asked, **options
            )
            weights.append(block_weights)
            caches.append(cache)
        hidden = hidden if self.decoder_norm is None else self.decoder_norm(hidden)
        logits = self.target_embedding(hidden, reverse=True) if self.logits_dense is None else self.logits_dense(hidden)
        return logits, weights, state if index is None else {**state, "caches": caches, "index": index + T}

    def attention_weights(self, inputs):
        """The weights of every layer for `{"source": (B, S), "target": (B, T)}`.

        Returns:
            `{"encoder": [...], "decoder_self": [...], "decoder_cross": [...]}`, for each layer a tensor
            `(B, N, S, S)`, `(B, N, T, T)` and `(B, N, T, S)`.
        """
        source, target = self.check_pairs(inputs)
        encoded, mask, encoder = self._encode(source, return_attention_scores=True)
        state = {"encoded": encoded, "source_mask": mask}
        _, decoder, _ = self._decode(target, state, [True] * len(self.decoder_blocks))
        return {
            "encoder": encoder,
            "decoder_self": [weights["self"] for weights in decoder],
            "decoder_cross": [weights["cross"] for weights in decoder],
        }
