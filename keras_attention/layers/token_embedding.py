"""Token embedding, scaled by √D, that also reads logits off the same table."""

import math
from functools import partial

import keras
from keras import ops

from keras_attention.checks.arguments import check_boolean, check_positive_integer
from keras_attention.ops.ids import checked_ids, rows_of_ids
from keras_attention.ops.masks import padding_mask
from keras_attention.tokens import PAD


@keras.saving.register_keras_serializable(package="keras_attention")
class TokenEmbedding(keras.layers.Layer):
    """Vectors of token ids, scaled by √D, with the padding masked; in reverse, logits over the vocabulary.

    `output[t] = √D · embeddings[ids[t]]`, and in reverse `logits[t, v] = inputs[t] · embeddings[v]`

    Unlike `keras.layers.ReversibleEmbedding` it passes the mask on in both directions, so that a loss on its logits
    leaves the padding out.

    Ids are whole numbers in [0, V). Floats that hold such numbers are taken too: `keras.Sequential` and models without a
    `keras.Input` of their own make floats of ids. Eagerly any other id is an error. Inside a graph, where values are
    not known, it gets a vector of NaN: an id below 0 or from V on, a fraction, and a float from which on its type
    does not tell whole numbers apart, 2^24 in float32 and 256 in bfloat16.

    Args:
        vocabulary_size: Integer V, number of ids; 0 is padding.
        embedding_dim: Integer D.
        embeddings_initializer: Initializer of the table `(V, D)`. `None` draws from a normal distribution of variance
            1/D, so that the scaled vectors have variance one, as the positions that are added to them.
        use_scale: Boolean. `False` leaves the factor √D out, as in tables that were trained without it.

    Call arguments:
        inputs: Tensor of ids `(..., T)`, best of integers; in reverse a float tensor `(..., T, D)`.
        reverse: Boolean. Return logits instead of vectors.

    Returns:
        Vectors of shape `(..., T, D)` with the mask `ids != 0`; in reverse float32 logits `(..., T, V)`.

    Raises:
        ValueError: If values are known and an id is not a whole number in [0, V).
        TypeError: If ids are ragged, or a float `keras.Input` is of a type that cannot tell V ids apart.

    Example:
        >>> embedding = TokenEmbedding(vocabulary_size=11, embedding_dim=5)
        >>> vectors = embedding(keras.ops.array([[4, 2, 0]]))
        >>> vectors.shape, embedding(vectors, reverse=True).shape
        ((1, 3, 5), (1, 3, 11))

    References:
        Vaswani et al., 2017, section 3.4, arXiv:1706.03762.
        Press and Wolf, 2017 (the shared table), arXiv:1608.05859.
    """

    def __init__(self, vocabulary_size, embedding_dim, embeddings_initializer=None, use_scale=True, **kwargs):
        super().__init__(**kwargs)
        vocabulary_size = check_positive_integer("vocabulary_size", vocabulary_size)
        embedding_dim = check_positive_integer("embedding_dim", embedding_dim)
        self.supports_masking = True
        self.vocabulary_size = vocabulary_size
        self.embedding_dim = embedding_dim
        if embeddings_initializer is None:
            embeddings_initializer = keras.initializers.RandomNormal(stddev=embedding_dim**-0.5)
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)
        self.use_scale = check_boolean("use_scale", use_scale)

    def __call__(self, inputs, reverse=False, **options):
        # Before Keras casts floats to the compute type, in which ids would be lost.
        inputs = inputs if reverse else checked_ids("inputs", inputs, self.vocabulary_size)
        return super().__call__(inputs, reverse=reverse, **options)

    def build(self, inputs_shape=None):
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.vocabulary_size, self.embedding_dim),
            initializer=self.embeddings_initializer,
        )

    def call(self, inputs, reverse=False):
        if reverse:
            table = ops.cast(self.embeddings, "float32")
            return ops.matmul(ops.cast(inputs, "float32"), ops.transpose(table))  # (..., T, V)
        scale = math.sqrt(self.embedding_dim) if self.use_scale else 1.0
        return rows_of_ids(
            partial(ops.take, self.embeddings, axis=0), inputs, self.vocabulary_size, scale
        )  # (..., T, D)

    def compute_output_spec(self, inputs, reverse=False):
        if reverse:
            return keras.KerasTensor((*inputs.shape[:-1], self.vocabulary_size), dtype="float32")
        return keras.KerasTensor((*inputs.shape, self.embedding_dim), dtype=self.compute_dtype)

    def compute_output_shape(self, inputs_shape):
        return (*inputs_shape, self.embedding_dim)

    def compute_mask(self, inputs, previous_mask):
        return previous_mask if keras.backend.is_float_dtype(inputs.dtype) else padding_mask(inputs, PAD)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "embedding_dim": self.embedding_dim,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
            "use_scale": self.use_scale,
        }
