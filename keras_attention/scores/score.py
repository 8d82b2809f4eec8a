"""The interface of step one: a score is a function of one query and one key."""

import keras
from keras import ops

from keras_attention.checks.arguments import refuse_autocast
from keras_attention.checks.classes import comes_first
from keras_attention.checks.shapes import check_rank
from keras_attention.ops import at_least_float32
from keras_attention.ops.dtypes import float32_or_better


class Score(keras.layers.Layer):
    """Base class of the score functions.

    A subclass writes `call(query, key)` and, when it has weights, `build(query_shape, key_shape)` and `get_config`.
    Every axis left of the last two is batch, so the same score serves single-head attention `(B, T, D)` and
    multi-head attention `(B, N, T, H)`; the heads then share the weights of the score. In grouped-query attention the heads
    that read one head of the key come as one longer query, `(B, K, N / K · T, H)`.

    A score that projects the keys can do it once for all queries. It then writes the two halves of its `call`, too:
    `score(query, key)` equals `score.compare(query, score.prepare(key))`.

    Methods:
        prepare(key): `(..., S, P)`, what depends on the keys alone. By default the keys themselves.
        compare(query, prepared): Scores `(..., T, S)` of queries and prepared keys.
        factor(width): The number c where the scores are `c · query[t] · key[s]` for queries of this width, so that a kernel
            for dot products may compute them; else `None`.

    Call arguments:
        query: Float tensor of shape `(..., T, D_query)`.
        key: Float tensor of shape `(..., S, D_key)`.

    Returns:
        Scores of shape `(..., T, S)` in float32, or float64 for float64 inputs: half precision would overflow.

    Example:
        >>> @keras.saving.register_keras_serializable(package="my_package")
        ... class NegativeDistance(Score):
        ...     def call(self, query, key):
        ...         query, key = self.upcast(query, key)
        ...         difference = query[..., :, None, :] - key[..., None, :, :]
        ...         return -keras.ops.sum(keras.ops.square(difference), axis=-1)
        >>> attention = SoftAttention(score=NegativeDistance())
    """

    def __init__(self, **kwargs):
        refuse_autocast(self, kwargs)
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        for name in ("prepare", "compare", "factor"):
            if comes_first(cls, "call", name):  # another formula, to which these do not belong
                setattr(cls, name, getattr(Score, name))

    def add_weight(self, *arguments, **options):
        # Read inside a layer of a mixed policy, it would be cast to half precision.
        return super().add_weight(*arguments, **{"autocast": False, **options})

    def build(self, query_shape, key_shape):
        check_rank("query", query_shape, 2, "(..., T, D)")
        check_rank("key", key_shape, 2, "(..., S, D)")
        self.built = True

    def call(self, query, key):
        raise NotImplementedError(f"{type(self).__name__} must define `call(query, key)`.")

    def prepare(self, key):
        return key

    def compare(self, query, prepared):
        return self(query, prepared)

    def factor(self, width):
        return None

    def with_activity_loss(self, scores):
        """The scores, after adding the loss of an activity regularizer, as Keras does around a `call`."""
        if self.activity_regularizer is not None:
            self.add_loss(self.activity_regularizer(scores) / ops.cast(ops.shape(scores)[0], scores.dtype))
        return scores

    def check_built(self):
        """Raises where the weights do not exist yet."""
        if not self.built:
            raise ValueError(
                f"{type(self).__name__} must be built before it prepares keys. Call it, or its layer, once, or "
                "`build(query_shape, key_shape)`."
            )

    @staticmethod
    def upcast(*tensors):
        """The tensors in one type, float32 or better."""
        tensors = [at_least_float32(tensor) for tensor in tensors]
        dtype = float32_or_better(*(tensor.dtype for tensor in tensors))
        return tuple(ops.cast(tensor, dtype) for tensor in tensors)

    def compute_output_shape(self, query_shape, key_shape):
        return (*query_shape[:-1], key_shape[-2])

    def compute_output_spec(self, query, key):
        dtype = float32_or_better(query.dtype, key.dtype)
        return keras.KerasTensor(self.compute_output_shape(query.shape, key.shape), dtype=dtype)

    def compute_mask(self, query, previous_mask):
        """None: the mask of the query `(B, T)` does not fit the scores; the attention layers pass masks on."""
        return None
