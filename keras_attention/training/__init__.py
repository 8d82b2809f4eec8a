"""Losses, metrics and schedules for `compile` and `fit`."""

from keras_attention.training.losses import SmoothedCrossentropy
from keras_attention.training.metrics import SequenceAccuracy, TokenAccuracy
from keras_attention.training.schedules import WarmupInverseSquareRoot

__all__ = ["SequenceAccuracy", "SmoothedCrossentropy", "TokenAccuracy", "WarmupInverseSquareRoot"]
