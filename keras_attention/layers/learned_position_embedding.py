"""Learned positions, added to the inputs."""

import numbers

import keras
from keras import ops

from keras_attention.checks.arguments import check_positive_integer
from keras_attention.checks.shapes import check_known_width, check_not_ragged, check_rank
from keras_attention.ops.dtypes import as_floats
from keras_attention.ops.masks import as_mask, check_mask_types, check_padding_mask
from keras_attention.ops.positions import real_positions


def vectors_at(positions, embeddings):
    """The vectors `(..., D)` of `embeddings (length, D)` at the integer `positions (...)`; NaN where it has none."""
    positions = ops.cast(ops.convert_to_tensor(positions), "int32")
    known = ops.logical_and(positions >= 0, positions < embeddings.shape[0])
    vectors = ops.take(embeddings, ops.where(known, positions, 0), axis=0)
    return ops.where(ops.expand_dims(known, -1), vectors, float("nan"))


@keras.saving.register_keras_serializable(package="keras_attention")
class LearnedPositionEmbedding(keras.layers.Layer):
    """Adds a learned vector for each position to the inputs.

    `output[t] = inputs[t] + embeddings[position[t]]`

    keras-hub's `PositionEmbedding` returns the vectors alone, for the caller to add; here they are added.

    The position of a token is the number of real tokens before it: padding counts nothing, wherever it stands.

    Args:
        max_length: Integer, number of positions that have a vector. Nothing can be said about later ones.
        embeddings_initializer: Initializer of the vectors `(max_length, D)`.

    Call arguments:
        inputs: Float tensor of shape `(..., T, D)`, T, with the padding, at most `max_length`.
        start_index: Integer or scalar integer tensor, position of the first input (for decoding step by step).
        positions: Integer tensor that broadcasts to `(..., T)`; given, it replaces `start_index` and the count.
        mask: Boolean tensor `(..., T)`, True = a real token. The implicit Keras mask is used when it is not given; it
            arrives as `inputs_mask` where another tensor is passed beside the inputs.

    Returns:
        Tensor of shape `(..., T, D)`. The mask of the inputs is passed on.

    Raises:
        ValueError: If the inputs reach past `max_length`. Explicit `positions`, a tensor as `start_index` and a length
            that is known only while a graph runs cannot be checked; the output is NaN at a position that has no vector,
            so that it is never silently that of another one.

    Example:
        >>> LearnedPositionEmbedding(max_length=11)(keras.ops.zeros((2, 3, 7))).shape
        (2, 3, 7)

    References:
        Gehring et al., 2017, section 3.1, arXiv:1705.03122.
    """

    def __init__(self, max_length, embeddings_initializer="uniform", **kwargs):
        super().__init__(**kwargs)
        max_length = check_positive_integer("max_length", max_length)
        self.supports_masking = True
        self.max_length = max_length
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)

    def build(self, inputs_shape):
        check_rank("inputs", inputs_shape, 2, "(..., T, D)")
        check_known_width("inputs", inputs_shape)
        self.embeddings = self.add_weight(
            name="embeddings", shape=(self.max_length, inputs_shape[-1]), initializer=self.embeddings_initializer
        )

    def call(self, inputs, start_index=0, positions=None, mask=None, inputs_mask=None):
        check_not_ragged(inputs=inputs)
        inputs = as_floats(inputs, self.compute_dtype)
        mask = as_mask(inputs_mask if mask is None else mask)
        check_padding_mask("mask", mask, inputs.shape)
        if positions is None:
            self._check_length(inputs.shape, start_index)
            counted = ops.arange(ops.shape(inputs)[-2], dtype="int32") if mask is None else real_positions(mask)
            positions = counted + ops.cast(start_index, "int32")
        return inputs + vectors_at(positions, self.embeddings)

    def _check_length(self, inputs_shape, start_index):
        if not isinstance(start_index, numbers.Integral) or inputs_shape[-2] is None:
            return
        if start_index < 0 or start_index + inputs_shape[-2] > self.max_length:
            raise ValueError(
                f"Positions must lie in [0, max_length), max_length={self.max_length}. Received inputs of shape "
                f"{tuple(inputs_shape)} starting at {start_index}, up to position {start_index + inputs_shape[-2] - 1}. "
                "Cut the inputs, or make the layer with a larger `max_length`."
            )

    def compute_output_spec(self, inputs, start_index=0, positions=None, mask=None, inputs_mask=None):
        check_mask_types(mask=inputs_mask if mask is None else mask)
        if positions is None:
            self._check_length(inputs.shape, start_index)
        return keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)

    def compute_output_shape(self, inputs_shape):
        return tuple(inputs_shape)

    def compute_mask(self, inputs, previous_mask):
        return previous_mask

    def get_config(self):
        return {
            **super().get_config(),
            "max_length": self.max_length,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
        }
