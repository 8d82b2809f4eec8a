"""Baselines of REINFORCE, with which a loss is compared."""

from keras_attention.saving.lookup import get_by_name
from keras_attention.training.reinforce.baselines.baseline import Baseline, NoBaseline
from keras_attention.training.reinforce.baselines.learned import LearnedBaseline
from keras_attention.training.reinforce.baselines.leave_one_out import LeaveOneOut
from keras_attention.training.reinforce.baselines.moving_average import MovingAverage
from keras_attention.training.reinforce.baselines.per_step import ChoiceBaseline, PerStepBaseline

__all__ = [
    "Baseline",
    "ChoiceBaseline",
    "LearnedBaseline",
    "LeaveOneOut",
    "MovingAverage",
    "NoBaseline",
    "PerStepBaseline",
    "get",
]

_NAMES = {
    "by_choice": ChoiceBaseline,
    "learned": LearnedBaseline,
    "leave_one_out": LeaveOneOut,
    "moving_average": MovingAverage,
    "per_step": PerStepBaseline,
}


def get(identifier):
    """The baseline that a name, a config or a `Baseline` stands for; `None` for none."""
    baseline = NoBaseline() if identifier is None else get_by_name(identifier, _NAMES, Baseline, "baseline")
    if baseline.built:
        raise ValueError(
            f"A baseline belongs to one model, whose losses it follows. Received {baseline.name!r}, which another model has. "
            "Pass a new one to each model."
        )
    return baseline
