"""The data set `localized_dates`."""

from keras_attention.data.builders.localized_dates.localized_dates import LocalizedDates, LocalizedDatesConfig

__all__ = ["LocalizedDates", "LocalizedDatesConfig"]
