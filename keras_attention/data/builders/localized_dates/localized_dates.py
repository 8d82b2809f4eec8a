"""TFDS builder of `localized_dates`: a date as people write it, and the same date in ISO 8601."""

import dataclasses
import datetime
import random

import tensorflow_datasets as tfds

from keras_attention.data.builders.localized_dates.date_writing import (
    LOCALES,
    STYLES,
    ambiguous_texts,
    date_pattern,
    write_dates,
)
from keras_attention.data.builders.prepared_once import PreparedOnce

DESCRIPTION = """\
Dates of the Gregorian calendar as 15 locales in 7 scripts write them, each with the same date in ISO 8601:
"mardi 3 mars 2015", "3/3/15" and "2015年3月3日" all stand for 2015-03-03. The texts are those of the Unicode CLDR,
unchanged (with its no-break spaces and direction marks), in six styles: full, long, medium, short, weekday (skeleton
yMMMEd) and numeric (skeleton yMd).

The dates are those of 1969 to 2068, the hundred years in which a year of two digits has exactly one meaning (POSIX
strptime reads 69 as 1969 and 68 as 2068). A text that two dates of these years share in any locale and style, such as
"3/4/15", is left out. So every text has one reading, and no text occurs twice.

Each date is in one split only, written in two different ways. The choice depends on nothing but the configuration and
the CLDR data of the installed Babel.
"""

CITATION = """\
@misc{cldr,
  title = {Unicode Common Locale Data Repository},
  author = {{Unicode Consortium}},
  url = {https://cldr.unicode.org}
}
"""

LICENSE = "Generated with Babel (BSD-3-Clause) from the CLDR (Unicode License v3, https://www.unicode.org/license.txt)."


@dataclasses.dataclass(eq=False, kw_only=True)
class LocalizedDatesConfig(tfds.core.BuilderConfig):
    """Years, number of dates in each split and number of texts of each date."""

    years: range = range(1969, 2069)
    train_dates: int = 30_000
    validation_dates: int = 1_000
    test_dates: int = 2_000
    texts_per_date: int = 2


class LocalizedDates(PreparedOnce):
    """`{"text": "mardi 3 mars 2015", "date": "2015-03-03", "locale": "fr", "style": "full"}`

    `tfds.load("localized_dates", as_supervised=True)` gives the pairs `(text, date)`. `"localized_dates/tiny"` is a
    sample of three years for tests.
    """

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "First release."}  # noqa: RUF012 (a name TFDS reads)
    BUILDER_CONFIGS = [  # noqa: RUF012 (a name TFDS reads)
        LocalizedDatesConfig(name="century", description="66,000 texts of 33,000 dates from 1969 to 2068."),
        LocalizedDatesConfig(
            name="tiny",
            description="600 texts of 300 dates from 2014 to 2016.",
            years=range(2014, 2017),
            train_dates=200,
            validation_dates=50,
            test_dates=50,
        ),
    ]

    def _info(self):
        return tfds.core.DatasetInfo(
            builder=self,
            description=DESCRIPTION,
            features=tfds.features.FeaturesDict(
                {
                    "text": tfds.features.Text(doc="The date as the locale writes it in this style."),
                    "date": tfds.features.Text(doc="The date as YYYY-MM-DD."),
                    "locale": tfds.features.Text(doc="The locale as Babel names it, such as `fr` or `en_GB`."),
                    "style": tfds.features.Text(doc="full, long, medium, short, weekday or numeric."),
                }
            ),
            supervised_keys=("text", "date"),
            homepage="https://cldr.unicode.org",
            citation=CITATION,
            license=LICENSE,
        )

    def _split_generators(self, dl_manager):
        config = self.builder_config
        examples = dated_examples(config.years, config.texts_per_date)
        train_end = config.train_dates
        validation_end = train_end + config.validation_dates
        test_end = validation_end + config.test_dates
        if test_end > len(examples):
            raise ValueError(
                f"The splits must fit into the years. Received {test_end} dates for the splits, and the years "
                f"{config.years[0]} to {config.years[-1]} have {len(examples)}. Ask for fewer dates or give more years."
            )
        return {
            "train": self._generate_examples(examples[:train_end]),
            "validation": self._generate_examples(examples[train_end:validation_end]),
            "test": self._generate_examples(examples[validation_end:test_end]),
        }

    def _generate_examples(self, examples):
        for examples_of_date in examples:
            for example in examples_of_date:
                yield f"{example['date']} {example['locale']} {example['style']}", example


def dated_examples(years, texts_per_date, seed=0):
    """Every date of the years in random order, in some of its unambiguous writings.

    `range(2015, 2016)`, 2  ->  `[[{"text": "mardi 3 mars 2015", "date": "2015-03-03", "locale": "fr", "style": "full"},
    {"text": "03.03.2015", "date": "2015-03-03", "locale": "ru", "style": "short"}], ...]`, 365 lists
    """
    first, end = datetime.date(years[0], 1, 1), datetime.date(years[-1] + 1, 1, 1)
    dates = [first + datetime.timedelta(days) for days in range((end - first).days)]
    ways = [(locale, style) for locale in LOCALES for style in STYLES]
    writings = {(locale, style): write_dates(dates, date_pattern(locale, style), locale) for locale, style in ways}
    ambiguous = ambiguous_texts(writings)

    # `random()` is the one method whose numbers no version of Python may change: sorting by it shuffles.
    generator = random.Random(seed)
    examples = []
    for index in sorted(range(len(dates)), key=lambda _: generator.random()):
        chosen, candidates = {}, list(ways)
        while candidates and len(chosen) < texts_per_date:
            locale, style = candidates.pop(int(generator.random() * len(candidates)))
            text = writings[locale, style][index]
            if text not in ambiguous:
                chosen.setdefault(text, {"text": text, "date": str(dates[index]), "locale": locale, "style": style})
        examples.append(list(chosen.values()))
    return examples
