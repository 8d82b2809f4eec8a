"""The data set `translated_digits`."""

from keras_attention.data.builders.translated_digits.digits import load_digits
from keras_attention.data.builders.translated_digits.translated_digits import TranslatedDigits

__all__ = ["TranslatedDigits", "load_digits"]
