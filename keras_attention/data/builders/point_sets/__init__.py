"""Shared by the data sets of points: their configuration, the drawing of the points, and the base of the builders."""

from keras_attention.data.builders.point_sets.point_set_builder import PointSetBuilder
from keras_attention.data.builders.point_sets.points_config import PointsConfig

__all__ = ["PointSetBuilder", "PointsConfig"]
