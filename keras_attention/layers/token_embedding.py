"""Token embedding, scaled by √D, that also reads logits off the same table."""

import math

import keras
from keras import ops

from keras_attention.ops.masks import padding_mask
from keras_attention.ops.shapes import check_positive_integer
from keras_attention.tokens import PAD


@keras.saving.register_keras_serializable(package="keras_attention")
class TokenEmbedding(keras.layers.Layer):
    """Vectors of token ids, scaled by √D, with the padding masked; in reverse, logits over the vocabulary.

    `output[t] = √D · embeddings[ids[t]]`, and in reverse `logits[t, v] = inputs[t] · embeddings[v]`

    Unlike `keras.layers.ReversibleEmbedding` it passes the mask on in both directions, so that a loss on its logits
    leaves the padding out.

    Args:
        vocabulary_size: Integer V, number of ids; 0 is padding.
        embedding_dim: Integer D.
        embeddings_initializer: Initializer of the table `(V, D)`. `None` draws from a normal distribution of variance
            1/D, so that the scaled vectors have variance one, as the positions that are added to them.

    Call arguments:
        inputs: Integer tensor of ids `(..., T)`; in reverse a float tensor `(..., T, D)`.
        reverse: Boolean. Return logits instead of vectors.

    Returns:
        Vectors of shape `(..., T, D)` with the mask `ids != 0`; in reverse float32 logits `(..., T, V)`.

    Raises:
        TypeError: If ids are floats; those above 2^24 (float32) or 256 (bfloat16) would be lost.

    Example:
        >>> embedding = TokenEmbedding(vocabulary_size=11, embedding_dim=5)
        >>> vectors = embedding(keras.ops.array([[4, 2, 0]]))
        >>> vectors.shape, embedding(vectors, reverse=True).shape
        ((1, 3, 5), (1, 3, 11))

    References:
        Vaswani et al., 2017, section 3.4, arXiv:1706.03762.
        Press and Wolf, 2017 (the shared table), arXiv:1608.05859.
    """

    def __init__(self, vocabulary_size, embedding_dim, embeddings_initializer=None, **kwargs):
        super().__init__(**kwargs)
        vocabulary_size = check_positive_integer("vocabulary_size", vocabulary_size)
        embedding_dim = check_positive_integer("embedding_dim", embedding_dim)
        self.supports_masking = True
        self.vocabulary_size = vocabulary_size
        self.embedding_dim = embedding_dim
        if embeddings_initializer is None:
            embeddings_initializer = keras.initializers.RandomNormal(stddev=embedding_dim**-0.5)
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)

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
        if keras.backend.is_float_dtype(inputs.dtype):
            raise TypeError(
                f"Token ids must be integers. Received dtype {inputs.dtype} and shape {tuple(inputs.shape)}. "
                'Declare them as such: `keras.Input((None,), dtype="int32")`.'
            )
        return ops.take(self.embeddings, ops.cast(inputs, "int32"), axis=0) * math.sqrt(self.embedding_dim)

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
        }
