"""A parallel text of a few hundred pairs, so that an example can run without data."""

import itertools


def write_small_text(folder):
    """A few hundred pairs such as "two dogs see a cat" and "zwei Hunde sehen eine Katze"."""
    subjects = {"a dog": "ein Hund", "a cat": "eine Katze", "a man": "ein Mann", "a woman": "eine Frau"}
    verbs = {"sees": "sieht", "looks for": "sucht", "knows": "kennt"}
    objects = {"a house": "ein Haus", "a horse": "ein Pferd", "a book": "ein Buch", "water": "Wasser"}
    ends = {".": ".", " today.": " heute.", " there.": " dort.", "!": "!"}
    pairs = [
        (f"{a.capitalize()} {b} {c}{d}", f"{a2[0].upper()}{a2[1:]} {b2} {c2}{d2}")
        for (a, a2), (b, b2), (c, c2), (d, d2) in itertools.product(
            *(each.items() for each in (subjects, verbs, objects, ends))
        )
    ]
    folder.mkdir(parents=True, exist_ok=True)
    for split, rows in {"train": pairs[:-20], "val": pairs[-20:-7], "test": pairs[-7:]}.items():
        for language, side in zip(("en", "de"), zip(*rows, strict=True), strict=True):
            (folder / f"{split}.{language}").write_text("".join(f"{line}\n" for line in side), encoding="utf-8")
    return folder
