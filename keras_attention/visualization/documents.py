"""Documents coloured by the attention weights of a hierarchical model.

Letters in shapes: L sentences (lines), W words of a sentence.
"""

import numpy as np
from matplotlib.patches import Rectangle

from keras_attention.checks.arguments import check_at_least
from keras_attention.visualization.figures import new_figure
from keras_attention.visualization.labels import drawable, token_label
from keras_attention.visualization.weights import check_weights

WORD, SENTENCE = "#E69F00", "#0072B2"  # orange and blue: different to every kind of eye
MARGIN = 0.15  # inches, around everything
BAR = 0.18  # width of the square that shows the weight of a sentence
SPACE = 0.07  # between two words
FONT_SIZE = 9


def plot_document(tokens, word_weights, sentence_weights, title=None, max_sentences=20, width=8.0):
    """A document with its words on orange and a blue bar beside each sentence, both the stronger the larger the weight.

        color of a word = √sentence_weights[l] · word_weights[l, w], the largest of the document being full
        color of a bar  = sentence_weights[l], likewise

    as Yang et al. draw it, so that the important words of important sentences stand out.

    Args:
        tokens: Words as strings or bytes, `(L, W)` with `""` at padding as a served model returns them, or a list of
            sentences of any lengths. Of documents with paragraphs, `(P, L, W)`, pass `(P·L, W)`, and as weight of a
            sentence its own times that of its paragraph.
        word_weights: Tensor or array of numbers from 0 to 1, `(L, W)` or larger: the rest belongs to padding.
        sentence_weights: Tensor or array of numbers from 0 to 1, `(L,)` or larger.
        title: String, such as the predicted and the true class.
        max_sentences: Integer or None. Of a longer document the sentences with the largest weights are shown, in their
            order, and "…" where others are left out.
        width: Float, inches. The height follows from the text.

    Returns:
        `matplotlib.figure.Figure`; `figure.savefig("document.png")` writes it, `figure.axes[0]` gives access to it.

    Raises:
        ValueError: Weights of other axes, fewer than tokens, or not from 0 to 1; `max_sentences` below 1.

    Example:
        >>> words = [["not", "bad", "."], ["i", "like", "it"]]
        >>> figure = plot_document(words, [[0.3, 0.6, 0.1], [0.1, 0.8, 0.1]], [0.4, 0.6], title="positive")
        >>> figure.savefig("document.png")

    References:
        Yang, Yang, Dyer, He, Smola and Hovy, 2016, section 3.6, https://aclanthology.org/N16-1174.
    """
    columns = [[column for column, token in enumerate(row) if token not in ("", b"")] for row in tokens]
    sentences = [[token_label(row[column]) for column in kept] for row, kept in zip(tokens, columns, strict=True)]
    shape = (len(sentences), max((kept[-1] + 1 for kept in columns if kept), default=0))
    word_weights = without_padding(checked_weights("word_weights", word_weights, shape), columns)
    sentence_weights = checked_weights("sentence_weights", sentence_weights, (len(sentences),))
    chosen = most_attended(sentences, sentence_weights, max_sentences)
    colors = np.sqrt(sentence_weights)[:, None] * word_weights  # (L, W)
    colors = colors / (colors.max(initial=0.0) or 1.0)
    bars = sentence_weights / (sentence_weights.max(initial=0.0) or 1.0)

    labels = sorted({label for row in chosen for label in sentences[row]} | {"…"})
    shown, fonts = drawable(labels)
    shown = dict(zip(labels, shown, strict=True))
    widths, line = measured(shown, fonts)
    placed, number_of_lines = wrapped(sentences, chosen, widths, width - 2 * MARGIN - 2 * BAR)

    figure = new_figure(width, number_of_lines * line + 2 * MARGIN + (0.3 if title else 0.0))
    axes = page(figure, width, number_of_lines * line, title)
    for row, column, left, at in placed:
        left, top = MARGIN + 2 * BAR + left, at * line
        if column is None:
            axes.text(left, top + line / 2, "…", va="center", fontsize=FONT_SIZE, fontfamily=fonts)
            continue
        label = sentences[row][column]
        if column == 0:
            axes.add_patch(patch(MARGIN, top, BAR, line, SENTENCE, bars[row]))
        axes.add_patch(patch(left - SPACE / 2, top, widths[label] + SPACE, line, WORD, colors[row, column]))
        text = shown[label]
        axes.text(left, top + line / 2, text, va="center", fontsize=FONT_SIZE, fontfamily=fonts, parse_math=False)
    return figure


def without_padding(weights, columns):
    """The weights `(L, W)` of these columns of each row, moved left: `[[.2, 0, .8]]`, `[[0, 2]]`  ->  `[[.2, .8, 0]]`"""
    moved = np.zeros_like(weights)
    for row, kept in enumerate(columns):
        moved[row, : len(kept)] = weights[row, kept]
    return moved


def most_attended(sentences, weights, count):
    """The sentences that have words and are attended to most, in their order: `[.2, .5, .3]`, 2  ->  `[1, 2]`"""
    if count is not None:
        check_at_least("max_sentences", count, 1)
    rows = [row for row in range(len(sentences)) if sentences[row]]
    return sorted(sorted(rows, key=lambda row: -weights[row])[:count])


def wrapped(sentences, chosen, widths, available):
    """Where each word begins, as `(row, column, left, line)`, and the number of lines; column None is an "…"."""
    placed, line, before = [], 0, -1
    for row in chosen:
        if any(sentences[before + 1 : row]):
            placed.append((row, None, 0.0, line))
            line += 1
        left = 0.0
        for column, label in enumerate(sentences[row]):
            if left > 0 and left + widths[label] > available:
                left, line = 0.0, line + 1
            placed.append((row, column, left, line))
            left += widths[label] + SPACE
        line, before = line + 1, row
    if any(sentences[before + 1 :]):
        placed.append((len(sentences), None, 0.0, line))
        line += 1
    return placed, line


def measured(shown, fonts):
    """The width of each label and the height of a line, in inches."""
    figure = new_figure(1, 1)
    text = figure.text(0, 0, "", fontsize=FONT_SIZE, fontfamily=fonts, parse_math=False)
    widths = {}
    for label, drawn in shown.items():
        text.set_text(drawn)
        widths[label] = text.get_window_extent().width / figure.dpi
    return widths, 1.7 * FONT_SIZE / 72


def page(figure, width, height, title):
    """Axes in inches from the upper left corner, without ticks."""
    axes = figure.add_subplot()
    axes.set_xlim(0, width)
    axes.set_ylim(max(height, 1e-3), 0)
    axes.set_axis_off()
    if title:
        (title,), fonts = drawable([title])
        axes.set_title(title, fontsize=10, fontfamily=fonts, loc="left", parse_math=False)
    return axes


def patch(left, top, width, height, color, alpha):
    gap = 0.08 * height
    return Rectangle((left, top + gap), width, height - 2 * gap, facecolor=color, alpha=float(alpha), linewidth=0)


def checked_weights(argument, weights, shape):
    """The weights of the tokens as a float64 array of the shape."""
    weights = np.asarray(weights, "float64")
    fits = weights.ndim == len(shape) and all(have >= need for have, need in zip(weights.shape, shape, strict=True))
    if not fits:
        raise ValueError(
            f"`{argument}` must have the shape {shape} of the tokens, or a larger one. Received shape {weights.shape}. Pass "
            "the tokens and the weights of one document."
        )
    weights = weights[tuple(map(slice, shape))]
    check_weights(argument, weights)
    return np.clip(weights, 0.0, 1.0)
