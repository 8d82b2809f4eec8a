"""The interface of step two: an alignment is a distribution over the source positions that are attended."""

import keras

from keras_attention.checks.arguments import refuse_autocast
from keras_attention.checks.classes import comes_first
from keras_attention.ops.dtypes import as_floats
from keras_attention.ops.masks import check_mask_types


class Alignment(keras.layers.Layer):
    """Base class of the alignments.

    An alignment is a probability distribution over *selections*: which of the S positions a query reads. A selection
    has the shape of the scores and holds ones and zeros. What multiplies the values is by default its marginals, the
    probability of each position (soft attention).

    A subclass writes `marginals`, and of the other methods those that its distribution defines. Scores are float32 or
    better, masks boolean (True = may be attended) and broadcast to the scores; `None` allows everything. A query with
    nothing to attend has zero marginals, an empty selection, log-probability 0 and entropy 0. What NaN, inf and -inf
    in the scores do is one rule for all, at the top of `ops/divergence.py`: a diverged row is NaN, never zero.

    Methods:
        marginals(scores, mask): `(..., T, S)`, probability that a position is attended.
        mode(scores, mask): `(..., T, S)`, the most probable selection.
        sample(scores, mask, seed): `(..., T, S)`, a selection drawn from the distribution; no gradient flows through.
        log_prob(selection, scores, mask): Log-probability of a selection, `(..., T)` where the queries are
            independent of each other and `(...)` where one structure spans all of them.
        entropy(scores, mask): Entropy in nats, of the shape of the log-probability.
        log_partition(scores, mask): Logarithm of the sum of exp(score) over all selections, of the shape of the
            log-probability; 0 where nothing may be attended. A selection's score is the sum of its parts' scores, and its
            log-probability is that score less the log-partition. Only exponential families have one.
        initial_state(shape, dtype): What the first query has to know of the queries before it, for decoding step by step: a
            dictionary of batch-first tensors, of scores of shape `(..., T, S)` with `shape = (..., S)`. Empty where the
            queries are independent of each other. A structure over all queries has no steps and raises a `ValueError`.
        step(scores, mask, state, training): Weights `(..., T, S)` of the next T queries and the state after them. All
            steps together give the weights of one call. Slots of a source that still grows are masked until they are filled.
        given(scores, state), state_after(selection, mask, state): The same for selections, as `Sampled` makes them: scores
            of the next T queries with which the distribution is the one after `state`, and the state after the selection.
        from_seed(seed): Class method, the alignment that a name stands for; `seed` where it draws at random.

    Attributes:
        is_softmax: Boolean, whether the weights are the softmax of the scores, so that a kernel for softmax may compute them.
        is_categorical: Boolean, whether each query attends to exactly one position, whatever the other queries do. Another
            position may then stand beside the S there are, as `AttentionSink` needs it.

    Call arguments:
        scores: Float tensor of shape `(..., T, S)`; integers are read as float32.
        mask: Boolean tensor that broadcasts to the scores, or `None`.
        training: Boolean; some alignments sample in training.

    Returns:
        Weights of shape `(..., T, S)`, in the type of the scores.

    Example:
        >>> @keras.saving.register_keras_serializable(package="my_package")
        ... class Uniform(Alignment):
        ...     def marginals(self, scores, mask=None):
        ...         allowed = keras.ops.ones_like(scores)
        ...         allowed = allowed if mask is None else keras.ops.where(mask, allowed, 0.0)
        ...         return allowed / keras.ops.maximum(keras.ops.sum(allowed, axis=-1, keepdims=True), 1.0)
        >>> Uniform()(keras.ops.array([[1.0, 2.0, 3.0]]), mask=keras.ops.array([[True, False, True]]))
        [[0.5, 0.0, 0.5]]
    """

    is_softmax = False
    is_categorical = False

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if comes_first(cls, "call", "is_softmax") or comes_first(cls, "marginals", "is_softmax"):  # other weights
            cls.is_softmax = False

    def __init__(self, **kwargs):
        # Without autocast the float32 scores are not cast to half precision on the way in.
        refuse_autocast(self, kwargs)
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True

    def __call__(self, scores, *arguments, **options):
        # Weights have the type of the scores: those of integers would all be rounded to zero.
        scores = as_floats(scores, "float32") if hasattr(scores, "dtype") else scores
        return super().__call__(scores, *arguments, **options)

    @classmethod
    def from_seed(cls, seed):
        return cls()

    def add_weight(self, *arguments, **options):
        # Read inside a layer of a mixed policy, it would be cast to half precision.
        return super().add_weight(*arguments, **{"autocast": False, **options})

    def build(self, scores_shape):
        self.built = True

    def call(self, scores, mask=None, training=None):
        return self.marginals(scores, mask)

    def marginals(self, scores, mask=None):
        raise NotImplementedError(f"{type(self).__name__} must define `marginals(scores, mask)`.")

    def initial_state(self, shape, dtype="float32"):
        if not getattr(self, "is_stepwise", True):  # the attribute by which alignments of version 0.1 said so
            raise ValueError(needs_all_queries(self))
        return {}

    def step(self, scores, mask, state, training=None):
        return self(scores, mask=mask, training=training), state

    def given(self, scores, state):
        return scores

    def state_after(self, selection, mask, state):
        return state

    def compute_output_shape(self, scores_shape):
        return tuple(scores_shape)

    def compute_output_spec(self, scores, mask=None, training=None):
        check_mask_types(mask=mask)
        return keras.KerasTensor(self.compute_output_shape(scores.shape), dtype=scores.dtype)

    def compute_mask(self, scores, previous_mask):
        """None: the attention layers pass the query's mask on."""
        return None


def needs_all_queries(alignment):
    """Message for an alignment that has no steps."""
    return (
        f"The alignment {type(alignment).__name__} needs all queries at once: where one attends depends on the others. "
        "It cannot read for one query alone, as pooling does, and decoding with a cache. Take another alignment."
    )
