"""Data on TensorFlow: tokenisers, batches of pairs, and data sets that register with TensorFlow Datasets on import."""

from keras_attention.data.builders.localized_dates import LocalizedDates, LocalizedDatesConfig
from keras_attention.data.builders.parallel_text import ParallelText, load_parallel_text
from keras_attention.data.pairs import evaluation_batches, training_batches
from keras_attention.data.subwords import SubwordTokenizer
from keras_attention.data.text import CharacterTokenizer, Tokenizer

__all__ = [
    "CharacterTokenizer",
    "LocalizedDates",
    "LocalizedDatesConfig",
    "ParallelText",
    "SubwordTokenizer",
    "Tokenizer",
    "evaluation_batches",
    "load_parallel_text",
    "training_batches",
]
