"""Links between words from the weights of attention.

Letters in shapes: T target positions, S source positions.
"""

import numpy as np

from keras_attention.checks.links import link_set


def links_by_argmax(weights):
    """A link from each target position to the source position with the largest weight.

    `{(argmax over s of weights[t, s], t) for every t}`, the first s of equal ones. Rows of zeros, as of padding, get none.

    Args:
        weights: Array `(T, S)` of one sentence pair, such as `model.alignment(inputs)[0]`, or the mean over the heads of a
            layer. Weights of padding are zero or cut off.

    Returns:
        Set of links `(source, target)`, counted from 0.

    Raises:
        ValueError: If the weights have another rank or are not finite.

    Example:
        >>> sorted(links_by_argmax([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.0, 0.0, 0.0]]))
        [(0, 0), (2, 1)]
    """
    weights = weight_matrix(weights)
    return {(int(row.argmax()), target) for target, row in enumerate(weights) if row.any()}


def links_by_threshold(weights, threshold):
    """A link for each weight above a threshold, so that a word may have several links or none.

    `{(s, t) for every weights[t, s] > threshold}`

    Args:
        weights: Array `(T, S)` of one sentence pair.
        threshold: Number. With `1 / S` a link needs more weight than attention to all alike would give.

    Returns:
        Set of links `(source, target)`, counted from 0.

    Raises:
        ValueError: If the weights have another rank or are not finite.

    Example:
        >>> sorted(links_by_threshold([[0.7, 0.2, 0.1], [0.1, 0.4, 0.5]], threshold=0.3))
        [(0, 0), (1, 1), (2, 1)]
    """
    return {(source, target) for target, source in np.argwhere(weight_matrix(weights) > threshold).tolist()}


def links_of_words(links, source_words, target_words):
    """Links between words from links between their subwords.

    `{(source_words[s], target_words[t]) for every link (s, t)}`: two words are linked if any of their subwords are.

    Args:
        links: Iterable of links `(source, target)` between subwords.
        source_words: List of S integers, the word of each source subword, and -1 for symbols outside words, such as the end
            symbol; their links are left out.
        target_words: List of T integers, the same for the target.

    Returns:
        Set of links `(source, target)` between words.

    Raises:
        ValueError: If a link is not a pair of positions within the two lists.

    Example:
        >>> sorted(links_of_words({(0, 0), (1, 0), (2, 1), (3, 2)}, source_words=[0, 0, 1, -1], target_words=[0, 1, -1]))
        [(0, 0), (1, 1)]
    """
    pairs = link_set("links", links, (len(source_words), len(target_words)))
    words = {(int(source_words[source]), int(target_words[target])) for source, target in pairs}
    return {link for link in words if min(link) >= 0}


def weight_matrix(weights):
    """The weights as an array, after checking them."""
    weights = np.asarray(weights)
    if weights.ndim != 2 or not np.isfinite(weights).all():
        wrong = f" with {weights[~np.isfinite(weights)][0]}" if weights.ndim == 2 else ""
        raise ValueError(
            f"`weights` must be finite and have shape (T, S). Received shape {weights.shape}{wrong}. Pass one sentence pair, "
            "and one head or the mean over heads."
        )
    return weights
