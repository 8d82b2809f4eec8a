import datetime
import unicodedata

import pytest
import tensorflow_datasets as tfds
from babel.dates import parse_date

from keras_attention.data import LocalizedDates, LocalizedDatesConfig
from keras_attention.data.builders.localized_dates.date_writing import LOCALES, STYLES
from keras_attention.data.builders.localized_dates.localized_dates import dated_examples


def test_splits_have_the_sizes_of_the_configuration(tiny_dates):
    sizes = {split: len(examples) for split, examples in tiny_dates.items()}
    assert sizes == {"train": 400, "validation": 100, "test": 100}


def test_no_date_is_in_two_splits(tiny_dates):
    dates = {split: {example["date"] for example in examples} for split, examples in tiny_dates.items()}
    assert [len(dates[split]) for split in ("train", "validation", "test")] == [200, 50, 50]
    assert len(dates["train"] | dates["validation"] | dates["test"]) == 300


def test_every_split_has_most_locales_and_all_styles(tiny_dates):
    for examples in tiny_dates.values():
        assert len({example["locale"] for example in examples}) >= 10
        assert {example["style"] for example in examples} == set(STYLES)


def test_every_text_stands_for_one_date_and_occurs_once(tiny_dates):
    texts = [example["text"] for examples in tiny_dates.values() for example in examples]
    assert len(set(texts)) == len(texts)


def test_dates_are_iso_dates_of_the_years(tiny_dates):
    for examples in tiny_dates.values():
        for example in examples:
            assert datetime.date.fromisoformat(example["date"]).year in range(2014, 2017)
            assert len(example["date"]) == 10


def test_numbers_in_the_text_are_read_back_by_babel(tiny_dates):
    short = [example for example in tiny_dates["train"] if example["style"] == "short"]
    assert len(short) > 30
    for example in short:
        assert str(parse_date(example["text"], locale=example["locale"])) == example["date"]


def test_text_shows_the_day_and_the_year_of_its_date(tiny_dates):
    for example in tiny_dates["test"]:
        date = datetime.date.fromisoformat(example["date"])
        numbers = "".join(c if c.isdigit() else " " for c in example["text"]).split()
        assert date.day in map(int, numbers)
        assert date.year in map(int, numbers) or date.year - 2000 in map(int, numbers)


def test_texts_are_written_in_seven_scripts(tiny_dates):
    names = {unicodedata.name(c).split()[0] for example in tiny_dates["train"] for c in example["text"] if c.isalpha()}
    assert {"ARABIC", "CJK", "CYRILLIC", "DEVANAGARI", "GREEK", "HANGUL", "LATIN"} <= names


def test_examples_depend_on_the_seed_only():
    years = range(2014, 2017)
    examples = dated_examples(years, texts_per_date=2)
    assert examples == dated_examples(years, texts_per_date=2)
    assert examples != dated_examples(years, texts_per_date=2, seed=1)


def test_examples_are_those_of_every_other_machine():
    examples = dated_examples(range(2014, 2017), texts_per_date=2)
    assert [tuple(example.values()) for example in examples[0] + examples[-1]] == [
        ("07.02.15", "2015-02-07", "de", "short"),
        ("7 febbraio 2015", "2015-02-07", "it", "long"),
        ("jueves, 29 de octubre de 2015", "2015-10-29", "es", "full"),
        ("2015年10月29日", "2015-10-29", "zh", "long"),
    ]


def test_every_date_of_the_years_is_there_once():
    examples = dated_examples(range(2015, 2017), texts_per_date=1)
    assert len(examples) == 365 + 366
    assert len({example["date"] for (example,) in examples}) == 365 + 366


def test_a_date_is_not_written_twice_in_the_same_way():
    for examples in dated_examples(range(2015, 2016), texts_per_date=23):
        assert len({example["text"] for example in examples}) == 23


def test_all_texts_of_a_date_are_given_when_more_are_asked_for():
    examples = dated_examples(range(2015, 2016), texts_per_date=1000)
    assert {example["locale"] for example in examples[0]} <= set(LOCALES)
    assert all(30 < len(texts) < len(LOCALES) * len(STYLES) for texts in examples)


def test_default_configuration_holds_a_century():
    builder = tfds.builder("localized_dates")
    assert builder.builder_config.name == "century"
    assert (builder.builder_config.years[0], builder.builder_config.years[-1]) == (1969, 2068)


def test_supervised_pairs_are_text_and_date(tmp_path):
    pairs = tfds.load("localized_dates/tiny", split="test", as_supervised=True, data_dir=tmp_path)
    text, date = next(iter(pairs.as_numpy_iterator()))
    assert len(text) >= 6 and len(date) == 10


def test_more_dates_than_the_years_have_raise(tmp_path):
    one_year = range(2015, 2016)
    config = LocalizedDatesConfig(name="year", years=one_year, train_dates=300, validation_dates=60, test_dates=7)
    builder = LocalizedDates(config=config, data_dir=tmp_path)
    with pytest.raises(ValueError, match="Received 367 dates for the splits, and the years 2015 to 2015 have 365"):
        builder.download_and_prepare()
