"""Hierarchical attention: attention pooling level by level, words to sentences, sentences to a document."""

import keras
from keras import ops

from keras_attention import alignments, scores
from keras_attention.checks.arguments import check_positive_integer, check_rate, check_seed
from keras_attention.checks.shapes import check_known_width, check_not_ragged, check_rank
from keras_attention.layers.attention_pooling import AttentionPooling
from keras_attention.layers.levels import by_level, check_levels, rates_of_levels
from keras_attention.layers.row_encoding import encode_rows
from keras_attention.ops.dtypes import as_floats
from keras_attention.ops.masks import as_mask, check_mask_types, check_padding_mask
from keras_attention.ops.random import split_seed
from keras_attention.saving.lookup import config_of, copy_of, from_config


@keras.saving.register_keras_serializable(package="keras_attention")
class HierarchicalAttention(keras.layers.Layer):
    """One vector for a document of sentences of words, or of any other nesting, by attention pooling at every level.

        vectors = inputs                                                          one for each word
        for each level, the innermost first:
            encoded = encoder(vectors)                                            along the level's own axis
            vectors, weights[level] = AttentionPooling(encoded, mask)             one for each unit of the next level
            mask    = any(mask)                                                   a unit is real if anything in it is

    In the paper the levels are word and sentence, `encoded` is h_it and h_i, `weights` is α_it and α_i, and the last
    vector is v.

    A sentence of nothing but padding has zero weight and a zero vector, wherever it stands; so has a paragraph without a
    real sentence, and a document without a real word is zero. A masked unit never changes anything: an encoder reads the
    real units of a row side by side, then zeros as beyond the end of a row, wherever the padding stands. A layer whose call
    takes `mask` gets their mask. An encoder that takes none and looks at more than its direct inputs, such as a stack of
    convolutions with biases or attention without masks, would let the amount of padding show.

    Args:
        levels: Names of the levels, the innermost first: one for each axis that is pooled.
        encoders: `None`; or one value for each level, in a list or in a dictionary by name: a layer
            `(B, S, D)` -> `(B, S, E)` or `None`. For example `Bidirectional(GRU(50, return_sequences=True))`,
            `TransformerEncoderBlock(...)`, or `Conv1D(100, 3, padding="same")`.
        units: Integer, size U of the hidden layer of every pooling. `None` takes the width of its inputs.
        alignment: A name of `alignments.get` or an `Alignment`; every level gets one of its own.
        dropout: Float in [0, 1), fraction of the weights dropped in training.
        unit_dropout: Float in [0, 1), for all levels or in a list or dictionary one for each: fraction of the words, of the
            sentences and so on that are taken for padding in training (Iyyer et al., 2015, section 3.2, for words). Where
            documents are few it is what keeps a model from learning them by heart.
        seed: Integer seed of the dropouts and of an alignment that is named and draws, or `None`.
        score: A name of `scores.get` or a `Score`, with which a learned query asks at every level. `None`: the one of the
            paper, with the hidden layer of `units`.

    Call arguments:
        inputs: Float tensor of shape `(B, ..., L, W, D)`: of the axes before the features, the last belongs to the first
            level. What is left of the levels' axes is batch.
        mask: Boolean tensor `(B, ..., L, W)`, True = real. The implicit Keras mask of the inputs is used when it is not
            given; masks get lost in plain arithmetic and in convolutions, so pass it by hand when in doubt.
        return_attention_scores: Boolean. Also return the attention weights (the name is the one of Keras).
        training: Boolean, whether dropout is active.

    Returns:
        `output` of shape `(B, E)`, or `(output, weights)` with the weights before dropout by level, such as
        `{"word": (B, L, W), "sentence": (B, L)}`. The mask ends here.

    Raises:
        ValueError: If names or encoders do not fit the levels, or inputs, mask or what an encoder returns have another
            shape.
        TypeError: If an encoder is no layer.

    Example:
        >>> encoder = keras.layers.Conv1D(11, 3, padding="same")
        >>> attention = HierarchicalAttention(levels=("word", "sentence"), encoders={"word": encoder})
        >>> output, weights = attention(keras.ops.ones((2, 3, 5, 7)), return_attention_scores=True)
        >>> output.shape, weights["word"].shape, weights["sentence"].shape
        ((2, 11), (2, 3, 5), (2, 3))

    References:
        Iyyer, Manjunatha, Boyd-Graber and Daumé, 2015, https://aclanthology.org/P15-1162.
        Yang, Yang, Dyer, He, Smola and Hovy, 2016, section 2.2, https://aclanthology.org/N16-1174.
    """

    def __init__(
        self,
        levels=("word", "sentence"),
        encoders=None,
        units=None,
        alignment="softmax",
        dropout=0.0,
        unit_dropout=0.0,
        seed=None,
        score=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.levels = check_levels(levels)
        encoders = by_level("encoders", encoders, self.levels)
        self.encoders = {level: encoder_of_level(level, encoder) for level, encoder in encoders.items()}
        check_different(self.encoders)
        self.units = None if units is None else check_positive_integer("units", units)
        self.score = None if score is None else scores.get(score)
        self.alignment = alignments.get(alignment, seed)
        self.dropout = check_rate("dropout", dropout)
        self.unit_dropout = rates_of_levels("unit_dropout", unit_dropout, self.levels)
        self.seed = check_seed(seed)
        # The first of the seeds is that of an alignment which is named and draws.
        _, unit_seed, *seeds = split_seed(seed, 2 + len(self.levels))
        self.seed_generator = keras.random.SeedGenerator(unit_seed)
        self.poolings = {
            level: AttentionPooling(
                self.units,
                copy_of(self.alignment, index) if index else self.alignment,
                self.dropout,
                seed=each,
                score=copy_of(self.score) if self.score is not None and index else self.score,
                dtype=self.dtype_policy,
                name=f"{level}_pooling",
            )
            for index, (level, each) in enumerate(zip(self.levels, seeds, strict=True))
        }

    def build(self, inputs_shape):
        self._check_inputs(inputs_shape)
        shape = tuple(inputs_shape)
        for level in self.levels:
            encoder = self.encoders[level]
            if encoder is not None:
                if not encoder.built:
                    encoder.build((None, None, shape[-1]))
                shape = (*shape[:-1], encoded_width(level, encoder, shape[-1]))
            self.poolings[level].build(shape)
            shape = (*shape[:-2], shape[-1])
        self.built = True

    def call(self, inputs, mask=None, return_attention_scores=False, training=None):
        check_not_ragged(inputs=inputs)
        self._check_inputs(inputs.shape)
        mask = as_mask(mask)
        check_padding_mask("mask", mask, inputs.shape)
        sizes = ops.shape(inputs)[:-1]
        mask = ops.ones(sizes, "bool") if mask is None else ops.broadcast_to(mask, sizes)
        vectors, weights = as_floats(inputs, self.compute_dtype), {}
        for level in self.levels:
            if training and self.unit_dropout[level]:
                mask = with_some_dropped(mask, self.unit_dropout[level], self.seed_generator)
            if self.encoders[level] is not None:
                vectors = encode_rows(self.encoders[level], vectors, mask, training)  # (B, ..., S, E)
            vectors, weights[level] = self.poolings[level](
                vectors, mask=mask, return_attention_scores=True, training=training
            )  # (B, ..., E), (B, ..., S)
            mask = ops.any(mask, axis=-1)
        return (vectors, weights) if return_attention_scores else vectors

    def compute_output_shape(self, inputs_shape):
        self._check_inputs(inputs_shape)
        *leading, width = inputs_shape
        for level in self.levels:
            if self.encoders[level] is not None:
                width = encoded_width(level, self.encoders[level], width)
        return (*leading[: -len(self.levels)], width)

    def compute_output_spec(self, inputs, mask=None, return_attention_scores=False, training=None):
        check_mask_types(mask=mask)
        output = keras.KerasTensor(self.compute_output_shape(inputs.shape), dtype=self.compute_dtype)
        if not return_attention_scores:
            return output
        end = len(inputs.shape) - 1
        weights = {
            level: keras.KerasTensor(inputs.shape[: end - index], dtype=self.compute_dtype)
            for index, level in enumerate(self.levels)
        }
        return output, weights

    def compute_mask(self, inputs, previous_mask):
        """None: all that the mask spoke of is pooled."""
        return None

    def get_config(self):
        return {
            **super().get_config(),
            "levels": list(self.levels),
            "encoders": {
                level: None if encoder is None else config_of(encoder) for level, encoder in self.encoders.items()
            },
            "units": self.units,
            "score": None if self.score is None else config_of(self.score),
            "alignment": config_of(self.alignment),
            "dropout": self.dropout,
            "unit_dropout": dict(self.unit_dropout),
            "seed": self.seed,
        }

    def _check_inputs(self, shape):
        axes = ", ".join(f"{level}s" for level in reversed(self.levels))
        check_rank("inputs", shape, len(self.levels) + 2, f"(B, {axes}, D)")
        check_known_width("inputs", shape)


def with_some_dropped(mask, rate, seed):
    """`mask (B, ..., S)` with False at a fraction `rate` of the positions, drawn at random."""
    kept = keras.random.uniform(ops.shape(mask), dtype="float32", seed=seed) >= rate
    return ops.logical_and(mask, kept)


def encoder_of_level(level, encoder):
    """The layer that `encoder` is, or the layer of its config; `None` stays."""
    if isinstance(encoder, dict):
        encoder = from_config(encoder)
    if encoder is not None and not isinstance(encoder, keras.layers.Layer):
        raise TypeError(
            f"The encoder of the level {level!r} must be a layer (B, S, D) -> (B, S, E), or `None`. Received: "
            f'{encoder!r} of type {type(encoder).__name__}. Pass for example `Conv1D(100, 3, padding="same")`.'
        )
    if encoder is not None:
        encoder.supports_masking = True  # a `Sequential` says that it doesn't, and Keras warns of the mask it is given
    return encoder


def check_different(encoders):
    """Raises when two levels have one encoder: it would be saved once, and its width would have to fit both."""
    given = [encoder for encoder in encoders.values() if encoder is not None]
    if len(set(map(id, given))) < len(given):
        names = {level: encoder.name for level, encoder in encoders.items() if encoder is not None}
        raise ValueError(f"Every level needs an encoder of its own. Received the same layer twice: {names}.")


def encoded_width(level, encoder, width):
    """The features E of what an encoder makes of `width` features, after checking that it keeps the positions."""
    inputs_shape = (None, 5, width)  # any known length shows whether it stays
    try:
        shape = encoder.compute_output_shape(inputs_shape)
    except NotImplementedError:
        shape = encoder.compute_output_spec(keras.KerasTensor(inputs_shape, dtype=encoder.compute_dtype)).shape
    shape = tuple(shape)
    if len(shape) != 3 or shape[1] != inputs_shape[1] or not isinstance(shape[2], int):
        raise ValueError(
            f"The encoder of the level {level!r} must make one vector for each position, (B, S, D) -> (B, S, E). Received "
            f"shape {shape} for inputs of shape {inputs_shape}. Make a recurrent layer with `return_sequences=True`, a "
            'convolution with `padding="same"`.'
        )
    return shape[2]
