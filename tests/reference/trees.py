"""All dependency trees of a few words, one after the other, and what follows from their list, in float64."""

import itertools

import numpy as np


def trees(mask, single_root):
    """`(count, n, n)`: the arcs of every tree that `mask (n, n)` allows; a word that may have no head is not there."""
    n = len(mask)
    words = [t for t in range(n) if mask[t].any()]
    choices = itertools.product(*[[s for s in words if mask[t, s]] for t in words])
    found = []
    for heads in (dict(zip(words, choice, strict=True)) for choice in choices):
        roots = [t for t in words if heads[t] == t]
        if (len(roots) == 1 or not single_root or not words) and all(ends(heads, t) in roots for t in words):
            arcs = np.zeros((n, n))
            for t, s in heads.items():
                arcs[t, s] = 1.0
            found.append(arcs)
    return np.array(found).reshape(-1, n, n)


def ends(heads, word):
    """Where one arrives who follows the heads for long."""
    for _ in heads:
        word = heads[word]
    return word


def log_partition_and_probabilities(scores, mask, single_root):
    """`(log Z, trees (count, n, n), their probabilities (count,))`; log Z is 0 where there is no tree."""
    found = trees(mask, single_root)
    totals = (found * np.where(mask, scores, 0.0).astype("float64")).sum(axis=(-2, -1))
    if not len(found):
        return 0.0, found, totals
    log_partition = totals.max() + np.log(np.exp(totals - totals.max()).sum())
    return log_partition, found, np.exp(totals - log_partition)


def marginals(scores, mask, single_root):
    """`(..., n, n)`"""
    rows = []
    for each, allowed in zip(scores.reshape(-1, *scores.shape[-2:]), mask.reshape(-1, *mask.shape[-2:]), strict=True):
        _, found, probabilities = log_partition_and_probabilities(each, allowed, single_root)
        rows.append(np.einsum("k,kij->ij", probabilities, found))
    return np.reshape(rows, scores.shape)


# === Masks, each with its own kind of trees ===

n = 5


def of_words(*words):
    """Mask `(n, n)` of the arcs among these words."""
    is_there = np.isin(np.arange(n), words)
    return is_there[:, None] & is_there


def only_some():
    """Arcs of which there are trees, though with one root in word 3 only, on which nothing else hangs at first."""
    mask = np.zeros((n, n), bool)
    mask[[0, 0, 1, 2, 2, 3, 4], [1, 2, 2, 0, 3, 3, 1]] = True
    return mask


def one_arc(word, head):
    return np.outer(np.arange(n) == word, np.arange(n) == head)


MASKS = {
    "full": of_words(0, 1, 2, 3, 4),
    "right padding": of_words(0, 1, 2),
    "left padding": of_words(2, 3, 4),
    "gap": of_words(0, 2, 4),
    "single": of_words(3),
    "nothing": of_words(),
    "causal": np.tril(of_words(0, 1, 2, 3, 4)),
    "anti-causal": np.triu(of_words(0, 1, 2, 3, 4)),
    "keys only": np.array([[True, True, False, True, False]] * n),
    "queries only": np.array([[True, True, False, True, False]] * n).T,
    "some arcs": only_some(),
    "a circle": np.roll(np.eye(n, dtype=bool), 1, axis=1),
    "two roots": np.eye(n, dtype=bool) & of_words(1, 4),
    "a head that is not there": one_arc(2, 0) | one_arc(1, 1),
}
MASK = np.stack(list(MASKS.values()))


# === Values of another library ===

# torch-struct 0.5 (PyPI) on torch 2.13, in float32: `NonProjectiveDependencyCRF(SCORES.T, multiroot=...)`, whose first
# index is the head. single_root -> log of the partition function, marginals.
SCORES = [[0.5, 1.0, -0.3, 0.8], [1.5, -0.2, 2.0, 0.1], [0.3, -1.0, 0.7, 1.2], [-0.4, 0.6, 0.9, 0.2]]
OF_TORCH_STRUCT = {
    True: (
        7.026662,
        [
            [0.217315, 0.312949, 0.121625, 0.348107],
            [0.24981, 0.053716, 0.623901, 0.072571],
            [0.186858, 0.025966, 0.454081, 0.333092],
            [0.10388, 0.271104, 0.350123, 0.274888],
        ],
    ),
    False: (
        7.492179,
        [
            [0.377902, 0.251186, 0.095263, 0.275645],
            [0.25161, 0.106624, 0.57244, 0.069325],
            [0.146963, 0.021484, 0.554273, 0.277277],
            [0.087002, 0.229421, 0.298634, 0.384939],
        ],
    ),
}
