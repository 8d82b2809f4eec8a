"""Step two: an alignment is a distribution over the source positions that are attended."""

from keras_attention.alignments.alignment import Alignment
from keras_attention.alignments.argmax import Argmax
from keras_attention.alignments.categorical import Categorical
from keras_attention.alignments.entmax import Entmax
from keras_attention.alignments.estimator import Estimator
from keras_attention.alignments.monotonic import Monotonic
from keras_attention.alignments.reinforce import Reinforce
from keras_attention.alignments.relaxed import Relaxed
from keras_attention.alignments.sampled_categorical import SampledCategorical
from keras_attention.alignments.sparsemax import Sparsemax
from keras_attention.alignments.straight_through import StraightThrough
from keras_attention.ops.lookup import get_by_name

__all__ = [
    "Alignment",
    "Argmax",
    "Categorical",
    "Entmax",
    "Estimator",
    "Monotonic",
    "Reinforce",
    "Relaxed",
    "SampledCategorical",
    "Sparsemax",
    "StraightThrough",
    "get",
]

_NAMES = {
    "entmax": Entmax,
    "monotonic": Monotonic,
    "sampled": SampledCategorical,
    "softmax": Categorical,
    "sparsemax": Sparsemax,
}


def get(identifier):
    """The alignment that a name, a config or an `Alignment` stands for: "softmax", "sampled", "sparsemax", ..."""
    return get_by_name(identifier, _NAMES, Alignment, "alignment")
