"""Hierarchical attention network: documents of sentences of words, classified by what they attend to."""

import keras
import numpy as np
from keras import ops

from keras_attention import alignments, scores
from keras_attention.checks.arguments import check_positive_integer, check_rate, check_seed
from keras_attention.checks.shapes import check_exact_rank
from keras_attention.layers import HierarchicalAttention, SinusoidalPositionEncoding
from keras_attention.layers.levels import by_level, check_levels, rates_of_levels
from keras_attention.models.config import config_of_model
from keras_attention.models.encoders import transformer_encoder
from keras_attention.models.ids import outside_vocabulary, vocabulary_check
from keras_attention.ops.ids import checked_ids, rows_of_ids
from keras_attention.ops.masks import padding_mask
from keras_attention.ops.random import split_seed
from keras_attention.saving.dtype_policies import default_policy, policy_at
from keras_attention.saving.lookup import config_of, get_by_name
from keras_attention.saving.models import SeededModel, made_of_arguments
from keras_attention.tokens import PAD


@keras.saving.register_keras_serializable(package="keras_attention")
@made_of_arguments
class HierarchicalClassifier(SeededModel):
    """Reads words to sentences and sentences to a document, with attention at every level, and names its class.

        vectors  = dropout(embedding(ids))                                      (B, L, W, D)
        document = hierarchical_attention(vectors, mask = (ids is not 0))       (B, E)
        logits   = output(dropout(document))                                    (B, num_classes)

    In the paper `document` is v, and the levels are word and sentence; here there may be any number of them. An empty
    document has the logits of the output's bias.

    The vectors are not scaled by √D, unlike those of `TokenEmbedding`: no positions are added to them, so they may begin near
    zero, and the attention then follows what training finds, not vectors that happen to be large.

    Args:
        vocabulary_size: Integer V, number of ids; 0 is padding.
        num_classes: Integer, number of classes.
        levels: Names of the levels, the innermost first: one for each axis of a document.
        embedding_dim: Integer D, width of the word vectors.
        encoder: What the units of a level read of their neighbours, before they are pooled: "gru" or "lstm", bidirectional
            as in the paper; "convolution" of three neighbours; "transformer", one pre-LN block with sinusoidal positions;
            a layer `(B, S, D)` -> `(B, S, E)`; or `None`, nothing. One for all levels, or a list or a dictionary by
            level; a layer belongs to one level only.
        hidden_dim: Integer E, width of what an encoder by name returns, and of the hidden layer of each pooling; even for
            the recurrent ones, and with "transformer" a multiple of 8, its heads.
        alignment: A name of `alignments.get` or an `Alignment`. With "sampled", train the model inside a
            `training.ReinforceModel`.
        dropout: Float in [0, 1), on the embeddings and on the document, and in the block of "transformer".
        unit_dropout: Float in [0, 1), or one for each level: fraction of the words, the sentences and so on that are taken for
            padding in training, as in `HierarchicalAttention`.
        seed: Integer seed of the dropouts and of an alignment that is named and draws, or `None`.
        dtype: Name or policy of the layers, such as "mixed_bfloat16"; the logits are float32 in any case.
        name, trainable: As in `keras.Model`.
        score: A name of `scores.get` or a `Score`, with which a learned query asks at every level; `None`: as in the paper.

    Call arguments:
        inputs: int32 ids of shape `(B, L, W)`, with one axis for each level, padded with 0 in any place. Inside a graph,
            where values are not known, a document with an id outside the vocabulary has logits of NaN.
        training: Boolean, whether dropout is active.

    Returns:
        Float32 logits of shape `(B, num_classes)`.

    Raises:
        ValueError: If a size is not positive, a name is unknown, a document has another number of axes, or values are known
            and an id is not a whole number in [0, V).
        TypeError: If a layer, a score or the like has another type.

    Example:
        >>> model = HierarchicalClassifier(vocabulary_size=29, num_classes=3, embedding_dim=7, hidden_dim=4)
        >>> ids = np.array([[[4, 5, 6], [7, 0, 0]], [[8, 9, 0], [0, 0, 0]]], "int32")
        >>> model(ids).shape
        (2, 3)
        >>> model.attention_weights(ids)["sentence"][1]
        [1.0, 0.0]

    References:
        Yang, Yang, Dyer, He, Smola and Hovy, 2016, https://aclanthology.org/N16-1174.
    """

    def __init__(
        self,
        vocabulary_size,
        num_classes,
        levels=("word", "sentence"),
        embedding_dim=200,
        encoder="gru",
        hidden_dim=100,
        alignment="softmax",
        dropout=0.0,
        unit_dropout=0.0,
        seed=None,
        dtype=None,
        name=None,
        trainable=True,
        score=None,
    ):
        dropout = check_rate("dropout", dropout)
        levels = check_levels(levels)
        score = None if score is None else scores.get(score)
        alignment = alignments.get(alignment, seed)
        encoders = encoders_of_levels(encoder, levels)
        dtype = keras.dtype_policies.get(dtype)
        config = {
            "vocabulary_size": check_positive_integer("vocabulary_size", vocabulary_size),
            "num_classes": check_positive_integer("num_classes", num_classes),
            "levels": list(levels),
            "embedding_dim": check_positive_integer("embedding_dim", embedding_dim),
            "encoder": encoder if encoder is None or isinstance(encoder, str) else configs_of(encoders),
            "hidden_dim": check_positive_integer("hidden_dim", hidden_dim),
            "score": None if score is None else config_of(score),
            "alignment": config_of(alignment),
            "dropout": dropout,
            "unit_dropout": rates_of_levels("unit_dropout", unit_dropout, levels),
            "seed": check_seed(seed),
            "dtype": keras.saving.serialize_keras_object(dtype),
        }

        # === Layers ===

        # The first seed goes to an alignment by name that draws.
        _, word_seed, document_seed, attention_seed, *seeds = split_seed(seed, 4 + len(levels))
        embedding = keras.layers.Embedding(
            config["vocabulary_size"], config["embedding_dim"], dtype=policy_at(dtype, "embedding"), name="embedding"
        )
        word_dropout, document_dropout = (
            keras.layers.Dropout(dropout, seed=each, dtype=dtype, name=name)
            for name, each in (("word_dropout", word_seed), ("document_dropout", document_seed))
        )
        encoders = {
            level: make_encoder(level, encoders[level], config["hidden_dim"], dropout, each, dtype)
            for level, each in zip(levels, seeds, strict=True)
        }
        attention = HierarchicalAttention(
            levels,
            encoders,
            config["hidden_dim"] if score is None else None,
            alignment,
            unit_dropout=config["unit_dropout"],
            seed=attention_seed,
            score=score,
            dtype=dtype,
            name="attention",
        )
        output = keras.layers.Dense(config["num_classes"], dtype=policy_at(dtype, "output", "float32"), name="output")

        # === Functional graph ===

        ids = keras.Input((None,) * len(levels), dtype="int32", name="ids")
        vectors = word_dropout(rows_of_ids(embedding, ids, config["vocabulary_size"]))
        document = attention(vectors, mask=padding_mask(ids, PAD))
        logits = output(document_dropout(document))
        super().__init__(ids, logits, name=name, trainable=trainable)
        self.dtype_policy = default_policy(dtype)  # `compile` reads it to scale the loss in float16
        self.supports_masking = True
        self.config = config
        self.vocabulary_size = config["vocabulary_size"]
        self.embedding = embedding
        self.attention = attention
        self.output_layer = output

    def call(self, inputs, training=None, mask=None):
        return super().call(self._documents(inputs), training=training, mask=mask)

    def compute_output_spec(self, inputs, training=None, mask=None):
        return super().compute_output_spec(self._documents(inputs), training, mask)

    def _documents(self, inputs):
        """The ids, in the structure in which Keras hands them over, after checking their axes and values."""

        def checked(ids):
            # Keras drops a last axis of one, and counts no axes of a symbolic tensor.
            check_exact_rank("inputs", ids.shape, 1 + len(self.config["levels"]), axes_of(self.config["levels"]))
            return checked_ids("inputs", ids, self.vocabulary_size)

        return keras.tree.map_structure(checked, inputs)

    def compute_mask(self, inputs, previous_mask=None):
        """None: a document has one row of logits."""
        return None

    # === Use ===

    def classify(self, ids):
        """Logits `(B, num_classes)` and the weights of each level in float32, as a function of tensors."""
        vectors = rows_of_ids(self.embedding, checked_ids("ids", ids, self.vocabulary_size), self.vocabulary_size)
        document, weights = self.attention(
            vectors, mask=padding_mask(ids, PAD), return_attention_scores=True, training=False
        )
        return self.output_layer(document), {level: ops.cast(each, "float32") for level, each in weights.items()}

    def attention_weights(self, inputs):
        """What the model attends to.

        Args:
            inputs: int32 ids `(B, L, W)`, as in a call.

        Returns:
            Dictionary of NumPy float32 arrays by level, such as `{"word": (B, L, W), "sentence": (B, L)}`. The weights of
            the words of one sentence sum to one, as do those of the sentences of a document; they are zero at padding.

        Raises:
            ValueError: If ids are outside the vocabulary or have another number of axes.
        """
        ids = check_documents(inputs, self.config["levels"], self.config["vocabulary_size"])
        _, weights = self.classify(ops.convert_to_tensor(ids))
        return {level: ops.convert_to_numpy(each) for level, each in weights.items()}

    # === Serving ===

    def serving_signatures(self, **options):
        """What `keras_attention.serving.export` writes, for any number of documents, sentences and words.

            serving_default   ids (B, L, W) -> logits (B, num_classes), probabilities (B, num_classes),
                              word_weights (B, L, W), sentence_weights (B, L)

        with one output of weights for each level. There is nothing to decode: the options are left alone.
        """

        def classify(ids):
            logits, weights = self.classify(ids)
            named = {f"{level}_weights": each for level, each in weights.items()}
            return {"logits": logits, "probabilities": ops.softmax(logits, axis=-1), **named}

        ids = keras.KerasTensor((None,) * (1 + len(self.config["levels"])), dtype="int32", name="ids")
        return {"serving_default": (classify, {"ids": ids}, [vocabulary_check("ids", self.config["vocabulary_size"])])}

    # === Config ===

    def get_config(self):
        parts = {"score": self.attention.score, "alignment": self.attention.alignment}
        return config_of_model(self, encoder=self.attention.encoders, **parts)

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**config)


