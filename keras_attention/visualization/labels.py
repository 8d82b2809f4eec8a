"""Tokens as readable labels: invisible characters get a sign, and every character finds a font."""

import contextlib

from matplotlib import font_manager, rcParams

MISSING = "□"  # a character that no installed font has
LONGEST = 24  # characters of a label


def token_label(token):
    """One token as a short string of printable characters.

    `"mars" -> "mars"`, `" " -> "␣"`, `"" -> "''"`, `"\\n" -> "\\\\n"`, `b"2015" -> "2015"`, `7 -> "7"`
    """
    text = token.decode(errors="replace") if isinstance(token, bytes) else str(token)
    if not text:
        return "''"
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text.replace(" ", "␣"))
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def drawable(texts):
    """The texts, and the font families that draw them.

    `["3", "年"]  ->  ["3", "年"], ["sans-serif", "Noto Sans CJK SC"]`

    Matplotlib's own fonts have no Chinese, Japanese, Korean or Indic letters. They are looked for in the fonts of the
    machine; what none of them has becomes `□`.
    """
    families, missing = fonts_for(set("".join(texts)) - {"\n"})
    return [text.translate({ord(character): MISSING for character in missing}) for text in texts], families


def fonts_for(characters):
    """The configured font families and as many others as the characters need, and the characters that none has."""
    families = list(rcParams["font.family"])
    missing = characters
    for family in families:
        missing = missing - covered(missing, font_manager.findfont(font_manager.FontProperties(family=[family])))
    for font in font_manager.fontManager.ttflist:
        if not missing:
            break
        # "Last Resort" fonts have a box with a code for every character.
        found = set() if font.name.startswith("Last Resort") else covered(missing, font.fname)
        if found:
            families.append(font.name)
            missing = missing - found
    return families, missing


def covered(characters, font_file):
    """The characters that the font can draw; the empty set for a font of bitmaps, or one that can't be read."""
    with contextlib.suppress(RuntimeError, OSError):
        font = font_manager.get_font(font_file)
        if font.scalable:
            return {character for character in characters if font.get_char_index(ord(character))}
    return set()
