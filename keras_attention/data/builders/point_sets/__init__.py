"""What the data sets of points share: their configuration, the drawing of the points, and the builder around a label."""

from keras_attention.data.builders.point_sets.point_set_builder import PointSetBuilder
from keras_attention.data.builders.point_sets.points_config import PointsConfig

__all__ = ["PointSetBuilder", "PointsConfig"]
