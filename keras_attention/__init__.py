"""Attention for Keras 3: scores and alignments that combine freely, layers, and the models built from them.

    query, key ──score──▶ scores ──alignment──▶ weights ──combine with value──▶ context

Importing the package registers every class for saving and loading. `keras_attention.data`, `keras_attention.serving` and
`keras_attention.visualization`, which need heavier libraries, are loaded when they are first touched.
"""

import importlib

from keras_attention import backends  # noqa: F401 (checks the backend before anything imports Keras)

# isort: split
from keras_attention import alignments, decoding, evaluation, layers, masks, models, positions, scores, tokens, training

_LAZY = ("data", "serving", "visualization")

__all__ = [
    "__version__",
    "alignments",
    "data",
    "decoding",
    "evaluation",
    "layers",
    "masks",
    "models",
    "positions",
    "scores",
    "serving",
    "tokens",
    "training",
    "visualization",
]


def __getattr__(name):
    if name == "__version__":
        from importlib.metadata import version

        return version("keras-attention-layers")
    if name in _LAZY:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_LAZY, "__version__"})
