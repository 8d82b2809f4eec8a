"""Masks as nested loops over a rule, with the last query in the slot of the last key."""

import numpy as np

SEGMENT_IDS = np.array([[1, 1, 2, 2, 2, 0, 0], [5, 3, 3, 0, 4, 4, 4]])
REAL = np.array([[True, True, True, False, True, False, False], [False, False, True, True, True, True, True]])
LENGTHS = np.array([2, 5])
WIDTH = 3  # of the image whose pixels the slots of a raster are


def by_loops(rule, T, S, B=2):
    """`mask[b, t, s] = rule(b, slot of the query, slot of the key)`, `(B, T, S)`."""
    mask = np.zeros((B, T, S), bool)
    for b, t, s in np.ndindex(B, T, S):
        mask[b, t, s] = rule(b, t + max(S - T, 0), s)
    return mask


def causal(b, t, s):
    return s <= t


def window(b, t, s):
    return t - 2 < s < t + 2


def padding(b, t, s):
    return REAL[b, s]


def prefix(b, t, s):
    return s < LENGTHS[b]


def segments(b, t, s):
    return SEGMENT_IDS[b, t] == SEGMENT_IDS[b, s] != 0


def raster(b, t, s):
    (y, x), (v, u) = divmod(t, WIDTH), divmod(s, WIDTH)
    return (v == y and x - 1 <= u <= x) or (v == y - 1 and x - 1 <= u <= x + 1)
