"""Position-wise feed-forward network: the second half of a Transformer block."""

import keras

from keras_attention.checks.arguments import check_positive_integer, check_rate, check_seed
from keras_attention.checks.shapes import check_known_width, check_not_ragged
from keras_attention.saving.dtype_policies import policy_at, with_policies_of_parts
from keras_attention.saving.initializers import fresh, get_initializer


@keras.saving.register_keras_serializable(package="keras_attention")
class FeedForward(keras.layers.Layer):
    """Two dense layers, applied to every position alike; the width of the input is kept.

    `output = activation(inputs · W_1 + b_1) · W_2 + b_2`

    Args:
        intermediate_dim: Integer, size of the hidden layer (d_ff in the paper).
        activation: Activation of the hidden layer.
        dropout: Float in [0, 1), dropout on the hidden layer. The paper has none here.
        seed: Integer seed of the dropout, or `None`.
        kernel_initializer, bias_initializer: Of both dense layers.

    Call arguments:
        inputs: Float tensor of shape `(..., D)`.
        training: Boolean, whether dropout is active.

    Returns:
        Tensor of shape `(..., D)`. The mask of the inputs is passed on.

    Example:
        >>> FeedForward(intermediate_dim=13)(keras.ops.ones((2, 3, 7))).shape
        (2, 3, 7)

    References:
        Vaswani et al., 2017, eq. (2), arXiv:1706.03762.
    """

    def __init__(
        self,
        intermediate_dim,
        activation="relu",
        dropout=0.0,
        seed=None,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        **kwargs,
    ):
        super().__init__(**kwargs)
        intermediate_dim = check_positive_integer("intermediate_dim", intermediate_dim)
        self.supports_masking = True
        self.intermediate_dim = intermediate_dim
        self.activation = keras.activations.get(activation)
        self.dropout = check_rate("dropout", dropout)
        self.seed = check_seed(seed)
        self.kernel_initializer = get_initializer(kernel_initializer)
        self.bias_initializer = get_initializer(bias_initializer)
        self.dropout_layer = keras.layers.Dropout(self.dropout, seed=self.seed, dtype=self.dtype_policy)

    def _dense(self, name, units, activation=None):
        return keras.layers.Dense(
            units,
            activation=activation,
            kernel_initializer=fresh(self.kernel_initializer),
            bias_initializer=fresh(self.bias_initializer),
            dtype=policy_at(self.dtype_policy, f"{self.path}/{name}"),
            name=name,
        )

    def build(self, inputs_shape):
        check_known_width("inputs", inputs_shape)
        self.hidden_dense = self._dense("hidden", self.intermediate_dim, self.activation)
        self.output_dense = self._dense("output", inputs_shape[-1])
        self.hidden_dense.build(inputs_shape)
        self.output_dense.build((*inputs_shape[:-1], self.intermediate_dim))
        self.built = True

    def call(self, inputs, training=None):
        check_not_ragged(inputs=inputs)
        hidden = self.hidden_dense(inputs)  # (..., intermediate_dim)
        return self.output_dense(self.dropout_layer(hidden, training=training))

    def compute_output_shape(self, inputs_shape):
        return tuple(inputs_shape)

    def compute_mask(self, inputs, previous_mask):
        return previous_mask

    def get_config(self):
        return {
            **with_policies_of_parts(super().get_config(), self),
            "intermediate_dim": self.intermediate_dim,
            "activation": keras.activations.serialize(self.activation),
            "dropout": self.dropout,
            "seed": self.seed,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
        }
