"""Attention weights as heat maps: a row for each query, a column for each key, the tokens on the axes.

Letters in shapes: L layers, N heads, T queries, S keys.
"""

import math

import keras

from keras_attention.visualization.figures import new_figure
from keras_attention.visualization.labels import drawable, token_label
from keras_attention.visualization.weights import check_weights

LARGEST = 24.0  # inches, of all cells together
CELL = 0.25  # inches
LABEL = 0.14  # inches that a label needs across its line
LETTER = 0.075  # inches along it, for each letter
COLUMNS = 4  # of a grid of heads


def plot_attention(weights, query_tokens=None, key_tokens=None, title=None, vmax=1.0):
    """Heat map of one head's attention weights.

    Args:
        weights: Tensor or array `(T, S)` of numbers in [0, 1].
        query_tokens: T tokens for the rows, top to bottom: strings, bytes, or anything that `str` can show. By default
            the positions from 0 on. A string is a sequence of characters.
        key_tokens: S tokens for the columns, left to right, also in languages that are written from right to left.
        title: String.
        vmax: The weight that gets the darkest colour, so that figures can be compared; `None` takes the largest weight.

    Returns:
        `matplotlib.figure.Figure`; `figure.savefig("attention.png")` writes it, `figure.axes[0]` gives access to it.
        Labels show spaces as `␣` and characters that no installed font has as `□`; long tokens are cut with `…`, and in
        very long sequences only every second, third, ... token is named.

    Raises:
        ValueError: Weights of another rank, empty, outside [0, 1] or not a number; too few or too many tokens.

    Example:
        >>> figure = plot_attention([[0.9, 0.1], [0.2, 0.8]], ["le", "chat"], ["the", "cat"])
        >>> figure.savefig("attention.png")
    """
    weights = checked_weights(weights)
    if weights.ndim != 2:
        raise ValueError(
            f"`weights` must have shape (T, S). Received weights of shape {weights.shape}. "
            "Choose one example and one head, such as weights[0, 0], or call `plot_attention_grid`."
        )
    return draw(weights[None, None], query_tokens, key_tokens, [title or ""], vmax)


def plot_attention_grid(weights, query_tokens=None, key_tokens=None, titles=None, vmax=1.0):
    """Heat maps of several heads, or of the heads of several layers, in one colour scale.

    Args:
        weights: Tensor or array of one example: `(N, T, S)`, one panel for each head, or `(L, N, T, S)`, one row of
            panels for each layer.
        query_tokens, key_tokens: As in `plot_attention`; the same for all panels.
        titles: A title for each panel, row by row; by default "head 1", or "layer 1, head 1".
        vmax: As in `plot_attention`.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ValueError: As `plot_attention`; another number of titles than panels.

    Example:
        >>> weights = keras.ops.softmax(keras.random.normal((2, 3, 5, 7)))
        >>> plot_attention_grid(weights, "query", "the key").savefig("heads.png")
    """
    weights = checked_weights(weights)
    if weights.ndim not in (3, 4):
        raise ValueError(
            f"`weights` must have shape (N, T, S) or (L, N, T, S). Received weights of shape {weights.shape}. "
            "Choose one example of the batch, and call `plot_attention` for one head."
        )
    heads = range(1, weights.shape[-3] + 1)
    if weights.ndim == 3:
        names = [f"head {head}" for head in heads]
        rows = [weights[start : start + COLUMNS] for start in range(0, len(weights), COLUMNS)]
    else:
        names = [f"layer {layer}, head {head}" for layer in range(1, len(weights) + 1) for head in heads]
        rows = weights
    titles = names if titles is None else list(titles)
    if len(titles) != len(names):
        raise ValueError(f"`titles` must name each of the {len(names)} panels. Received {len(titles)}: {titles}.")
    return draw(rows, query_tokens, key_tokens, titles, vmax)


def draw(rows, query_tokens, key_tokens, titles, vmax):
    """A figure with the panels `rows[row][column]` of shape `(T, S)`; only the last row may be shorter."""
    height, width = len(rows), len(rows[0])
    T, S = rows[0][0].shape
    query_labels, query_fonts = axis_labels("query_tokens", "T", query_tokens, T)
    key_labels, key_fonts = axis_labels("key_tokens", "S", key_tokens, S)
    titles, title_fonts = drawable(titles)
    cell = min(CELL, LARGEST / (width * S), LARGEST / (height * T))
    figure_width = width * (cell * S + 0.2) + LETTER * max(map(len, query_labels)) + 1.4
    figure_height = height * (cell * T + 0.3) + LETTER * max(map(len, key_labels)) + 0.5
    figure = new_figure(figure_width, figure_height)
    grid = figure.subplots(height, width, squeeze=False)
    panels = [(row, column) for row in range(height) for column in range(len(rows[row]))]
    vmax = max(rows[row][column].max() for row, column in panels) or 1.0 if vmax is None else vmax
    for (row, column), title in zip(panels, titles, strict=True):
        axes = grid[row, column]
        image = axes.imshow(rows[row][column], cmap="Blues", vmin=0.0, vmax=vmax, interpolation="nearest")
        axes.set_title(title, fontfamily=title_fonts, fontsize=9, parse_math=False)
        axes.spines[:].set_color("0.8")
        name_axis(axes.yaxis, "query", query_labels, query_fonts, cell, visible=column == 0)
        name_axis(axes.xaxis, "key", key_labels, key_fonts, cell, visible=(row + 1, column) not in panels)
        if max(map(len, key_labels)) * LETTER > cell:
            axes.xaxis.set_tick_params(rotation=90)
    for axes in grid[-1, len(rows[-1]) :]:
        axes.remove()
    thickness = 0.15  # inches
    bar = figure.colorbar(
        image,
        ax=figure.axes,
        fraction=thickness / figure_width,
        pad=thickness / figure_width,
        aspect=figure_height / thickness,
    )
    bar.set_label("weight", fontsize=9)
    bar.ax.tick_params(labelsize=8)
    return figure


def name_axis(axis, name, labels, fonts, cell, visible):
    """The axis' name and as many of its labels as the cells leave room for, or nothing where a neighbour shows them."""
    if not visible:
        axis.set_ticks([])
        return
    step = math.ceil(LABEL / cell)
    positions = range(0, len(labels), step)
    axis.set_ticks(positions, labels=labels[::step], fontfamily=fonts, fontsize=8, parse_math=False)
    axis.set_label_text(name, fontsize=9)


def axis_labels(argument, letter, tokens, size):
    """The labels of one axis and their fonts."""
    tokens = list(range(size) if tokens is None else tokens)
    if len(tokens) != size:
        raise ValueError(
            f"`{argument}` must have one token for each of the {letter}={size} positions. "
            f"Received {len(tokens)} tokens: {tokens}. Cut the weights or the tokens to the same length."
        )
    return drawable([token_label(token) for token in tokens])


def checked_weights(weights):
    """The weights as a float32 array."""
    weights = keras.ops.convert_to_numpy(keras.ops.convert_to_tensor(weights, "float32"))
    if weights.size == 0:
        raise ValueError(f"`weights` must have a query and a key at least. Received weights of shape {weights.shape}.")
    check_weights("weights", weights)
    return weights
