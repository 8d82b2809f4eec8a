"""Estimators of the gradient of a hard choice, and the recorder of what was drawn."""

from keras_attention.alignments.estimators.argmax import Argmax
from keras_attention.alignments.estimators.estimator import Estimator
from keras_attention.alignments.estimators.gumbel_softmax import GumbelSoftmax, Relaxed
from keras_attention.alignments.estimators.recorder import Recorder, is_recording, record_choice
from keras_attention.alignments.estimators.reinforce import Reinforce
from keras_attention.alignments.estimators.straight_through import StraightThrough
from keras_attention.saving.lookup import get_by_name

__all__ = [
    "Argmax",
    "Estimator",
    "GumbelSoftmax",
    "Recorder",
    "Reinforce",
    "Relaxed",
    "StraightThrough",
    "get",
    "is_recording",
    "record_choice",
]

_NAMES = {
    "argmax": Argmax,
    "gumbel_softmax": GumbelSoftmax,
    "reinforce": Reinforce,
    "relaxed": Relaxed,
    "straight_through": StraightThrough,
}


def get(identifier):
    """The estimator that a name, a config or an `Estimator` stands for.

    The names: "reinforce", "straight_through", "gumbel_softmax", "argmax".
    """
    return get_by_name(identifier, _NAMES, Estimator, "estimator")
