"""Names of version 0.1 of what stands in `keras_attention.training` now."""

import importlib


def __getattr__(name):
    new_names = {"Choices": "Recorder", "collect_choices": "Recorder", "record_choice": "record_choice"}
    if name not in new_names:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("keras_attention.training"), new_names[name])
