"""Plots of what a model attends to; each returns a Matplotlib figure."""

from keras_attention.visualization.heat_maps import plot_attention, plot_attention_grid

__all__ = ["plot_attention", "plot_attention_grid"]
