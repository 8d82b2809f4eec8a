"""The data set `delaunay`."""

from keras_attention.data.builders.delaunay.delaunay import Delaunay
from keras_attention.data.builders.delaunay.triangulations import delaunay_triangulations

__all__ = ["Delaunay", "delaunay_triangulations"]
