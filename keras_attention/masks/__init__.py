"""Masks as objects that combine by `&`, `|` and `~`: which query may attend to which key."""

from keras_attention.masks.causal import Causal
from keras_attention.masks.mask import Mask
from keras_attention.masks.padding import Padding
from keras_attention.masks.prefix import Prefix
from keras_attention.masks.raster import Raster
from keras_attention.masks.segments import Segments
from keras_attention.masks.window import Window

__all__ = ["Causal", "Mask", "Padding", "Prefix", "Raster", "Segments", "Window"]
