"""Step two: an alignment is a distribution over the source positions that are attended."""

from keras_attention.alignments.alignment import Alignment
from keras_attention.alignments.categorical import Categorical
from keras_attention.alignments.entmax import Entmax
from keras_attention.alignments.monotonic import Monotonic
from keras_attention.alignments.sparsemax import Sparsemax
from keras_attention.ops.lookup import get_by_name

__all__ = ["Alignment", "Categorical", "Entmax", "Monotonic", "Sparsemax", "get"]

_NAMES = {"entmax": Entmax, "monotonic": Monotonic, "softmax": Categorical, "sparsemax": Sparsemax}


def get(identifier):
    """The alignment that a name, a config or an `Alignment` stands for: "entmax", "monotonic", "softmax", "sparsemax"."""
    return get_by_name(identifier, _NAMES, Alignment, "alignment")
