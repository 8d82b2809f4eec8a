"""The interface of the estimators: what multiplies the values in training, and how the scores get a gradient."""


class Estimator:
    """Base class of the estimators of the gradient of a hard choice.

    At inference a hard alignment gives its mode. In training an estimator says what takes its place.

    A subclass writes `weights` and, if it has arguments, `get_config`.

    Methods:
        weights(alignment, scores, mask, seed): Weights `(..., T, S)` for training. `alignment` is the distribution that is
            drawn from, `seed` a `keras.random.SeedGenerator`.
        needs: Names of the methods of the alignment that `weights` calls, a tuple. `Sampled` refuses an alignment without
            them.

    Example:
        >>> from keras_attention.alignments import Sampled
        >>> @keras.saving.register_keras_serializable(package="my_package")
        ... class Soft(Estimator):
        ...     def weights(self, alignment, scores, mask, seed):
        ...         return alignment.marginals(scores, mask)
        >>> scores, mask = keras.ops.array([[1.0, 2.0, 3.0]]), keras.ops.array([[True, True, False]])
        >>> Sampled("softmax", estimator=Soft())(scores, mask=mask, training=True)
        [[0.2689, 0.7311, 0.0]]
    """

    needs = ()

    def weights(self, alignment, scores, mask, seed):
        raise NotImplementedError(f"{type(self).__name__} must define `weights(alignment, scores, mask, seed)`.")

    def get_config(self):
        return {}

    @classmethod
    def from_config(cls, config):
        return cls(**config)


def check_offers(alignment, estimator):
    """Raises unless the alignment has a mode and all that the estimator needs."""
    missing = [f"`{name}`" for name in ("mode", *estimator.needs) if not hasattr(alignment, name)]
    if missing:
        raise ValueError(
            f"The estimator {type(estimator).__name__} needs an alignment with {' and '.join(missing)}. Received "
            f'{type(alignment).__name__}, which has none. The softmax, "softmax", has all that any estimator needs; '
            '"reinforce" takes every alignment with `mode`, `sample` and `log_prob`.'
        )
