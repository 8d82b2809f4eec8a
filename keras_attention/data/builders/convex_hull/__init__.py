"""The data set `convex_hull`."""

from keras_attention.data.builders.convex_hull.convex_hull import ConvexHull
from keras_attention.data.builders.convex_hull.hulls import convex_hulls

__all__ = ["ConvexHull", "convex_hulls"]
