"""Dates written as the locales of the world write them: CLDR patterns through Babel, for many dates at once."""

import numpy as np

LOCALES = ("ar", "de", "el", "en_GB", "en_US", "es", "fr", "hi", "it", "ja", "ko", "nl", "pt", "ru", "zh")

# CLDR's four standard formats, then two of its skeletons: abbreviated with weekday, and numbers with the whole year.
STANDARD_STYLES = ("full", "long", "medium", "short")
SKELETONS = {"weekday": "yMMMEd", "numeric": "yMd"}
STYLES = (*STANDARD_STYLES, *SKELETONS)

# The part of a date that decides how a field of a pattern is written, by the field's letter.
FIELD_VALUES = {
    "y": lambda date: date.year,
    "M": lambda date: date.month,
    "d": lambda date: date.day,
    "E": lambda date: date.weekday(),
}


def date_pattern(locale, style):
    """`("fr", "full")`  ->  `"EEEE d MMMM y"`"""
    from babel import Locale
    from babel.dates import get_date_format

    if style in STANDARD_STYLES:
        return get_date_format(style, locale=locale).pattern
    return Locale.parse(locale).datetime_skeletons[SKELETONS[style]].pattern


def write_dates(dates, pattern, locale):
    """Write every date by one pattern, to the text `babel.dates.format_date` gives for each.

    `[2015-03-03, 2015-03-04]`, `"EEEE d MMMM y"`, `"fr"`  ->  `["mardi 3 mars 2015", "mercredi 4 mars 2015"]`

    Babel writes a field once for each of its values (12 months), not once for each date.

    Args:
        dates: List of `datetime.date`.
        pattern: CLDR date pattern of year, month, day and weekday.
        locale: Locale name as Babel spells it, such as `"pt"` or `"en_GB"`.

    Returns:
        NumPy object array with one string for each date.
    """
    from babel.dates import format_date, tokenize_pattern

    texts = np.full(len(dates), "", dtype=object)
    for kind, token in tokenize_pattern(pattern):
        if kind == "chars":
            texts = texts + token
        else:
            letter, count = token
            values = [FIELD_VALUES[letter](date) for date in dates]
            one_date_each = dict(zip(values, dates, strict=True))
            fields = {value: format_date(date, letter * count, locale=locale) for value, date in one_date_each.items()}
            texts = texts + np.array([fields[value] for value in values], dtype=object)
    return texts


def ambiguous_texts(writings):
    """Texts that stand for more than one date.

    `{("en_US", "short"): ["3/4/15", "4/3/15"], ("es", "short"): ["4/3/15", "3/4/15"], ("ja", "short"): ["2015/03/04",
    "2015/04/03"]}`  ->  `{"3/4/15", "4/3/15"}`

    Args:
        writings: Dictionary of sequences of equal length: date `i`, written in one way, is entry `i` of each.

    Returns:
        Set of strings.
    """
    first_date, ambiguous = {}, set()
    for texts in writings.values():
        for date, text in enumerate(texts):
            if first_date.setdefault(text, date) != date:
                ambiguous.add(text)
    return ambiguous
