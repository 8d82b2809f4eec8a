"""Losses, metrics, schedules and callbacks for `compile` and `fit`, and what an answer is worth."""

from keras_attention.training.averaging import AverageCheckpoints, average_checkpoints
from keras_attention.training.baselines import (
    Baseline,
    ChoiceBaseline,
    LearnedBaseline,
    LeaveOneOut,
    MovingAverage,
    NoBaseline,
)
from keras_attention.training.bleu import EvaluateBleu, translate_texts
from keras_attention.training.losses import SmoothedCrossentropy
from keras_attention.training.metrics import SequenceAccuracy, TokenAccuracy
from keras_attention.training.pointer_answers import evaluate_sequences
from keras_attention.training.polygons import area_coverage, evaluate_hulls, is_simple_polygon, same_polygon
from keras_attention.training.reinforce import ReinforceModel
from keras_attention.training.samples import AllChoices
from keras_attention.training.schedules import WarmupInverseSquareRoot
from keras_attention.training.seeding import SeedEachEpoch
from keras_attention.training.tours import evaluate_tours, is_tour, tour_length
from keras_attention.training.triangulations import evaluate_triangulations, same_triangulation, triangle_coverage

__all__ = [
    "AllChoices",
    "AverageCheckpoints",
    "Baseline",
    "ChoiceBaseline",
    "EvaluateBleu",
    "LearnedBaseline",
    "LeaveOneOut",
    "MovingAverage",
    "NoBaseline",
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
    "same_polygon",
    "same_triangulation",
    "tour_length",
    "translate_texts",
    "triangle_coverage",
]
