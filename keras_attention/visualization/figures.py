"""Figures of Matplotlib's object interface: they need no screen and leave `pyplot` as it is."""

try:
    from matplotlib.figure import Figure
except ImportError as error:
    raise ImportError("Plots need Matplotlib. Install it with `pip install keras-attention-layers[plots]`.") from error


def new_figure(width, height):
    """An empty figure, sizes in inches, that makes room for labels and titles."""
    return Figure(figsize=(width, height), layout="constrained")
