import pytest
from matplotlib import font_manager

from keras_attention.visualization.labels import drawable, fonts_for, token_label


@pytest.mark.parametrize(
    "token, label",
    [
        ("mars", "mars"),
        (" ", "␣"),
        ("a b", "a␣b"),
        ("", "''"),
        ("\n", "\\n"),
        ("\u200f", "\\u200f"),
        ("café".encode(), "café"),
        (b"\xff", "\ufffd"),
        (7, "7"),
        ("x" * 24, "x" * 24),
        ("x" * 25, "x" * 23 + "…"),
    ],
)
def test_every_token_becomes_visible(token, label):
    assert token_label(token) == label


def test_latin_needs_no_other_font():
    assert fonts_for(set("2015-mars")) == (["sans-serif"], set())


def test_characters_are_looked_for_in_all_fonts():
    script = "𝒜"  # in STIXGeneral, which comes with Matplotlib, not in DejaVu Sans
    families, missing = fonts_for({"a", script})
    assert missing == set()
    assert families[0] == "sans-serif"
    font = font_manager.get_font(font_manager.findfont(font_manager.FontProperties(family=families[-1:])))
    assert font.get_char_index(ord(script))


def test_characters_without_any_font_become_boxes():
    nowhere = "\U00012000"  # cuneiform
    if nowhere not in fonts_for({nowhere})[1]:
        pytest.skip("a font on this machine has cuneiform letters")
    assert drawable([f"a{nowhere}\n", "b"]) == (["a□\n", "b"], ["sans-serif"])
