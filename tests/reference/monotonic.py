"""Monotonic alignment from its story: one query after the other walks along the source until it stops."""

import itertools
import math

import numpy as np


def walks(T, S):
    """Every way to give each of T queries one of S positions, or None: the possible walks and the impossible ones."""
    return list(itertools.product((None, *range(S)), repeat=T))


def selection(walk, S):
    """`(T, S)`: one-hot rows, zeros for None."""
    return np.array([[float(s == position) for s in range(S)] for position in walk])


def probability(walk, stopping, mask):
    """Probability of one walk.

    Args:
        walk: For each query the position where it stopped, or None.
        stopping: `(T, S)`, probability of stopping at a position when coming by.
        mask: `(T, S)`, True = may be attended.
    """
    result, position, is_over = 1.0, 0, False
    for stop, row, allowed in zip(walk, stopping, mask, strict=True):
        if is_over or not allowed.any():
            result *= stop is None
        else:
            is_over = stop is None
            if not is_over and stop < position:
                return 0.0
            while position < (len(row) if is_over else stop):
                result *= 1 - row[position] * allowed[position]
                position += 1
            if not is_over:
                result *= row[stop] * allowed[stop]
    return result


def expectation(stopping):
    """Weights `(T, S)` by the recurrence of the paper, one position after the other, in float64; no mask."""
    T, S = stopping.shape
    weights, previous = np.zeros((T, S)), np.eye(1, S)[0]
    for t in range(T):
        reached = 0.0
        for s in range(S):
            reached = (reached * (1 - stopping[t, s - 1]) if s else 0.0) + previous[s]
            weights[t, s] = stopping[t, s] * reached
        previous = weights[t]
    return weights


def hard(stops):
    """Weights `(T, S)` of the paper's algorithm 1: `stops (T, S)` is True where a query that comes by stops."""
    T, S = stops.shape
    weights, position = np.zeros((T, S)), 0
    for t in range(T):
        while position < S and not stops[t, position]:
            position += 1
        if position < S:
            weights[t, position] = 1.0
    return weights


def sigmoid(number):
    return 1 / (1 + math.exp(-number))
