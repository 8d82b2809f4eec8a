import datetime
import time

import pytest
from babel.dates import format_date, format_skeleton

from keras_attention.data import LocalizedDates
from keras_attention.data.builders.localized_dates.date_writing import (
    LOCALES,
    SKELETONS,
    STANDARD_STYLES,
    STYLES,
    ambiguous_texts,
    date_pattern,
    write_dates,
)

DATES = [datetime.date(1969, 1, 31) + datetime.timedelta(days) for days in range(0, 36_000, 1201)]


@pytest.mark.parametrize(
    ("locale", "style", "text"),
    [
        ("fr", "full", "mardi 3 mars 2015"),
        ("ja", "long", "2015年3月3日"),
        ("zh", "full", "2015年3月3日星期二"),
        ("en_US", "full", "Tuesday, March 3, 2015"),
        ("en_US", "short", "3/3/15"),
        ("en_GB", "short", "03/03/2015"),
        ("de", "long", "3. März 2015"),
        ("es", "long", "3 de marzo de 2015"),
        ("el", "full", "Τρίτη 3 Μαρτίου 2015"),
        ("ko", "full", "2015년 3월 3일 화요일"),
        ("hi", "full", "मंगलवार, 3 मार्च 2015"),
        ("nl", "weekday", "di 3 mrt 2015"),
        ("pt", "numeric", "03/03/2015"),
    ],
)
def test_third_of_march_2015_is_written_as_people_write_it(locale, style, text):
    assert list(write_dates([datetime.date(2015, 3, 3)], date_pattern(locale, style), locale)) == [text]


@pytest.mark.parametrize("locale", LOCALES)
def test_many_dates_at_once_equal_babel_one_by_one(locale):
    for style in STYLES:
        written = write_dates(DATES, date_pattern(locale, style), locale)
        if style in STANDARD_STYLES:
            expected = [format_date(date, style, locale=locale) for date in DATES]
        else:
            expected = [format_skeleton(SKELETONS[style], date, locale=locale) for date in DATES]
        assert list(written) == expected


def test_no_dates_give_no_texts():
    assert list(write_dates([], "d MMMM y", "fr")) == []


def test_text_of_two_dates_is_ambiguous_across_locales():
    dates = [datetime.date(2015, 3, 4), datetime.date(2015, 4, 3), datetime.date(2015, 3, 3)]
    writings = {locale: write_dates(dates, date_pattern(locale, "short"), locale) for locale in ("en_US", "es", "ja")}
    assert ambiguous_texts(writings) == {"3/4/15", "4/3/15"}


def test_text_of_two_dates_is_ambiguous_within_a_locale():
    dates = [datetime.date(1915, 3, 25), datetime.date(2015, 3, 25)]
    assert ambiguous_texts({"en_US": write_dates(dates, date_pattern("en_US", "short"), "en_US")}) == {"3/25/15"}


def test_one_date_written_alike_in_two_locales_is_not_ambiguous():
    dates = [datetime.date(2015, 3, 25)]
    writings = {locale: write_dates(dates, date_pattern(locale, "short"), locale) for locale in ("fr", "en_GB")}
    assert writings["fr"] == writings["en_GB"] == ["25/03/2015"]
    assert ambiguous_texts(writings) == set()


def test_two_digit_years_mean_what_posix_says():
    years = LocalizedDates.BUILDER_CONFIGS[0].years
    assert [time.strptime(f"{year % 100:02}", "%y").tm_year for year in years] == list(years)
