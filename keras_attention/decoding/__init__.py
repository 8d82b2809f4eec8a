"""Searches for a sequence over a step function `(tokens, state) -> (logits, state)`, and constraints of pointers."""

from keras_attention.decoding.beam import BeamSearch, beam_search
from keras_attention.decoding.constraints import Constraint, Permutation, Polygon, Triangles
from keras_attention.decoding.greedy import greedy_search
from keras_attention.decoding.sample import Sample, sample

__all__ = [
    "BeamSearch",
    "Constraint",
    "Permutation",
    "Polygon",
    "Sample",
    "Triangles",
    "beam_search",
    "get",
    "greedy_search",
    "sample",
]

_SAMPLERS = {"greedy": lambda: greedy_search, "beam": BeamSearch, "sample": Sample}


def get(sampler):
    """The search that a name ("greedy", "beam", "sample") or a callable `(step, state, start, max_length, end)` stands for."""
    if isinstance(sampler, str) and sampler in _SAMPLERS:
        return _SAMPLERS[sampler]()
    if isinstance(sampler, type):
        raise TypeError(
            f"`sampler` must be an object, not a class. Received: {sampler!r}. Write `{sampler.__name__}()`."
        )
    if callable(sampler):
        return sampler
    known = ", ".join(f'"{name}"' for name in _SAMPLERS)
    raise ValueError(f"Unknown sampler: {sampler!r}. Known: {known}, or a callable such as `decoding.greedy_search`.")
