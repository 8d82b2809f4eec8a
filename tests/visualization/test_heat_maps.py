import importlib
import io
import sys
from itertools import pairwise

import keras
import numpy as np
import pytest

from keras_attention.visualization import plot_attention, plot_attention_grid

T, S = 3, 5


def weights(*shape):
    """Rows that sum to one."""
    numbers = np.random.default_rng(0).random(shape)
    return numbers / numbers.sum(axis=-1, keepdims=True)


def drawn(figure):
    """The figure after everything in it has been drawn once, warnings being errors."""
    figure.savefig(io.BytesIO(), format="png")
    return figure


def panels(figure):
    return [axes for axes in figure.axes if axes.images]


def shown_labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_rows_are_queries_and_columns_are_keys():
    numbers = weights(T, S)
    (axes,) = panels(drawn(plot_attention(numbers, ["le", "chat", "noir"], "black", title="head 2")))
    np.testing.assert_allclose(axes.images[0].get_array(), numbers, rtol=1e-6)
    assert shown_labels(axes.yaxis) == ["le", "chat", "noir"]
    assert shown_labels(axes.xaxis) == ["b", "l", "a", "c", "k"]
    assert (axes.get_ylabel(), axes.get_xlabel(), axes.get_title()) == ("query", "key", "head 2")
    assert axes.yaxis_inverted()  # the first query is on top


def test_positions_are_the_tokens_by_default():
    (axes,) = panels(drawn(plot_attention(weights(T, S))))
    assert shown_labels(axes.yaxis) == ["0", "1", "2"]
    assert shown_labels(axes.xaxis) == ["0", "1", "2", "3", "4"]


def test_colours_go_from_zero_to_one_unless_asked_otherwise():
    numbers = weights(T, S)
    assert panels(plot_attention(numbers))[0].images[0].get_clim() == (0.0, 1.0)
    assert panels(plot_attention(numbers, vmax=0.5))[0].images[0].get_clim() == (0.0, 0.5)
    assert panels(plot_attention(numbers, vmax=None))[0].images[0].get_clim() == (0.0, np.float32(numbers.max()))
    assert panels(drawn(plot_attention(0 * numbers, vmax=None)))[0].images[0].get_clim() == (0.0, 1.0)


@pytest.mark.parametrize("heads, rows, columns", [(1, 1, 1), (3, 1, 3), (4, 1, 4), (7, 2, 4)])
def test_heads_fill_rows_of_four(heads, rows, columns):
    numbers = weights(heads, T, S)
    shown = panels(drawn(plot_attention_grid(numbers)))
    assert [axes.get_title() for axes in shown] == [f"head {head}" for head in range(1, heads + 1)]
    assert shown[0].get_subplotspec().get_gridspec().get_geometry() == (rows, columns)
    for axes, head in zip(shown, numbers, strict=True):
        np.testing.assert_allclose(axes.images[0].get_array(), head, rtol=1e-6)


def test_tokens_stand_once_for_each_row_and_column_of_the_grid():
    shown = panels(drawn(plot_attention_grid(weights(7, T, S), "abc", "vwxyz")))
    assert [bool(shown_labels(axes.yaxis)) for axes in shown] == [True, False, False, False, True, False, False]
    assert [bool(shown_labels(axes.xaxis)) for axes in shown] == [False, False, False, True, True, True, True]


def test_layers_are_rows_and_heads_are_columns():
    numbers = weights(2, 3, T, S)
    shown = panels(drawn(plot_attention_grid(numbers, vmax=None)))
    assert [axes.get_title() for axes in shown[2:4]] == ["layer 1, head 3", "layer 2, head 1"]
    np.testing.assert_allclose(shown[3].images[0].get_array(), numbers[1, 0], rtol=1e-6)
    assert {axes.images[0].get_clim() for axes in shown} == {(0.0, np.float32(numbers.max()))}  # one colour scale


def test_titles_can_be_given():
    shown = panels(plot_attention_grid(weights(2, T, S), titles=["first", "$"]))
    assert [axes.get_title() for axes in shown] == ["first", "$"]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_tensors_of_the_backend_are_drawn(dtype):
    numbers = weights(T, S)
    (axes,) = panels(drawn(plot_attention(keras.ops.convert_to_tensor(numbers, dtype))))
    np.testing.assert_allclose(axes.images[0].get_array(), numbers, atol=2e-3)


def test_long_sequences_name_as_many_tokens_as_can_be_read():
    figure = drawn(plot_attention(weights(211, 307)))
    (axes,) = panels(figure)
    assert shown_labels(axes.xaxis)[:3] == ["0", "2", "4"]
    assert max(figure.get_size_inches()) < 26


def test_no_label_covers_the_next_one():
    figure = plot_attention(weights(7, 11), ["a long query"] * 7, [f"key number {i}" for i in range(11)])
    (axes,) = panels(drawn(figure))
    boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
    assert all(left.x1 <= right.x0 for left, right in pairwise(boxes))
    boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
    assert all(lower.y1 <= upper.y0 for upper, lower in pairwise(boxes))


@pytest.mark.parametrize(
    "tokens",
    [["$x^$", "$", "\\frac"], ["年", "月", "日"], ["\n", "", " "], ["x" * 99] * 3, ["مارس", "מרץ", "मार्च"], "🙂éa"],
)
def test_any_characters_are_drawn_without_a_warning(tokens):
    drawn(plot_attention(weights(3, 3), tokens, tokens, title=tokens[0]))


def test_drawing_leaves_no_trace_in_pyplot():
    plot_attention(weights(T, S))
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


def test_weights_of_another_rank_are_an_error():
    with pytest.raises(ValueError, match=r"must have shape \(T, S\)\. Received weights of shape \(2, 3, 5\)"):
        plot_attention(weights(2, T, S))
    with pytest.raises(ValueError, match=r"\(N, T, S\) or \(L, N, T, S\)\. Received weights of shape \(3, 5\)"):
        plot_attention_grid(weights(T, S))
    with pytest.raises(ValueError, match=r"Received weights of shape \(1, 1, 2, 3, 5\)"):
        plot_attention_grid(weights(1, 1, 2, T, S))


def test_empty_weights_are_an_error():
    with pytest.raises(ValueError, match=r"a query and a key at least\. Received weights of shape \(3, 0\)"):
        plot_attention(np.zeros((3, 0)))


def test_wrong_number_of_tokens_is_an_error():
    with pytest.raises(ValueError, match=r"`query_tokens` .* T=3 positions\. Received 2 tokens: \['le', 'chat'\]"):
        plot_attention(weights(T, S), ["le", "chat"])
    with pytest.raises(ValueError, match=r"`key_tokens` .* S=5 positions\. Received 3 tokens"):
        plot_attention(weights(T, S), key_tokens="cat")


def test_wrong_number_of_titles_is_an_error():
    with pytest.raises(ValueError, match=r"each of the 2 panels\. Received 1: \['first'\]"):
        plot_attention_grid(weights(2, T, S), titles=["first"])


@pytest.mark.parametrize("wrong, text", [(-1.5, "from -1.5"), (7.0, "to 7"), (np.nan, "from nan"), (np.inf, "to inf")])
def test_scores_in_place_of_weights_are_an_error(wrong, text):
    numbers = weights(T, S)
    numbers[1, 2] = wrong
    with pytest.raises(ValueError, match=rf"numbers from 0 to 1\. Received weights .*{text}.*not the scores"):
        plot_attention(numbers)


def test_missing_matplotlib_names_the_extra(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("keras_attention.visualization")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[plots\]'"):
        importlib.import_module("keras_attention.visualization")
