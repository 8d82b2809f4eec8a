"""The interface of the estimators: what multiplies the values in training, and how the scores get a gradient."""


class Estimator:
    """Base class of the estimators of a hard choice's gradient.

    At inference a hard alignment gives its mode. In training an estimator says what takes its place.

    A subclass writes `weights` and, if it has arguments, `get_config`.

    Methods:
        weights(alignment, scores, mask, seed): Weights `(..., T, S)` for training. `alignment` is the `Categorical` whose
            choice it is, `seed` a `keras.random.SeedGenerator`.

    Example:
        >>> from keras_attention.alignments import SampledCategorical
        >>> @keras.saving.register_keras_serializable(package="my_package")
        ... class Soft(Estimator):
        ...     def weights(self, alignment, scores, mask, seed):
        ...         return alignment.marginals(scores, mask)
        >>> scores, mask = keras.ops.array([[1.0, 2.0, 3.0]]), keras.ops.array([[True, True, False]])
        >>> SampledCategorical(estimator=Soft())(scores, mask=mask, training=True)
        [[0.2689, 0.7311, 0.0]]
    """

    def weights(self, alignment, scores, mask, seed):
        raise NotImplementedError(f"{type(self).__name__} must define `weights(alignment, scores, mask, seed)`.")

    def get_config(self):
        return {}

    @classmethod
    def from_config(cls, config):
        return cls(**config)
