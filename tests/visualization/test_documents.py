import io

import numpy as np
import pytest
from keras import ops
from matplotlib.colors import same_color, to_rgb

from keras_attention.visualization import plot_document
from keras_attention.visualization.documents import SENTENCE, WORD

TOKENS = [["not", "bad", "."], [], ["fine"]]
WORD_WEIGHTS = np.array([[0.2, 0.7, 0.1], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
SENTENCE_WEIGHTS = np.array([0.36, 0.0, 0.64])


def drawn(*arguments, **options):
    """The axes after everything in them has been drawn once, warnings being errors."""
    figure = plot_document(*arguments, **options)
    figure.savefig(io.BytesIO(), format="png")
    (axes,) = figure.axes
    return axes


def words(axes):
    return [text.get_text() for text in axes.texts]


def strengths(axes, color):
    return [patch.get_alpha() for patch in axes.patches if same_color(to_rgb(patch.get_facecolor()), color)]


def test_words_stand_in_order_and_are_the_stronger_the_more_they_are_attended_to():
    axes = drawn(TOKENS, WORD_WEIGHTS, SENTENCE_WEIGHTS, title="positive")
    assert words(axes) == ["not", "bad", ".", "fine"]
    np.testing.assert_allclose(strengths(axes, WORD), np.array([0.6 * 0.2, 0.6 * 0.7, 0.6 * 0.1, 0.8]) / 0.8)
    np.testing.assert_allclose(strengths(axes, SENTENCE), [0.36 / 0.64, 1.0])
    assert axes.get_title("left") == "positive"


def test_padding_of_served_tokens_and_larger_weights_changes_nothing():
    tokens = np.array([[b"not", b"bad", b"."], [b"", b"", b""], [b"fine", b"", b""]], dtype=object)
    word_weights, sentence_weights = np.pad(WORD_WEIGHTS, ((0, 2), (0, 3))), np.pad(SENTENCE_WEIGHTS, (0, 2))
    padded = drawn(tokens, ops.array(word_weights, "float32"), ops.array(sentence_weights, "float32"))
    plain = drawn(TOKENS, WORD_WEIGHTS, SENTENCE_WEIGHTS)
    assert words(padded) == words(plain)
    np.testing.assert_allclose(strengths(padded, WORD), strengths(plain, WORD), rtol=1e-6)


def test_padding_before_and_between_words_is_left_out_with_its_weight():
    tokens = [["", "not", "", "bad", "."], [], ["", "fine"]]
    word_weights = np.array([[0.0, 0.2, 0.0, 0.7, 0.1], [0.0] * 5, [0.0, 1.0, 0.0, 0.0, 0.0]])
    gaps, plain = drawn(tokens, word_weights, SENTENCE_WEIGHTS), drawn(TOKENS, WORD_WEIGHTS, SENTENCE_WEIGHTS)
    assert words(gaps) == words(plain)
    np.testing.assert_allclose(strengths(gaps, WORD), strengths(plain, WORD))


def test_every_word_lies_on_its_own_patch_within_the_page():
    tokens = [["word" * (1 + number % 5) for number in range(53)], ["short"]]
    axes = drawn(tokens, np.full((2, 53), 1 / 53), [0.5, 0.5], width=5.0)
    patches = [patch for patch in axes.patches if same_color(to_rgb(patch.get_facecolor()), WORD)]
    assert len({patch.get_y() for patch in patches}) > 5
    inside = axes.transData.inverted()
    for text, patch in zip(axes.texts, patches, strict=True):
        box = text.get_window_extent().transformed(inside)
        assert patch.get_x() < box.x0 < box.x1 < patch.get_x() + patch.get_width() + 0.05 < 5.0
        assert patch.get_y() < text.get_position()[1] < patch.get_y() + patch.get_height()


def test_the_most_attended_sentences_of_a_long_document_are_shown_in_their_order():
    tokens = [[str(number)] for number in range(7)]
    weights = np.array([0.05, 0.3, 0.1, 0.25, 0.2, 0.05, 0.05])
    assert words(drawn(tokens, np.ones((7, 1)), weights, max_sentences=3)) == ["…", "1", "…", "3", "4", "…"]
    assert len(drawn(tokens, np.ones((7, 1)), weights, max_sentences=None).texts) == 7


def test_a_document_without_words_or_weights_is_drawn():
    assert words(drawn([], np.zeros((0, 0)), [], title="empty")) == []
    assert words(drawn([["", ""]], np.zeros((1, 2)), [0.0])) == []
    assert strengths(drawn([["a"]], [[0.0]], [0.0]), WORD) == [0.0]


def test_words_of_other_scripts_and_formulas_are_drawn_as_they_are():
    assert words(drawn([["$x^", "grün", b"\xff"]], [[0.2, 0.3, 0.5]], [1.0])) == ["$x^", "grün", "�"]


def test_weights_that_do_not_fit_the_tokens_raise():
    with pytest.raises(ValueError, match=r"`word_weights` must have the shape \(3, 3\) .* Received shape \(3, 2\)"):
        plot_document(TOKENS, WORD_WEIGHTS[:, :2], SENTENCE_WEIGHTS)
    with pytest.raises(ValueError, match=r"`sentence_weights` must have the shape \(3,\) .* Received shape \(2,\)"):
        plot_document(TOKENS, WORD_WEIGHTS, SENTENCE_WEIGHTS[:2])
    with pytest.raises(ValueError, match=r"`sentence_weights` must have .* Received shape \(1, 3\)"):
        plot_document(TOKENS, WORD_WEIGHTS, SENTENCE_WEIGHTS[None])


@pytest.mark.parametrize("value", [1.5, -0.2, np.nan])
def test_scores_instead_of_weights_raise(value):
    with pytest.raises(ValueError, match=r"`word_weights` must be numbers from 0 to 1\. Received weights from"):
        plot_document([["a"]], [[value]], [1.0])


def test_a_limit_below_one_raises():
    with pytest.raises(ValueError, match=r"Received max_sentences=0"):
        plot_document(TOKENS, WORD_WEIGHTS, SENTENCE_WEIGHTS, max_sentences=0)
