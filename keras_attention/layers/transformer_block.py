"""What the encoder and the decoder block share: arguments, sub-layers, residual connections."""

import keras

from keras_attention import alignments, scores
from keras_attention.checks.arguments import (
    check_boolean,
    check_positive,
    check_positive_integer,
    check_rate,
    check_seed,
)
from keras_attention.checks.shapes import check_exact_rank, check_known_width
from keras_attention.layers.attention_template import (
    WITHIN_A_SEQUENCE,
    check_output_width,
    copy_of_attention,
    get_position,
    get_template,
)
from keras_attention.layers.feed_forward import FeedForward
from keras_attention.layers.multi_head_attention import MultiHeadAttention
from keras_attention.ops.dtypes import as_floats
from keras_attention.ops.masks import check_padding_mask, zero_masked
from keras_attention.ops.random import split_seed
from keras_attention.positions.position_scheme import config_of_scheme
from keras_attention.saving.dtype_policies import with_policies_of_parts
from keras_attention.saving.initializers import fresh, get_initializer
from keras_attention.saving.lookup import config_of, copy_of


class TransformerBlock(keras.layers.Layer):
    """Base class of the Transformer blocks; see `TransformerEncoderBlock` and `TransformerDecoderBlock`."""

    # The position scheme of the attention to another sequence.
    cross_position = None

    def __init__(
        self,
        num_heads=None,
        intermediate_dim=None,
        dropout=0.0,
        attention_dropout=None,
        activation="relu",
        normalize_first=False,
        score="scaled_dot",
        alignment="softmax",
        seed=None,
        layer_norm_epsilon=1e-6,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        attention=None,
        position=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.attention = get_template(
            attention,
            num_heads=(num_heads, None),
            attention_dropout=(attention_dropout, None),
            score=(score, "scaled_dot"),
            alignment=(alignment, "softmax"),
        )
        if attention is not None:
            num_heads, score, alignment = self.attention.num_heads, self.attention.score, self.attention.alignment
        self.position = get_position(position, self.attention)
        self.num_heads = check_positive_integer("num_heads", num_heads)
        self.intermediate_dim = check_positive_integer("intermediate_dim", intermediate_dim)
        self.dropout = check_rate("dropout", dropout)
        if attention_dropout is not None:
            attention_dropout = check_rate("attention_dropout", attention_dropout)
        self.attention_dropout = attention_dropout
        self.activation = keras.activations.get(activation)
        self.normalize_first = check_boolean("normalize_first", normalize_first)
        self.score = scores.get(score)
        self.alignment = alignments.get(alignment, seed)
        self.seed = check_seed(seed)
        # The variance of half a dozen features is far above 1e-6; Keras' default of 1e-3 would change the result.
        self.layer_norm_epsilon = check_positive("layer_norm_epsilon", layer_norm_epsilon)
        self.kernel_initializer = get_initializer(kernel_initializer)
        self.bias_initializer = get_initializer(bias_initializer)

    def build_sublayers(self, inputs_shape, memory_shapes):
        """Makes one attention for each name and memory shape of `memory_shapes`, and the feed-forward network.

        Each sub-layer has a layer normalization and a dropout of its own, which `before` and `after` apply.
        """
        check_known_width("inputs", inputs_shape)
        names = [*memory_shapes, "feed_forward"]
        seeds = iter(split_seed(self.seed, 2 * len(names)))
        for index, (name, memory_shape) in enumerate(memory_shapes.items()):
            attention = self._make_attention(index, inputs_shape, name=name, seed=next(seeds), dtype=self.dtype_policy)
            attention.build(inputs_shape, memory_shape)
            check_output_width(attention, inputs_shape, memory_shape)
            setattr(self, name, attention)
        self.feed_forward = FeedForward(
            self.intermediate_dim,
            self.activation,
            seed=next(seeds),
            dtype=self.dtype_policy,
            name="feed_forward",
            kernel_initializer=self.kernel_initializer,
            bias_initializer=self.bias_initializer,
        )
        self.feed_forward.build(inputs_shape)
        self.norms = {}
        self.dropouts = {}
        for name in names:
            norm = keras.layers.LayerNormalization(
                epsilon=self.layer_norm_epsilon, dtype=self.dtype_policy, name=f"{name}_norm"
            )
            norm.build(inputs_shape)
            self.norms[name] = norm
            self.dropouts[name] = keras.layers.Dropout(self.dropout, seed=next(seeds), dtype=self.dtype_policy)
        self.built = True

    def _make_attention(self, index, inputs_shape, seed, **own):
        """The attention of this index, the self-attention first: a copy of the template, or made of the shorthands."""
        if self.attention is not None:
            own |= {} if seed is None else {"seed": seed}
            if index:
                own |= dict.fromkeys(WITHIN_A_SEQUENCE) | {"position": self.cross_position}
            elif self.position is not None:
                own["position"] = self.position
            return copy_of_attention(self.attention, index, **own)
        D, N = inputs_shape[-1], self.num_heads
        if D % N:
            raise ValueError(
                f"`num_heads` must divide the width D of the inputs. Received num_heads={N} and inputs of shape "
                f"{tuple(inputs_shape)} (D={D}). Choose a divisor of {D}."
            )
        return MultiHeadAttention(
            N,
            D // N,
            dropout=self.dropout if self.attention_dropout is None else self.attention_dropout,
            score=copy_of(self.score) if index else self.score,
            alignment=copy_of(self.alignment) if index else self.alignment,
            position=self.cross_position if index else self.position,
            kernel_initializer=fresh(self.kernel_initializer),
            bias_initializer=fresh(self.bias_initializer),
            seed=seed,
            **own,
        )

    def zero_padding(self, name, inputs, mask):
        """The inputs with zeros where `mask (B, T)` is False: NaN in padding must not reach a gradient."""
        check_padding_mask(name, mask, inputs.shape)
        inputs = as_floats(inputs, self.compute_dtype)
        return inputs if mask is None else zero_masked(inputs, keras.ops.expand_dims(mask, -2))

    def before(self, name, inputs):
        """What the sub-layer reads: the normalized inputs (pre-LN) or the inputs themselves (post-LN)."""
        return self.norms[name](inputs) if self.normalize_first else inputs

    def after(self, name, inputs, update, training):
        """The residual connection around the sub-layer: `inputs + dropout(update)`, normalized in post-LN."""
        outputs = inputs + self.dropouts[name](update, training=training)
        return outputs if self.normalize_first else self.norms[name](outputs)

    def feed(self, inputs, training):
        """The feed-forward half of the block, `(B, T, D)` -> `(B, T, D)`."""
        update = self.feed_forward(self.before("feed_forward", inputs), training=training)
        return self.after("feed_forward", inputs, update, training)

    def compute_output_shape(self, inputs_shape, *other_shapes):
        return tuple(inputs_shape)

    def compute_mask(self, inputs, previous_mask):
        return previous_mask

    def get_config(self):
        shorthands = {
            "num_heads": self.num_heads,
            "attention_dropout": self.attention_dropout,
            "score": config_of(self.score),
            "alignment": config_of(self.alignment),
        }
        return {
            **with_policies_of_parts(super().get_config(), self),
            **(shorthands if self.attention is None else {}),
            "attention": None if self.attention is None else config_of(self.attention),
            "position": config_of_scheme(self.position),
            "intermediate_dim": self.intermediate_dim,
            "dropout": self.dropout,
            "activation": keras.activations.serialize(self.activation),
            "normalize_first": self.normalize_first,
            "seed": self.seed,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
        }


def check_sequences(**shapes):
    """Raises unless every shape is `None` or `(B, length, features)`: a block has one axis to attend along."""
    for name, shape in shapes.items():
        if shape is not None:
            check_exact_rank(name, shape, 3, "(B, length, features)")


def call_attention(layer, *tensors, **options):
    """Calls an attention layer or a block: always `(output, weights, cache)`, with `None` for what was not asked for."""
    outputs = layer(*tensors, **options)
    outputs = list(outputs) if isinstance(outputs, tuple) else [outputs]
    cache = None if options.get("cache") is None else outputs.pop()
    weights = outputs.pop() if options.get("return_attention_scores") else None
    return outputs[0], weights, cache
