"""Plots of what a model attends to and points at; each returns a Matplotlib figure."""

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
    "plot_polygon",
    "plot_polygons",
    "plot_triangulation",
    "plot_triangulations",
]
