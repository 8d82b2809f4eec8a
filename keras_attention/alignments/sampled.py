"""Hard attention by any alignment: a selection drawn from it in training, its mode at inference."""

import keras

from keras_attention import alignments
from keras_attention.alignments import estimators
from keras_attention.alignments.alignment import Alignment
from keras_attention.alignments.estimators.estimator import check_offers
from keras_attention.checks.arguments import check_seed
from keras_attention.checks.classes import check_unbuilt
from keras_attention.saving.lookup import config_of


@keras.saving.register_keras_serializable(package="keras_attention")
class Sampled(Alignment):
    """Any alignment, made hard: a selection drawn from it in training, its mode at inference.

    `selection ~ p(selection | scores)` in training, `selection = mode` at inference; `weights = selection`

    So a query of "linear_chain" reads a segment, the words of "dependency_tree" read their heads in one tree, and
    "monotonic" walks at random. The weights are ones and zeros: `scale` and
    `normalize` of an alignment shape its marginals alone. By REINFORCE, the default, the scores and the weights of the
    alignment learn in a `training.ReinforceModel`.

    Args:
        alignment: A name, as in `alignments.get`, or an `Alignment` with `mode`, `sample` and `log_prob`.
        estimator: How the scores get a gradient: a name or an `Estimator`.
            "reinforce": by the log-probability of the sample, in a `training.ReinforceModel`. Unbiased; any alignment.
            "straight_through", "gumbel_softmax": through a Gumbel-softmax, in any model. Biased; "softmax" alone.
            "argmax": not at all; the mode is taken in training, too.
        seed: Integer seed of the samples, or `None`. Two layers of one model need two seeds: with one, their choices
            are not independent, while the sum of their log-probabilities says so.

    Call arguments:
        scores: Float tensor of shape `(..., T, S)`.
        mask: Boolean tensor that broadcasts to the scores, True = may be attended, or `None`.
        training: Boolean, whether a selection is drawn.

    Returns:
        Weights of shape `(..., T, S)`: ones and zeros ("gumbel_softmax": mixtures in training).

    Raises:
        ValueError: If a name is unknown, or the estimator needs what the alignment does not have.

    Example:
        >>> alignment = Sampled("sigmoid", seed=5)
        >>> scores = keras.ops.array([[-9.0, 9.0, 9.0]])
        >>> alignment(scores)
        [[0.0, 1.0, 1.0]]
        >>> alignment(scores, mask=keras.ops.array([[True, True, False]]), training=True)
        [[0.0, 1.0, 0.0]]

    References:
        Williams, 1992, section 4. Xu et al., 2015, section 4.1, arXiv:1502.03044.
    """

    def __init__(self, alignment, estimator="reinforce", seed=None, **kwargs):
        super().__init__(**kwargs)
        self.alignment = alignments.get(alignment)
        self.estimator = estimators.get(estimator)
        check_offers(self.alignment, self.estimator)
        self.seed = check_seed(seed)
        self.seed_generator = keras.random.SeedGenerator(self.seed)

    @property
    def is_categorical(self):
        return self.alignment.is_categorical

    def build(self, scores_shape):
        check_unbuilt(self.alignment)
        self.alignment.build(scores_shape)
        self.built = True

    def call(self, scores, mask=None, training=None):
        if training:
            return self.estimator.weights(self.alignment, scores, mask, self.seed_generator)
        return self.alignment.mode(scores, mask)

    # === The distribution ===

    def marginals(self, scores, mask=None):
        return self.alignment.marginals(scores, mask)

    def mode(self, scores, mask=None):
        return self.alignment.mode(scores, mask)

    def sample(self, scores, mask=None, seed=None):
        return self.alignment.sample(scores, mask, seed)

    def log_prob(self, selection, scores, mask=None):
        return self.alignment.log_prob(selection, scores, mask)

    def entropy(self, scores, mask=None):
        return self.alignment.entropy(scores, mask)

    def log_partition(self, scores, mask=None):
        return self.alignment.log_partition(scores, mask)

    # === Step by step ===

    def initial_state(self, shape, dtype="float32"):
        return self.alignment.initial_state(shape, dtype)

    def step(self, scores, mask, state, training=None):
        weights = self(self.alignment.given(scores, state), mask=mask, training=training)
        return weights, self.alignment.state_after(weights, mask, state)

    def given(self, scores, state):
        return self.alignment.given(scores, state)

    def state_after(self, selection, mask, state):
        return self.alignment.state_after(selection, mask, state)

    def get_config(self):
        return {
            **super().get_config(),
            "alignment": config_of(self.alignment),
            "estimator": config_of(self.estimator),
            "seed": self.seed,
        }
