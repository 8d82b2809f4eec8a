"""Models assembled from the layers; each is a functional `keras.Model`."""

from keras_attention.models.glimpse_classifier import GlimpseClassifier
from keras_attention.models.hierarchical_classifier import HierarchicalClassifier
from keras_attention.models.pointer_network import PointerNetwork
from keras_attention.models.transformer import Transformer

__all__ = ["GlimpseClassifier", "HierarchicalClassifier", "PointerNetwork", "Transformer"]
