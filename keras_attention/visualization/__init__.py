"""Plots of attention weights, of answers of pointer networks and of glimpses; each returns a Matplotlib figure."""

from keras_attention.visualization.documents import plot_document
from keras_attention.visualization.glimpses import plot_glimpses, plot_glimpses_grid
from keras_attention.visualization.heat_maps import plot_attention, plot_attention_grid
from keras_attention.visualization.points import (
    plot_polygon,
    plot_polygons,
    plot_triangulation,
    plot_triangulations,
)

__all__ = [
    "plot_attention",
    "plot_attention_grid",
    "plot_document",
    "plot_glimpses",
    "plot_glimpses_grid",
    "plot_polygon",
    "plot_polygons",
    "plot_triangulation",
    "plot_triangulations",
]
