"""Losses, metrics, schedules and callbacks for `compile` and `fit`."""

from keras_attention.alignments.estimators import Recorder, record_choice

# Names of version 0.1 that stand in `evaluation` now.
from keras_attention.evaluation import (
    area_coverage,
    evaluate_hulls,
    evaluate_sequences,
    evaluate_tours,
    evaluate_triangulations,
    is_simple_polygon,
    is_tour,
    same_polygon,
    same_triangulation,
    tour_length,
    translate_texts,
    triangle_coverage,
)
from keras_attention.training.averaging import AverageCheckpoints, average_checkpoints
from keras_attention.training.bleu import EvaluateBleu
from keras_attention.training.losses import SmoothedCrossentropy
from keras_attention.training.metrics import SequenceAccuracy, TokenAccuracy
from keras_attention.training.reinforce import (
    AllChoices,
    Baseline,
    ChoiceBaseline,
    Enumeration,
    LearnedBaseline,
    LeaveOneOut,
    MovingAverage,
    NoBaseline,
    PerStepBaseline,
    ReinforceModel,
)
from keras_attention.training.schedules import WarmupInverseSquareRoot
from keras_attention.training.seeding import SeedEachEpoch

__all__ = [
    "AllChoices",
    "AverageCheckpoints",
    "Baseline",
    "ChoiceBaseline",
    "Enumeration",
    "EvaluateBleu",
    "LearnedBaseline",
    "LeaveOneOut",
    "MovingAverage",
    "NoBaseline",
    "PerStepBaseline",
    "Recorder",
    "ReinforceModel",
    "SeedEachEpoch",
    "SequenceAccuracy",
    "SmoothedCrossentropy",
    "TokenAccuracy",
    "WarmupInverseSquareRoot",
    "area_coverage",
    "average_checkpoints",
    "evaluate_hulls",
    "evaluate_sequences",
    "evaluate_tours",
    "evaluate_triangulations",
    "is_simple_polygon",
    "is_tour",
    "record_choice",
    "same_polygon",
    "same_triangulation",
    "tour_length",
    "translate_texts",
    "triangle_coverage",
]
