"""Answers of a pointer network drawn through their points, over the reference: hulls, tours and triangulations.

Letters in shapes: n points, m indices; L indices and the end, 0, with all after it.
"""

import math

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D

from keras_attention.checks.arguments import check_same_number
from keras_attention.checks.points import corners_of, plane_points
from keras_attention.visualization.figures import new_figure
from keras_attention.visualization.labels import drawable

PANEL = 3.2  # inches
COLUMNS = 4  # of a grid
NUMBERED = 30  # points; more numbers would hide the lines
ANSWER = {"color": "#0072B2", "linewidth": 1.5}  # blue over pale orange: different to every kind of eye
REFERENCE = {"color": "#F0C27A", "linewidth": 6.0}
POINT = "0.2"


def plot_polygon(points, indices, reference=None, title=None):
    """A hull or a tour: a line through the points in the order of the indices, and back to the first.

    The answer is a thin dark line over the reference, a broad pale one, so that both can be seen where they agree.

    Args:
        points: Tensor or array `(n, 2)` of finite numbers, without padding.
        indices: Integers `(L,)`, an answer as `model.generate` returns it: they count from 1, and it ends before the
            first 0. Of one index only the point can be seen.
        reference: Integers `(m,)` or None, the right answer.
        title: String, such as the length of a tour.

    Returns:
        `matplotlib.figure.Figure`; `figure.savefig("hull.png")` writes it, `figure.axes[0]` gives access to it. Up to 30
        points are numbered.

    Raises:
        TypeError: Indices that are not integers of one axis.
        ValueError: Points of another shape or not finite, or an index that is not a position of a point.

    Example:
        >>> figure = plot_polygon([[0, 0], [1, 0], [0.5, 0.4], [1, 1]], [1, 2, 4, 3, 0], reference=[1, 2, 4])
        >>> figure.savefig("hull.png")
    """
    return draw(draw_polygon, [(points, indices, reference)], [title or ""])


def plot_polygons(examples, answers, titles=None):
    """`plot_polygon` of several examples side by side.

    Args:
        examples: Iterable of dictionaries, `"points"` `(n, 2)` and `"indices"` `(m,)`, the reference, as files and data
            sets have them; a dozen at most is readable.
        answers: As many sequences of indices: an integer array `(B, L)` as `model.generate` returns it, or a list.
        titles: A title for each; by default they are numbered.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        TypeError, ValueError: As `plot_polygon`; if there is no example, or the numbers of answers and titles differ.

    Example:
        >>> examples = [{"points": [[0, 0], [1, 0], [1, 1]], "indices": [1, 2, 3]}] * 2
        >>> plot_polygons(examples, [[1, 2, 3], [1, 2, 0]], ["right", "wrong"]).savefig("hulls.png")
    """
    return draw(draw_polygon, *panels_of(examples, answers, titles))


def plot_triangulation(points, indices, reference=None, title=None):
    """A triangulation: tinted triangles whose sides are thin dark lines, over those of the reference, broad and pale.

    A missing triangle has the tint of the reference only, and where triangles of the answer overlap theirs is darker.

    Args:
        points, reference, title: As in `plot_polygon`.
        indices: Integers `(L,)` as in `plot_polygon`, three corners for each triangle; an unfinished one at the end,
            of an answer that was cut, is not drawn.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        TypeError, ValueError: As `plot_polygon`.

    Example:
        >>> figure = plot_triangulation([[0, 0], [1, 0], [1, 1], [0, 1]], [1, 2, 3, 1, 3, 4, 0])
        >>> figure.savefig("triangulation.png")
    """
    return draw(draw_triangulation, [(points, indices, reference)], [title or ""])


def plot_triangulations(examples, answers, titles=None):
    """`plot_triangulation` of several examples side by side; the arguments are those of `plot_polygons`.

    Example:
        >>> examples = [{"points": [[0, 0], [1, 0], [1, 1]], "indices": [1, 2, 3]}] * 2
        >>> plot_triangulations(examples, [[1, 2, 3], [0, 0, 0]]).savefig("triangulations.png")
    """
    return draw(draw_triangulation, *panels_of(examples, answers, titles))


def panels_of(examples, answers, titles):
    """The panels `(points, indices, reference)` and the title of each."""
    examples, answers = list(examples), list(answers)
    titles = [str(number) for number in range(1, len(examples) + 1)] if titles is None else list(titles)
    check_same_number("Cut them to the same number.", examples=examples, answers=answers, titles=titles)
    panels = [
        (example["points"], answer, example["indices"]) for example, answer in zip(examples, answers, strict=True)
    ]
    return panels, titles


def draw(draw_shape, panels, titles):
    """A figure with a square for each `(points, indices, reference)`."""
    columns = min(len(panels), COLUMNS)
    rows = math.ceil(len(panels) / columns)
    figure = new_figure(PANEL * columns, PANEL * rows)
    titles, fonts = drawable(titles)
    for number, ((points, indices, reference), title) in enumerate(zip(panels, titles, strict=True), start=1):
        axes = figure.add_subplot(rows, columns, number)
        points = plane_points(points)
        if reference is not None:
            draw_shape(axes, corners_of(points, "reference", reference), **REFERENCE)
        draw_shape(axes, corners_of(points, "indices", indices), **ANSWER)
        draw_points(axes, points)
        axes.set_title(title, fontfamily=fonts, fontsize=9, parse_math=False)
    if any(reference is not None for _, _, reference in panels):
        lines = [Line2D([], [], label="answer", **ANSWER), Line2D([], [], label="reference", **REFERENCE)]
        figure.legend(handles=lines, loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure


def draw_polygon(axes, corners, color, linewidth):
    """A closed line through `corners (m, 2)`."""
    closed = np.concatenate([corners, corners[:1]])
    axes.plot(closed[:, 0], closed[:, 1], color=color, linewidth=linewidth, solid_joinstyle="round")


def draw_triangulation(axes, corners, color, linewidth):
    """The triangles that `corners (m, 2)` make three by three."""
    triangles = corners[: len(corners) // 3 * 3].reshape(-1, 3, 2)
    shapes = PolyCollection(triangles, facecolor=(color, 0.15), edgecolor=color, linewidth=linewidth, joinstyle="round")
    axes.add_collection(shapes)


def draw_points(axes, points):
    """The points over the lines, numbered from 1 while they are few, in equal units on both axes."""
    axes.plot(points[:, 0], points[:, 1], "o", color=POINT, markersize=4)
    if len(points) <= NUMBERED:
        for number, point in enumerate(points, start=1):
            axes.annotate(str(number), point, xytext=(3, 3), textcoords="offset points", fontsize=8, color=POINT)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.1)
    axes.tick_params(labelsize=7, color="0.8")
    axes.spines[:].set_color("0.8")
