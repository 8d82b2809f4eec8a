"""Word alignments as arrays, the targets of guided alignment."""

import numpy as np

from keras_attention.checks.links import link_set


def alignment_array(links, source_length, target_length, normalize=False):
    """The links of a sentence pair as an array of zeros and ones.

    `{(0, 0), (2, 1), (1, 1)}`, 3, 2  ->  `[[1, 0, 0], [0, 1, 1]]`, and with `normalize=True`  `[[1, 0, 0], [0, 0.5, 0.5]]`

    `array[t, s] = 1 if (s, t) is a link, else 0`, and if normalised `array[t, s] / (its sum over s)`, so that each target
    word is spread evenly over its source words (Chen et al.). The row of a target word without links is zero.

    Between subwords, from links between words: `alignment_array(...)[target_words][:, source_words]`, where
    `target_words` and `source_words` have the word of each subword.

    Args:
        links: Iterable of pairs `(source, target)`, positions counted from 0.
        source_length: Integer S, the length of the source, with its padding if it is padded.
        target_length: Integer T, the length of the target, with its padding if it is padded.
        normalize: Boolean. True if each row that has a link is to sum to 1.

    Returns:
        NumPy float32 `(T, S)`.

    Raises:
        ValueError: If a link is not a pair of integers or lies outside the lengths.

    Example:
        >>> alignment_array({(0, 0), (2, 1), (1, 1)}, source_length=3, target_length=2).tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]

    References:
        Chen, Matusov, Khadivi and Peter, 2016, arXiv:1607.01628.
    """
    array = np.zeros((target_length, source_length), "float32")
    for source, target in link_set("links", links, (source_length, target_length)):
        array[target, source] = 1
    return array / np.maximum(array.sum(axis=1, keepdims=True), 1) if normalize else array
