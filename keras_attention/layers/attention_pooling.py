"""Attention pooling: one vector for a sequence, its positions weighted by what a learned vector looks for."""

import keras
from keras import ops

from keras_attention import alignments, scores
from keras_attention.checks.arguments import check_positive_integer, check_rate, check_seed
from keras_attention.checks.shapes import check_known_width, check_rank
from keras_attention.layers.attention_inputs import as_inputs, zeroed_memory
from keras_attention.layers.flow import build_part, check_built, check_memory, check_stepwise, four_steps, memory_of
from keras_attention.ops.dtypes import times
from keras_attention.ops.masks import check_mask_types
from keras_attention.ops.softmax import at_least_float32
from keras_attention.saving.initializers import fresh
from keras_attention.saving.lookup import config_of


def hidden_keys(inputs, kernel, bias):
    """`tanh(inputs[s] · kernel + bias)`: `(..., S, D)` -> `(..., S, U)`, eq. (5)."""
    return ops.tanh(times(inputs, kernel) + bias)


@keras.saving.register_keras_serializable(package="keras_attention")
class AttentionPooling(keras.layers.Layer):
    """One vector for a sequence: the sum of its positions, weighted by attention with a learned query.

        hidden[s] = tanh(inputs[s] · kernel + bias)
        scores[s] = vector · hidden[s]                        with score=None
        scores[s] = score(query, inputs[s])                   with another score and a learned query
        weights   = alignment(scores, mask)
        output    = sum over s of weights[s] · inputs[s]

    In the paper `inputs` is h_it, `hidden` is u_it, `vector` is the context vector u_w, `weights` is α_it and `output` is
    s_i.

    Args:
        units: Integer, size U of the hidden layer. `None` takes the width of the inputs.
        alignment: A name of `alignments.get` or an `Alignment`; the scores of a sequence are those of one query,
            `(..., 1, S)`, so that "dependency_tree" is refused.
        dropout: Float in [0, 1), fraction of the weights dropped in training.
        kernel_initializer: Initializer of the kernel and of the vector, or of the query.
        bias_initializer: Initializer of the bias.
        seed: Integer seed of the dropout and of an alignment that is named and draws, or `None`.
        score: A name of `scores.get` or a `Score`, which then has weights of its own. `None`: the one of the paper.

    Call arguments:
        inputs: Float tensor of shape `(B, ..., S, D)`. Every axis left of the last two is batch.
        mask: Boolean tensor `(B, ..., S)`, True = a real position. The implicit Keras mask of the inputs is used when it
            is not given; masks get lost in plain arithmetic and in convolutions, so pass it by hand when in doubt.
        return_attention_scores: Boolean. Also return the attention weights (the name is the one of Keras).
        training: Boolean, whether dropout is active.

    Returns:
        `output` of shape `(B, ..., D)`, or `(output, weights)` with the weights `(B, ..., S)` before dropout. A sequence
        of nothing but padding gets zero weights and a zero vector. The mask ends here.

    Raises:
        ValueError: If the mask does not fit, or a name is unknown.

    Example:
        >>> pooling = AttentionPooling(units=13)
        >>> output, weights = pooling(keras.ops.ones((2, 3, 5, 7)), return_attention_scores=True)
        >>> output.shape, weights.shape
        ((2, 3, 7), (2, 3, 5))

    References:
        Yang, Yang, Dyer, He, Smola and Hovy, 2016, eq. (5) to (7), https://aclanthology.org/N16-1174.
    """

    def __init__(
        self,
        units=None,
        alignment="softmax",
        dropout=0.0,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        seed=None,
        score=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.units = None if units is None else check_positive_integer("units", units)
        self.score = None if score is None else scores.get(score)
        self.comparison = scores.DotScore() if score is None else self.score
        if units is not None and score is not None:
            raise ValueError(
                f"`units` belongs to the hidden layer of the default, `score=None`. Received units={units} and "
                f"score={self.score}. Leave one of the two out, or give the units to the score."
            )
        self.alignment = alignments.get(alignment, seed)
        check_stepwise(self.alignment)
        self.dropout = check_rate("dropout", dropout)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.seed = check_seed(seed)
        self.dropout_layer = keras.layers.Dropout(self.dropout, seed=self.seed, dtype=self.dtype_policy)

    def build(self, inputs_shape):
        check_rank("inputs", inputs_shape, 3, "(B, ..., S, D)")
        check_known_width("inputs", inputs_shape)
        *batch, S, D = inputs_shape
        if self.score is None:
            U = self.units or D
            self.kernel = self._weight("kernel", (D, U), self.kernel_initializer)
            self.bias = self._weight("bias", (U,), self.bias_initializer)
            self.vector = self._weight("vector", (U,), self.kernel_initializer)
            self.comparison.build((*batch, 1, U), (*batch, S, U))
        else:
            self.query = self._weight("query", (D,), self.kernel_initializer)
            build_part(self.score, (*batch, 1, D), tuple(inputs_shape))
        build_part(self.alignment, (*batch, 1, S))
        self.built = True

    def _weight(self, name, shape, initializer):
        # Without autocast the scores stay in full precision under mixed policies.
        return self.add_weight(name=name, shape=shape, initializer=fresh(initializer), autocast=False)

    def prepare(self, inputs, mask=None):
        """The memory of `inputs (B, ..., S, D)`: a dictionary of tensors, as described at the top of `layers/flow.py`."""
        check_built(self)
        (inputs,) = as_inputs(self.compute_dtype, inputs=inputs)
        mask, inputs = zeroed_memory(mask, inputs)
        if self.score is None:
            key = hidden_keys(*map(at_least_float32, (inputs, self.kernel, self.bias)))
        else:
            key = self.score.prepare(inputs)
        return memory_of(key=key, value=inputs, mask=mask)

    def read(self, memory, return_attention_scores=False, training=None):
        """Pools what `prepare` returned; returns what a call returns."""
        check_memory(memory, "key", "value")
        query = self.vector if self.score is None else ops.cast(self.query, memory["value"].dtype)
        mask = memory.get("mask")
        output, weights, _ = four_steps(
            ops.broadcast_to(query, (*ops.shape(memory["value"])[:-2], 1, query.shape[-1])),
            memory,
            None if mask is None else mask[..., None, :],
            score=self.comparison,
            alignment=self.alignment,
            dropout=self.dropout_layer,
            training=training,
        )
        output = ops.squeeze(output, -2)  # (..., D), eq. (7)
        return (output, ops.squeeze(weights, -2)) if return_attention_scores else output

    def call(self, inputs, mask=None, return_attention_scores=False, training=None):
        return self.read(self.prepare(inputs, mask), return_attention_scores, training)

    def compute_output_shape(self, inputs_shape):
        return (*inputs_shape[:-2], inputs_shape[-1])

    def compute_output_spec(self, inputs, mask=None, return_attention_scores=False, training=None):
        check_mask_types(mask=mask)
        output = keras.KerasTensor(self.compute_output_shape(inputs.shape), dtype=self.compute_dtype)
        if not return_attention_scores:
            return output
        return output, keras.KerasTensor(inputs.shape[:-1], dtype=self.compute_dtype)

    def compute_mask(self, inputs, previous_mask):
        """None: the positions are summed up."""
        return None

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "score": None if self.score is None else config_of(self.score),
            "alignment": config_of(self.alignment),
            "dropout": self.dropout,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
            "seed": self.seed,
        }
