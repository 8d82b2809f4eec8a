"""REINFORCE: the choice is a sample, and its log-probability is recorded for the loss to weigh."""

import keras

from keras_attention.alignments.estimator import Estimator
from keras_attention.ops.choices import given_choice, record_choice


@keras.saving.register_keras_serializable(package="keras_attention")
class Reinforce(Estimator):
    """One position is drawn for each query; the scores learn by the score-function gradient. Unbiased.

    `gradient = loss gradient at the sample + (loss - baseline) · gradient of log p(sample)`

    The weights are the sample, through which no gradient flows. Its log-probability and entropy, float32, go to the open
    collector; the second term is made of it by `keras_attention.training.ReinforceModel`, which knows the loss. In
    any other model the scores get no gradient.

    Example:
        >>> from keras_attention.alignments import SampledCategorical
        >>> alignment = SampledCategorical(estimator=Reinforce(), seed=3)
        >>> keras.ops.sum(alignment(keras.ops.ones((2, 3, 5)), training=True), axis=-1)
        [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]

    References:
        Williams, 1992, section 4.
        Xu et al., 2015, section 4.1, arXiv:1502.03044.
    """

    def weights(self, alignment, scores, mask, seed):
        selection = given_choice(scores, mask)
        if selection is None:
            selection = alignment.sample(scores, mask, seed)
        record_choice(alignment.log_prob(selection, scores, mask), alignment.entropy(scores, mask))
        return selection
