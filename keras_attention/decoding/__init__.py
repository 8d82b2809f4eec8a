"""Searches for the most probable sequence, over a step function `(tokens, state) -> (logits, state)`."""

from keras_attention.decoding.greedy import greedy_search

__all__ = ["greedy_search"]