def axes_of(levels):
    """The axes of documents in words: `(B, sentences, words)`."""
    return f"(B, {', '.join(f'{level}s' for level in reversed(levels))})"


def check_documents(ids, levels, vocabulary_size):
    """`ids` as an int32 array with one axis for each level after the batch, after checking type and range."""
    ids = ops.convert_to_numpy(ids)
    if ids.ndim != 1 + len(levels) or (ids.size and not np.issubdtype(ids.dtype, np.integer)):
        raise ValueError(
            f"The inputs must be integer ids of shape {axes_of(levels)}, padded with 0. Received shape {ids.shape} and dtype "
            f"{ids.dtype}. Wrap a single document in a list, `[ids]`, and cast ids of another type to int32."
        )
    if ids.size and (ids.min() < 0 or ids.max() >= vocabulary_size):
        wrong = ids.max() if ids.max() >= vocabulary_size else ids.min()
        raise ValueError(outside_vocabulary(f"The inputs have the id {wrong},", vocabulary_size))
    return ids.astype("int32")


def encoders_of_levels(encoder, levels):
    """Name, layer, config or `None` for each level, of one for all of them or of one for each."""
    is_config = isinstance(encoder, dict) and "class_name" in encoder
    if is_config or isinstance(encoder, keras.layers.Layer):
        if len(levels) > 1:
            raise ValueError(
                f"A layer can be the encoder of one level, and there are {len(levels)}: {levels}. Received: {encoder!r}. "
                "Pass a list with one for each level."
            )
        encoder = [encoder]
    return dict.fromkeys(levels, encoder) if isinstance(encoder, str) else by_level("encoder", encoder, levels)


