import importlib
import io
import sys

import numpy as np
import pytest
from keras import ops
from matplotlib.collections import PolyCollection

from keras_attention.visualization import plot_attention
from keras_attention.visualization.points import (
    plot_polygon,
    plot_polygons,
    plot_triangulation,
    plot_triangulations,
)

SQUARE = [[0.0, 0.0], [3.0, 0.0], [3.0, 2.0], [0.0, 2.0], [1.0, 1.0]]
TRIANGLES = [1, 2, 5, 2, 3, 5, 3, 4, 5, 4, 1, 5]


def drawn(figure):
    """The figure after everything in it has been drawn once, warnings being errors."""
    figure.savefig(io.BytesIO(), format="png")
    return figure


def lines(axes):
    """The corners of each line, from the first drawn to the last, without the points."""
    return [line.get_xydata().tolist() for line in axes.lines if line.get_linestyle() != "None"]


def triangles(axes):
    """The triangles of each triangulation, from the first drawn to the last."""
    collections = [each for each in axes.collections if isinstance(each, PolyCollection)]
    return [[path.vertices[:3].tolist() for path in collection.get_paths()] for collection in collections]


def numbers(axes):
    return {text.get_text(): list(text.xy) for text in axes.texts}


def test_polygon_is_a_closed_line_over_its_reference():
    (axes,) = drawn(plot_polygon(SQUARE, [1, 5, 3, 4, 0, 0], [1, 2, 3, 4], "hull")).axes
    reference, answer = lines(axes)
    assert reference == [[0, 0], [3, 0], [3, 2], [0, 2], [0, 0]]
    assert answer == [[0, 0], [1, 1], [3, 2], [0, 2], [0, 0]]
    broad, thin = (line.get_linewidth() for line in axes.lines[:2])
    assert broad > 3 * thin
    assert axes.get_title() == "hull"


def test_polygon_without_reference_is_one_line():
    figure = drawn(plot_polygon(SQUARE, [1, 2, 3]))
    assert lines(figure.axes[0]) == [[[0, 0], [3, 0], [3, 2], [0, 0]]]
    assert not figure.legends


def test_legend_names_answer_and_reference():
    (legend,) = drawn(plot_polygon(SQUARE, [1, 2, 3], [1, 2, 3, 4])).legends
    assert [text.get_text() for text in legend.get_texts()] == ["answer", "reference"]


def test_triangulation_is_a_set_of_triangles_over_its_reference():
    (axes,) = drawn(plot_triangulation(SQUARE, [1, 2, 3, 4, 1, 5, 2, 0], TRIANGLES)).axes
    reference, answer = triangles(axes)
    assert answer == [[[0, 0], [3, 0], [3, 2]], [[0, 2], [0, 0], [1, 1]]]  # the last one is unfinished
    assert [[SQUARE.index(corner) + 1 for corner in triangle] for triangle in reference] == [
        [1, 2, 5],
        [2, 3, 5],
        [3, 4, 5],
        [4, 1, 5],
    ]


@pytest.mark.parametrize("plot", [plot_polygon, plot_triangulation])
def test_points_are_drawn_and_numbered_from_one(plot):
    (axes,) = drawn(plot(SQUARE, [1, 2, 3])).axes
    (points,) = [line.get_xydata().tolist() for line in axes.lines if line.get_linestyle() == "None"]
    assert points == SQUARE
    assert numbers(axes) == {str(number): point for number, point in enumerate(SQUARE, start=1)}


def test_many_points_have_no_numbers():
    (axes,) = drawn(plot_polygon(np.random.default_rng(7).random((211, 2)), [1, 2, 3])).axes
    assert numbers(axes) == {}


def test_both_axes_have_the_same_unit():
    (axes,) = drawn(plot_polygon(SQUARE, [1, 2, 3, 4])).axes
    (left, bottom), (right, top) = axes.transData.transform([[0.0, 0.0], [1.0, 1.0]])
    assert right - left == pytest.approx(top - bottom)


@pytest.mark.parametrize("plot", [plot_polygon, plot_triangulation])
@pytest.mark.parametrize("indices", [[], [0, 0], [1], [2, 1, 0]])
@pytest.mark.parametrize("count", [2, 3])
def test_short_answers_are_drawn_without_a_warning(plot, indices, count):
    drawn(plot(SQUARE[:count], indices, reference=[]))


@pytest.mark.parametrize("plot", [plot_polygon, plot_triangulation])
def test_single_point_is_drawn(plot):
    drawn(plot([[0.5, 0.5]], [1, 0], [1]))


def test_tensors_are_drawn():
    points, indices = ops.array(SQUARE, "float32"), ops.array([1, 2, 3, 0], "int32")
    assert lines(drawn(plot_polygon(points, indices)).axes[0]) == lines(plot_polygon(SQUARE, [1, 2, 3]).axes[0])


