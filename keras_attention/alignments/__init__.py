"""Step two: an alignment is a distribution over the source positions that are attended."""

import functools

from keras_attention.alignments.adaptive_entmax import AdaptiveEntmax
from keras_attention.alignments.alignment import Alignment
from keras_attention.alignments.attention_sink import AttentionSink
from keras_attention.alignments.bernoulli import Bernoulli
from keras_attention.alignments.categorical import Categorical
from keras_attention.alignments.dependency_tree import DependencyTree
from keras_attention.alignments.entmax import Entmax
from keras_attention.alignments.estimators import (
    Argmax,
    Estimator,
    GumbelSoftmax,
    Reinforce,
    Relaxed,
    StraightThrough,
)
from keras_attention.alignments.linear_chain import LinearChain
from keras_attention.alignments.monotonic import Monotonic
from keras_attention.alignments.sampled import Sampled
from keras_attention.alignments.sampled_categorical import SampledCategorical
from keras_attention.alignments.sparsemax import Sparsemax
from keras_attention.ops.random import split_seed
from keras_attention.saving.lookup import get_by_name

__all__ = [
    "AdaptiveEntmax",
    "Alignment",
    "Argmax",
    "AttentionSink",
    "Bernoulli",
    "Categorical",
    "DependencyTree",
    "Entmax",
    "Estimator",
    "GumbelSoftmax",
    "LinearChain",
    "Monotonic",
    "Reinforce",
    "Relaxed",
    "Sampled",
    "SampledCategorical",
    "Sparsemax",
    "StraightThrough",
    "get",
]

_NAMES = {
    "adaptive_entmax": AdaptiveEntmax,
    "dependency_tree": DependencyTree,
    "entmax": Entmax,
    "linear_chain": LinearChain,
    "monotonic": Monotonic,
    "sampled": SampledCategorical,
    "sigmoid": Bernoulli,
    "softmax": Categorical,
    "sparsemax": Sparsemax,
}


def get(identifier, seed=None):
    """The alignment that a name, a config or an `Alignment` stands for.

    The names: "softmax", "sparsemax", "entmax", "adaptive_entmax", "sampled" (hard), "monotonic", "sigmoid",
    "linear_chain", "dependency_tree".

    A named alignment that draws at random gets a seed made from `seed`, other than the seed of a dropout beside it.
    """
    (seed,) = split_seed(seed, 1)
    seeded = {name: functools.partial(kind.from_seed, seed) for name, kind in _NAMES.items()}
    return get_by_name(identifier, seeded, Alignment, "alignment")
