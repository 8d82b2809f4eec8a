"""Figures of Matplotlib's object interface: they need no screen and leave `pyplot` as it is."""

from keras_attention.extras import how_to_install

try:
    from matplotlib.figure import Figure
except ImportError as error:
    raise ImportError(f"Plots need Matplotlib, which is not installed. {how_to_install('plots')}") from error


def new_figure(width, height):
    """An empty figure, sizes in inches, that makes room for labels and titles."""
    return Figure(figsize=(width, height), layout="constrained")
