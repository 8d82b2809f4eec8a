"""Searches for the most probable sequence, over a step function `(tokens, state) -> (logits, state)`."""

from keras_attention.decoding.greedy import greedy_search

__all__ = ["get", "greedy_search"]

_NAMES = {"greedy": greedy_search}


def get(sampler):
    """The search that a name ("greedy") or a callable `(step, state, start, max_length)` stands for."""
    if callable(sampler):
        return sampler
    if sampler in _NAMES:
        return _NAMES[sampler]
    known = ", ".join(f'"{name}"' for name in sorted(_NAMES))
    raise ValueError(f"Unknown sampler: {sampler!r}. Known: {known}, or a callable as `decoding.greedy_search` is one.")