@pytest.mark.parametrize("count, rows, columns", [(1, 1, 1), (3, 1, 3), (4, 1, 4), (5, 2, 4)])
def test_examples_fill_rows_of_four(count, rows, columns):
    examples = [{"points": SQUARE[:3], "indices": [1, 2, 3]}] * count
    figure = plot_polygons(examples, [[1, 2, 3]] * count)
    assert [axes.get_title() for axes in figure.axes] == [str(number) for number in range(1, count + 1)]
    assert figure.axes[0].get_subplotspec().get_gridspec().get_geometry() == (rows, columns)


def test_each_panel_has_its_own_answer_reference_and_title():
    examples = [{"points": SQUARE, "indices": [1, 2, 3, 4]}, {"points": SQUARE[1:], "indices": [1, 2, 3]}]
    first, second = drawn(plot_polygons(examples, np.int32([[1, 2, 0], [4, 1, 0]]), ["a", "$"])).axes
    assert lines(first) == [[[0, 0], [3, 0], [3, 2], [0, 2], [0, 0]], [[0, 0], [3, 0], [0, 0]]]
    assert lines(second) == [[[3, 0], [3, 2], [0, 2], [3, 0]], [[1, 1], [3, 0], [1, 1]]]
    assert (first.get_title(), second.get_title()) == ("a", "$")


def test_grid_of_triangulations_has_the_triangles_of_each_example():
    examples = [{"points": SQUARE[:3], "indices": [1, 2, 3]}, {"points": SQUARE, "indices": TRIANGLES}]
    first, second = drawn(plot_triangulations(examples, [[0, 0, 0], [2, 3, 5]])).axes
    assert [len(shown) for shown in (*triangles(first), *triangles(second))] == [1, 0, 4, 1]


def test_drawing_leaves_no_trace_in_pyplot():
    plot_polygon(SQUARE, [1, 2, 3])
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


def test_pointer_matrix_is_a_heat_map_with_the_end_as_first_column():
    probabilities = np.random.default_rng(7).dirichlet(np.ones(6), size=4)  # (T, S + 1)
    (axes, _) = drawn(plot_attention(probabilities, ["start", 3, 1, 4], ["end", 1, 2, 3, 4, 5])).axes
    np.testing.assert_allclose(axes.images[0].get_array(), probabilities, rtol=1e-6)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["end", "1", "2", "3", "4", "5"]


@pytest.mark.parametrize("plot", [plot_polygon, plot_triangulation])
def test_indices_that_are_no_positions_raise(plot):
    with pytest.raises(ValueError, match=r"`indices` must be positions, from 1 to 5, .* Received 6 among \[1, 6\]"):
        plot(SQUARE, [1, 6, 0, 2])
    with pytest.raises(ValueError, match=r"`reference` must be positions, from 1 to 5, .* Received -1 among \[-1, 2\]"):
        plot(SQUARE, [1, 2], [-1, 2])
    with pytest.raises(
        TypeError, match=r"`indices` must be integers of shape \(L,\)\. Received float64 of shape \(2,\)"
    ):
        plot(SQUARE, [1.0, 2.0])
    with pytest.raises(TypeError, match=r"Received int64 of shape \(1, 2\)"):
        plot(SQUARE, [[1, 2]])


@pytest.mark.parametrize("points", [[0.5, 0.5], [[0.5, 0.5, 0.5]], [SQUARE]])
def test_points_of_another_shape_raise(points):
    with pytest.raises(ValueError, match=r"`points` must have shape \(n, 2\), .* Received points of shape"):
        plot_polygon(points, [1])


def test_points_that_are_not_finite_raise():
    with pytest.raises(ValueError, match=r"must be finite in float64\. Received points\[0\] = \[0\.5, nan\]\. Mend"):
        plot_polygon([[0.5, np.nan], [0.1, 0.2]], [1, 2])


def test_wrong_number_of_answers_or_titles_raises():
    examples = [{"points": SQUARE, "indices": [1, 2, 3]}] * 2
    with pytest.raises(ValueError, match=r"Received 2 examples, 3 answers and 2 titles"):
        plot_polygons(examples, [[1, 2, 3]] * 3)
    with pytest.raises(ValueError, match=r"Received 2 examples, 2 answers and 1 titles"):
        plot_triangulations(examples, [[1, 2, 3]] * 2, ["first"])
    with pytest.raises(ValueError, match=r"Received 0 examples, 0 answers and 0 titles"):
        plot_polygons([], [])


def test_missing_matplotlib_names_the_extra(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("keras_attention.visualization")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[plots\]'"):
        importlib.import_module("keras_attention.visualization.points")
