"""REINFORCE: the model that trains random choices, its baselines, its samples and the credit of a choice."""

from keras_attention.training.reinforce.baselines import (
    Baseline,
    ChoiceBaseline,
    LearnedBaseline,
    LeaveOneOut,
    MovingAverage,
    NoBaseline,
    PerStepBaseline,
)
from keras_attention.training.reinforce.model import ReinforceModel
from keras_attention.training.reinforce.samples import AllChoices, Enumeration

__all__ = [
    "AllChoices",
    "Baseline",
    "ChoiceBaseline",
    "Enumeration",
    "LearnedBaseline",
    "LeaveOneOut",
    "MovingAverage",
    "NoBaseline",
    "PerStepBaseline",
    "ReinforceModel",
]
