"""Linear-chain alignment: whether a position is attended depends on whether its neighbours are."""

import keras
from keras import ops

from keras_attention.alignments.on_off_alignment import OnOffAlignment
from keras_attention.structures.linear_chain import (
    chain_entropy,
    chain_log_marginals,
    chain_log_partition,
    chain_log_prob,
    chain_mode,
    chain_sample,
)


@keras.saving.register_keras_serializable(package="keras_attention")
class LinearChain(OnOffAlignment):
    """Segmentation attention: each position is off or on, and neighbours tend to be alike as far as that was learned.

        p(states)       ∝ exp(sum over s of scores[t, s] · states[s]  +  sum over s of pairwise[states[s - 1], states[s]])
        marginals[t, s] = p(states[s] = on)
        weights         = scale · marginals                           with normalize=None
        weights         = scale · marginals / (their sum over s)      with normalize="l1"

    The states are 0, off, and 1, on. There is one chain for each query, over the positions it may attend to: a masked one
    is left out and its neighbours are each other's. The weight `pairwise (2, 2)`, [previous, next], is learned, and shared
    by all queries and heads; it begins with zeros, with which the alignment is `Bernoulli` exactly.

    Where we differ from the paper: the pairwise scores are two by two learned numbers for all of a layer, and
    the marginals plain ones unless asked for otherwise; its weights are those of "l1" with scale=2. In the paper the
    scores are θ_i(1), zero is θ_i(0), and the pairwise scores are θ_{i,i+1}.

    The messages of the chain take S rounds, one after the other, in float32, normalized at each: right at any length,
    known or not, and for any scores, with XLA or without.

    `normalize` and `scale` shape only what the layer returns when it is called; `marginals`, `mode` (Viterbi; off where
    both are equally probable), `sample`, `log_prob`, `entropy` and `log_partition` are those of the distribution. The last
    three have the shape `(..., T)`, in float32 or better; a selection of a masked position has log-probability LOWEST.

    Args:
        normalize: `None` or "l1".
        scale: Float above 0 by which the weights are multiplied.
        pairwise_initializer, pairwise_regularizer, pairwise_constraint: Of the weight `pairwise`.

    Call arguments:
        scores: Float tensor of shape `(..., T, S)`.
        mask: Boolean tensor that broadcasts to the scores, True = may be attended, or `None`.

    Returns:
        Weights of shape `(..., T, S)`, zero where masked. With "l1" a row sums to `scale`, or is zero where nothing may be
        attended.

    Raises:
        ValueError: If `normalize` is unknown or `scale` is not above zero.

    Example:
        >>> scores = keras.ops.array([[2.0, 0.0, 2.0]])
        >>> LinearChain()(scores)
        [[0.8808, 0.5, 0.8808]]
        >>> alike = keras.initializers.Identity(gain=3.0)
        >>> LinearChain(pairwise_initializer=alike)(scores)
        [[0.9696, 0.9673, 0.9696]]

    References:
        Kim, Denton, Hoang and Rush, 2017, sections 3.1 and 4.1 to 4.2, arXiv:1702.00887.
    """

    def __init__(
        self,
        normalize=None,
        scale=1.0,
        pairwise_initializer="zeros",
        pairwise_regularizer=None,
        pairwise_constraint=None,
        **kwargs,
    ):
        super().__init__(normalize=normalize, scale=scale, **kwargs)
        self.pairwise_initializer = keras.initializers.get(pairwise_initializer)
        self.pairwise_regularizer = keras.regularizers.get(pairwise_regularizer)
        self.pairwise_constraint = keras.constraints.get(pairwise_constraint)

    def build(self, scores_shape):
        self.pairwise = self.add_weight(
            name="pairwise",
            shape=(2, 2),
            initializer=self.pairwise_initializer,
            regularizer=self.pairwise_regularizer,
            constraint=self.pairwise_constraint,
        )
        self.built = True

    def log_marginals(self, scores, mask=None):
        return chain_log_marginals(*self._chain(scores, mask))[..., 1]

    def mode(self, scores, mask=None):
        """The selection of the highest score, `(..., T, S)`."""
        return self.selected(chain_mode(*self._chain(scores, mask)), scores, mask)

    def sample(self, scores, mask=None, seed=None):
        """A selection drawn at random, `(..., T, S)`."""
        return self.selected(chain_sample(*self._chain(scores, mask), seed=seed), scores, mask)

    def log_prob(self, selection, scores, mask=None):
        """Log-probability `(..., T)` of ones and zeros `(..., T, S)`."""
        log_prob = self.possible(chain_log_prob(selection, *self._chain(scores, mask)), selection, mask)
        return self.of_row(log_prob, scores, mask)

    def entropy(self, scores, mask=None):
        """Entropy in nats, `(..., T)`."""
        return self.of_row(chain_entropy(*self._chain(scores, mask)), scores, mask)

    def log_partition(self, scores, mask=None):
        """Logarithm `(..., T)` of the sum of exp(score) over all selections; scores include the pairwise ones."""
        return self.of_row(chain_log_partition(*self._chain(scores, mask)), scores, mask)

    def _chain(self, scores, mask):
        """The arguments of the functions of a chain: `unary (..., T, S, 2)` with zeros for off, the weight, the mask."""
        if not self.built:
            raise ValueError("A LinearChain alignment must be built. Call it once, or `build(scores.shape)`.")
        scores = self.finite(scores)
        return ops.stack([ops.zeros_like(scores), scores], axis=-1), self.pairwise, mask

    def get_config(self):
        return {
            **super().get_config(),
            "pairwise_initializer": keras.initializers.serialize(self.pairwise_initializer),
            "pairwise_regularizer": keras.regularizers.serialize(self.pairwise_regularizer),
            "pairwise_constraint": keras.constraints.serialize(self.pairwise_constraint),
        }
