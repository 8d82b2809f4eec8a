"""Step two: an alignment is a distribution over the source positions that are attended."""

from keras_attention.alignments.alignment import Alignment
from keras_attention.alignments.argmax import Argmax
from keras_attention.alignments.categorical import Categorical
from keras_attention.alignments.estimator import Estimator
from keras_attention.alignments.reinforce import Reinforce
from keras_attention.alignments.relaxed import Relaxed
from keras_attention.alignments.sampled_categorical import SampledCategorical
from keras_attention.alignments.straight_through import StraightThrough
from keras_attention.ops.lookup import get_by_name

__all__ = [
    "Alignment",
    "Argmax",
    "Categorical",
    "Estimator",
    "Reinforce",
    "Relaxed",
    "SampledCategorical",
    "StraightThrough",
    "get",
]

_NAMES = {"sampled": SampledCategorical, "softmax": Categorical}


def get(identifier):
    """The alignment that a name, a config or an `Alignment` stands for: "sampled" or "softmax"."""
    return get_by_name(identifier, _NAMES, Alignment, "alignment")