def configs_of(encoders):
    return {
        level: config_of(encoder) if isinstance(encoder, keras.layers.Layer) else encoder
        for level, encoder in encoders.items()
    }


def make_encoder(level, encoder, hidden_dim, dropout, seed, dtype):
    """The layer `(B, S, D)` -> `(B, S, E)` that a name, a layer or a config stands for; `None` stays."""
    if encoder is None:
        return None
    name = f"{level}_encoder"
    makers = {
        "convolution": lambda: keras.layers.Conv1D(
            hidden_dim, 3, padding="same", activation="relu", dtype=dtype, name=name
        ),
        "gru": lambda: bidirectional(keras.layers.GRU, hidden_dim, dtype, name),
        "lstm": lambda: bidirectional(keras.layers.LSTM, hidden_dim, dtype, name),
        "transformer": lambda: positioned_transformer(hidden_dim, dropout, seed, dtype, name),
    }
    return get_by_name(encoder, makers, keras.layers.Layer, "encoder")


def bidirectional(kind, hidden_dim, dtype, name):
    """Two recurrent layers, one for each direction, of half the width each.

    Without cuDNN, whose kernel cannot be compiled by XLA.
    """
    if hidden_dim % 2:
        raise ValueError(
            f"`hidden_dim` must be even for a bidirectional encoder. Received: {hidden_dim}. Each direction has half of it."
        )
    layer = kind(hidden_dim // 2, return_sequences=True, use_cudnn=False, dtype=dtype)
    return keras.layers.Bidirectional(layer, dtype=dtype, name=name)


def positioned_transformer(hidden_dim, dropout, seed, dtype, name):
    """A projection to `hidden_dim`, sinusoidal positions, one pre-LN block and the last normalization."""
    project = keras.layers.Dense(hidden_dim, dtype=policy_at(dtype, f"attention/{name}/projection"), name="projection")
    positions = SinusoidalPositionEncoding(dtype=dtype)
    return keras.Sequential([project, positions, *transformer_encoder(hidden_dim, 1, dropout, seed, dtype)], name=name)
