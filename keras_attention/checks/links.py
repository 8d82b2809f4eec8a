"""Checks of word alignments: sets of links `(source, target)`, the positions of two words counted from 0."""

from keras_attention.checks.arguments import is_integer
from keras_attention.checks.messages import shortened


def link_set(name, links, lengths=None):
    """The links of a sentence pair as a set of pairs of `int`, after checking them.

    `[(0, 0), [2, 1]]`  ->  `{(0, 0), (2, 1)}`

    Args:
        name: String, by which the message calls the links.
        links: Iterable of pairs `(source, target)`.
        lengths: Numbers of words `(S, T)` of source and target, or None where they are unknown.
    """
    found = {integer_pair(name, link) for link in links}
    for link in found:
        if min(link) < 0:
            raise ValueError(
                f"`{name}` must be positions from 0 on. Received the link {link}. Count words from 0, and leave out words "
                "without a partner."
            )
        check_within(name, link, lengths)
    return found


def integer_pair(name, link):
    """`[2, 1]`  ->  `(2, 1)`"""
    pair = tuple(link) if hasattr(link, "__iter__") else (link,)
    if len(pair) != 2 or not all(map(is_integer, pair)):
        raise ValueError(
            f"`{name}` must be pairs of integers, source before target. Received {shortened(repr(link))}. Pass pairs such as "
            "(2, 1)."
        )
    return int(pair[0]), int(pair[1])


def check_within(name, link, lengths):
    """Raises where a link lies outside a pair of `(S, T)` words. Where `lengths` is None every link passes."""
    if lengths is not None and (link[0] >= lengths[0] or link[1] >= lengths[1]):
        raise ValueError(
            f"`{name}` must lie within the sentence pair, of {lengths[0]} source and {lengths[1]} target words. Received the "
            f"link {link}, source before target and counted from 0. Pass the lengths in the units that were aligned, words "
            "or subwords, and links of the same direction."
        )
