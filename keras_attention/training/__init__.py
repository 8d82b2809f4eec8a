"""Losses, metrics, schedules and callbacks for `compile` and `fit`."""

from keras_attention.training.averaging import AverageCheckpoints, average_checkpoints
from keras_attention.training.bleu import EvaluateBleu, translate_texts
from keras_attention.training.losses import SmoothedCrossentropy
from keras_attention.training.metrics import SequenceAccuracy, TokenAccuracy
from keras_attention.training.schedules import WarmupInverseSquareRoot
from keras_attention.training.seeding import SeedEachEpoch

__all__ = [
    "AverageCheckpoints",
    "EvaluateBleu",
    "SeedEachEpoch",
    "SequenceAccuracy",
    "SmoothedCrossentropy",
    "TokenAccuracy",
    "WarmupInverseSquareRoot",
    "average_checkpoints",
    "translate_texts",
]
