"""Bernoulli alignment: each position is attended or not, independently of the others."""

import keras
from keras import ops

from keras_attention.alignments.on_off_alignment import OnOffAlignment
from keras_attention.ops import at_least_float32, mask_scores
from keras_attention.ops.masks import as_mask
from keras_attention.ops.random import uniform_like


def zero_if_masked(tensor, mask):
    """`tensor (..., T, S)` with zeros where `mask` is False, before a function and after it."""
    return tensor if mask is None else ops.where(as_mask(mask), tensor, 0.0)


@keras.saving.register_keras_serializable(package="keras_attention")
class Bernoulli(OnOffAlignment):
    """Sigmoid attention: each position is on with a probability of its own, so a query reads none, one or many.

        marginals[t, s] = sigmoid(scores[t, s])
        weights         = scale · marginals                           with normalize=None
        weights         = scale · marginals / (their sum over s)      with normalize="l1"

    Without normalizing, the context is an expected sum, which grows with the number of positions that are on: a query
    can count. Plain sigmoid attention begins with half of all positions on; scores with a bias, or "l1", begin smaller.

    `normalize` and `scale` shape only what the layer returns when it is called; `marginals`, `mode` (on where the score is
    above zero), `sample`, `log_prob`, `entropy` and `log_partition` are those of the distribution. The last three have the
    shape `(..., T)`, in float32 or better; a selection of a masked position has log-probability LOWEST.

    In the paper the scores are θ_i and the marginals p(z_i = 1 | x, q); its weights are those of "l1" with scale=2.

    Args:
        normalize: `None` or "l1".
        scale: Float above 0 by which the weights are multiplied.

    Call arguments:
        scores: Float tensor of shape `(..., T, S)`.
        mask: Boolean tensor that broadcasts to the scores, True = may be attended, or `None`.

    Returns:
        Weights of shape `(..., T, S)`, zero where masked. With "l1" a row sums to `scale`, or is zero where nothing may be
        attended.

    Raises:
        ValueError: If `normalize` is unknown or `scale` is not above zero.

    Example:
        >>> scores = keras.ops.array([[0.0, 1.0, -1.0]])
        >>> Bernoulli()(scores)
        [[0.5, 0.7311, 0.2689]]
        >>> Bernoulli(normalize="l1", scale=2.0)(scores, mask=keras.ops.array([[True, True, False]]))
        [[0.8123, 1.1877, 0.0]]

    References:
        Kim, Denton, Hoang and Rush, 2017, section 4.1 ("sigmoid attention"), arXiv:1702.00887.
    """

    def log_marginals(self, scores, mask=None):
        return mask_scores(ops.log_sigmoid(zero_if_masked(self.finite(scores), mask)), mask)

    def mode(self, scores, mask=None):
        """Ones `(..., T, S)` where the score is above zero."""
        return self.selected(zero_if_masked(at_least_float32(scores), mask) > 0.0, scores, mask)

    def sample(self, scores, mask=None, seed=None):
        """Ones and zeros `(..., T, S)`."""
        probabilities = ops.exp(self.log_marginals(scores, mask))
        return self.selected(uniform_like(probabilities, seed=seed) < probabilities, scores, mask)

    def log_prob(self, selection, scores, mask=None):
        """Log-probability `(..., T)` of ones and zeros `(..., T, S)`."""
        numbers = zero_if_masked(self.finite(scores), mask)
        is_on = ops.cast(selection, numbers.dtype) > 0.0
        terms = zero_if_masked(-ops.softplus(ops.where(is_on, -numbers, numbers)), mask)
        return self.of_row(self.possible(ops.sum(terms, axis=-1), selection, mask), scores, mask)

    def entropy(self, scores, mask=None):
        """Entropy in nats, `(..., T)`."""
        numbers = zero_if_masked(self.finite(scores), mask)
        entropies = ops.softplus(numbers) - ops.sigmoid(numbers) * numbers
        return self.of_row(ops.sum(zero_if_masked(entropies, mask), axis=-1), scores, mask)

    def log_partition(self, scores, mask=None):
        """`(..., T)`, the sum of `log(1 + exp(score))`."""
        terms = zero_if_masked(ops.softplus(zero_if_masked(self.finite(scores), mask)), mask)
        return self.of_row(ops.sum(terms, axis=-1), scores, mask)
