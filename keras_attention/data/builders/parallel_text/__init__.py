"""The data set `parallel_text`."""

from keras_attention.data.builders.parallel_text.parallel_text import ParallelText, load_parallel_text

__all__ = ["ParallelText", "load_parallel_text"]
