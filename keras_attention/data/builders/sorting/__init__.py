"""The data set `sorting`."""

from keras_attention.data.builders.sorting.ascending import ascending_orders
from keras_attention.data.builders.sorting.sorting import Sorting

__all__ = ["Sorting", "ascending_orders"]
