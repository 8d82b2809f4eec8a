"""Dependency-tree alignment: each word attends to its head in a tree over all words."""

import keras
from keras import ops

from keras_attention.alignments.alignment import Alignment, needs_all_queries
from keras_attention.checks.arguments import check_boolean
from keras_attention.checks.shapes import sizes_differ
from keras_attention.ops import LOWEST, at_least_float32
from keras_attention.ops.dtypes import at_least
from keras_attention.structures.arcs import finite_arcs, relative_scores
from keras_attention.structures.best_tree import best_tree, is_tree
from keras_attention.structures.spanning_trees import log_partition, log_partition_and_marginals, sample_tree


@keras.saving.register_keras_serializable(package="keras_attention")
class DependencyTree(Alignment):
    """Self-attention in which the words read their heads, and the heads of all words make one tree.

        p(tree)       = exp(sum of scores[t, s] over the arcs of the tree) / Z
        weights[t, s] = probability that s is the head of t
        weights[t, t] = probability that t is the root of the sentence

    The tree is not projective: its arcs may cross. Every word has one head, so the rows sum to one, and following the
    heads leads from every word to a root. `scores[t, t]` is the score of t being a root; a root reads itself. In the
    paper the marginals are p(z_ij = 1), where the first index is the head.

    Where we differ from the papers: their root is a symbol of its own, beside the words, with scores of its own; for
    such a symbol, or for scores of roots from a layer of its own, add to the diagonal. And the sums over all trees are
    not determinants and inverses, which lose their digits where scores are large, but a logarithm of sums and products.
    That takes T steps, and memory grows with T³.

    Scores of one word may differ by up to 1e25; a score further below the best counts as 1e25 below it. A sum of
    scores has the digits of its type: where every tree must take an arc that is c below the best of its word, for
    example a root, log-probabilities of trees are off by some c · 1e-7 in float32, by c · 1e-16 in float64.

    A mask says which arcs a tree may have. Padding, masked as a query or as a query and a key, is not there: its row is
    zero and no word reads it. A word that is masked as a key only reads another word, but is read by none. Where the
    mask leaves no tree at all, everything is zero. Under a causal mask word 0 is the root where one must be.

    All words are needed at once: with a cache, and so in `Transformer`, it is refused. A selection is a tree, so
    `log_prob`, `entropy` and `log_partition` have the shape `(...)`; a selection that is not a tree has log-probability LOWEST.

    Args:
        single_root: Boolean, whether exactly one word is a root, or one or more are.

    Call arguments:
        scores: Float tensor of shape `(..., T, T)`.
        mask: Boolean tensor that broadcasts to the scores, True = may be attended, or `None`.

    Returns:
        Weights of shape `(..., T, T)`; each row sums to one, or is zero where nothing may be attended.

    Raises:
        ValueError: If the scores are not square.

    Example:
        >>> scores = keras.ops.array([[0.0, 2.0, 1.0], [3.0, 0.0, 5.0], [1.0, 4.0, 1.0]])
        >>> DependencyTree().mode(scores)
        [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]

    References:
        Kim, Denton, Hoang and Rush, 2017, section 3.2, arXiv:1702.00887, there for projective trees.
        Liu and Lapata, 2018, section 3.1, arXiv:1705.09207.
        Koo, Globerson, Carreras and Collins, 2007, section 3, EMNLP-CoNLL.
    """

    def __init__(self, single_root=True, **kwargs):
        super().__init__(**kwargs)
        self.single_root = check_boolean("single_root", single_root)

    def build(self, scores_shape):
        check_square(scores_shape)
        self.built = True

    def initial_state(self, shape, dtype="float32"):
        raise ValueError(needs_all_queries(self))

    def marginals(self, scores, mask=None):
        check_square(scores.shape)
        _, marginals = log_partition_and_marginals(scores, mask, single_root=self.single_root)
        return ops.cast(marginals, scores.dtype)

    def mode(self, scores, mask=None):
        """The most probable tree, `(..., T, T)`; of several equally probable trees always the same."""
        check_square(scores.shape)
        return ops.cast(best_tree(scores, mask, single_root=self.single_root), scores.dtype)

    def sample(self, scores, mask=None, seed=None):
        """A tree drawn from the distribution, `(..., T, T)`."""
        check_square(scores.shape)
        return ops.cast(sample_tree(scores, mask, single_root=self.single_root, seed=seed), scores.dtype)

    def log_prob(self, selection, scores, mask=None):
        """Log-probability `(...)` of a tree `(..., T, T)`: LOWEST if it is not a tree, 0 if there are no words."""
        check_square(scores.shape)
        scores = self._relative(scores, mask)
        selection = ops.cast(selection, scores.dtype)
        total = ops.sum(ops.where(selection > 0.0, selection * scores, 0.0), axis=(-2, -1))
        normaliser = log_partition(scores, mask, single_root=self.single_root)
        is_known = ops.logical_or(is_tree(selection, mask, single_root=self.single_root), ops.isnan(normaliser))
        return ops.where(is_known, at_least(total - normaliser, LOWEST), LOWEST)

    def entropy(self, scores, mask=None):
        """Entropy of the tree in nats, `(...)`."""
        check_square(scores.shape)
        scores = self._relative(scores, mask)
        total, marginals = log_partition_and_marginals(scores, mask, single_root=self.single_root)
        return total - ops.sum(marginals * ops.where(marginals > 0.0, scores, 0.0), axis=(-2, -1))

    def log_partition(self, scores, mask=None):
        """Logarithm of the sum over all trees, `(...)`."""
        check_square(scores.shape)
        return log_partition(scores, mask, single_root=self.single_root)

    @staticmethod
    def _relative(scores, mask):
        """Scores below the highest of their row: a sum that all trees share would cost digits."""
        return at_least_float32(scores) - relative_scores(scores, finite_arcs(scores, mask)[0])[1][..., None]

    def get_config(self):
        return {**super().get_config(), "single_root": self.single_root}


def check_square(shape):
    """Raises unless queries and keys are the same words."""
    if len(shape) < 2 or sizes_differ(*shape[-2:]):
        raise ValueError(
            "A DependencyTree is self-attention: it needs as many queries as keys, scores of shape (..., T, T). Received "
            f"scores of shape {tuple(shape)}. Pass the same words as query and as value."
        )
