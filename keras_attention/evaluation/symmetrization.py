"""One word alignment from two, made in the two directions of translation.

An aligner that asks for the source word of each target word links no target word twice, and misses that one word may stand
for several; the opposite direction misses the opposite. Together they find both.
"""

from keras_attention.checks.arguments import check_same_number
from keras_attention.checks.links import link_set
from keras_attention.checks.messages import naming

# Steps `(source, target)` to the neighbours of a link, in the order of Moses: first the sides, then the corners.
NEIGHBOURS = [(0, -1), (-1, 0), (0, 1), (1, 0), (-1, -1), (1, -1), (-1, 1), (1, 1)]


def symmetrize(forward, backward, method="grow-diag-final-and"):
    """One word alignment for each sentence pair from those of two directions.

    - "intersection": the links of both. Few and precise.
    - "union": the links of either. Many.
    - "grow-diag-final-and": between them, see `grow_diag_final_and`.

    Args:
        forward: Iterable of N sets of links `(source, target)`, for each target word its source word, as a model that
            translates the source has them. `keras_attention.data.read_word_alignments` reads them.
        backward: Iterable of N sets of links for each source word, from the model of the other direction. They are
            `(source, target)`, too: turn those of a model whose source is your target round.
        method: "intersection", "union" or "grow-diag-final-and".

    Returns:
        List of N sets of links `(source, target)`.

    Raises:
        ValueError: If the method is unknown, there is no sentence pair, the numbers of sets differ, or a link is not a pair
            of positions.

    Example:
        >>> symmetrize([{(0, 0), (0, 1)}], [{(0, 0), (1, 1)}], method="intersection")
        [{(0, 0)}]

    References:
        Och and Ney, 2003, "A systematic comparison of various statistical alignment models", section 4.
    """
    if method not in METHODS:
        raise ValueError(f"`method` must be one of {', '.join(map(repr, METHODS))}. Received: {method!r}.")
    forward, backward = list(forward), list(backward)
    check_same_number("Pass an empty set for a pair without links.", forward=forward, backward=backward)
    alignments = []
    for number, sets in enumerate(zip(forward, backward, strict=True)):
        with naming(f"Sentence pair {number}"):
            alignments.append(METHODS[method](*map(link_set, ("forward", "backward"), sets)))
    return alignments


def grow_diag_final_and(forward, backward):
    """The links of both directions and those of either that extend them, for one sentence pair.

    1. The links of both directions are taken.
    2. "grow-diag": a link of either direction at a side or a corner of a taken link is taken if its source word or its target
       word has no link yet. This is repeated until no such link is left.
    3. "final-and": a link of `forward`, then of `backward`, is taken if its source word and its target word have no link yet.

    The result depends on the order. It is that of Moses (`symal -alignment=grow -diagonal=yes -final=yes -both=yes`): by
    target word, then by source word, sides before corners, and a taken link counts at once.

    Args:
        forward: Set of links `(source, target)`, for each target word its source word.
        backward: Set of links `(source, target)`, for each source word its target word.

    Returns:
        Set of links `(source, target)`.

    Example:
        >>> forward, backward = {(0, 0), (0, 1), (4, 3)}, {(0, 0), (2, 3), (6, 1)}
        >>> sorted(grow_diag_final_and(forward, backward))
        [(0, 0), (0, 1), (4, 3)]

    References:
        Koehn, Och and Marcu, 2003, "Statistical phrase-based translation".
        Koehn et al., 2005, "Edinburgh system description for the 2005 IWSLT speech translation evaluation".
    """
    either, links = forward | backward, forward & backward
    sources, targets = ({link[side] for link in links} for side in (0, 1))

    def take(link):
        links.add(link)
        sources.add(link[0])
        targets.add(link[1])

    count = -1
    while count < len(links):
        count = len(links)
        for source, target in by_target(either):
            if (source, target) in links:
                for step in NEIGHBOURS:
                    near = source + step[0], target + step[1]
                    if near in either and not (near[0] in sources and near[1] in targets):
                        take(near)
    for source, target in [*by_target(forward), *by_target(backward)]:
        if source not in sources and target not in targets:
            take((source, target))
    return links


def by_target(links):
    """`{(2, 0), (0, 1), (1, 0)}`  ->  `[(1, 0), (2, 0), (0, 1)]`"""
    return sorted(links, key=lambda link: (link[1], link[0]))


METHODS = {
    "intersection": set.intersection,
    "union": set.union,
    "grow-diag-final-and": grow_diag_final_and,
}
