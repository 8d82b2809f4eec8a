"""Hard attention: in training each query attends to one position at random, at inference to the most probable one."""

import keras

from keras_attention.alignments import estimators
from keras_attention.alignments.categorical import Categorical
from keras_attention.checks.arguments import check_seed
from keras_attention.saving.lookup import config_of


@keras.saving.register_keras_serializable(package="keras_attention")
class SampledCategorical(Categorical):
    """Each query attends to one position: a sample in training, the mode at inference. As `Sampled("softmax")`.

    `selection[t] ~ softmax(scores[t])` in training, `selection[t] = one-hot of argmax scores[t]` at inference.

    In the paper the selection is s_t and its probabilities are α_t.

    Args:
        estimator, seed: As in `Sampled`.

    Call arguments:
        scores: Float tensor of shape `(..., T, S)`.
        mask: Boolean tensor that broadcasts to the scores, True = may be attended, or `None`.
        training: Boolean, whether positions are sampled.

    Returns:
        Weights of shape `(..., T, S)`: one-hot rows, zero where nothing may be attended ("gumbel_softmax": mixtures in
        training).

    Raises:
        ValueError: If the name of the estimator is unknown.

    Example:
        >>> alignment = SampledCategorical(seed=5)
        >>> scores = keras.ops.array([[1.0, 2.0, 3.0]])
        >>> keras.ops.sum(alignment(scores, training=True))
        1.0
        >>> alignment(scores, mask=keras.ops.array([[True, True, False]]))
        [[0.0, 1.0, 0.0]]

    References:
        Xu et al., 2015, section 4.1, arXiv:1502.03044.
    """

    def __init__(self, estimator="reinforce", seed=None, **kwargs):
        super().__init__(**kwargs)
        self.estimator = estimators.get(estimator)
        self.seed = check_seed(seed)
        self.seed_generator = keras.random.SeedGenerator(self.seed)

    @classmethod
    def from_seed(cls, seed):
        return cls(seed=seed)

    def call(self, scores, mask=None, training=None):
        if training:
            return self.estimator.weights(self, scores, mask, self.seed_generator)
        return self.mode(scores, mask)

    def get_config(self):
        return {**super().get_config(), "estimator": config_of(self.estimator), "seed": self.seed}
