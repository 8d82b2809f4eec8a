"""Word alignments in the Pharaoh format: a line for each sentence pair, a field `source-target` for each link.

`0-0 1-2 2-1`: the first source word is linked to the first target word, the second to the third, and so on. Moses, fast_align,
eflomal and awesome-align write it. Alignments made by people mark links that are possible, but not sure, by `p` or `?` in
place of the hyphen.

Letters in shapes: S source words, T target words; N sentence pairs.
"""

import pathlib
import re

from keras_attention.checks.arguments import check_at_least
from keras_attention.checks.links import check_within, integer_pair, link_set
from keras_attention.checks.messages import naming, shortened
from keras_attention.data.files.lines import compressed, read_lines
from keras_attention.files import whole_file

LINK = re.compile("([0-9]{1,9})([-p?])([0-9]{1,9})")


def read_word_alignments(path, lengths=None, first=0):
    """The links of each sentence pair, from a file that an aligner wrote.

    The lines `"0-0 1-2 2-1"`, `""`  ->  `[{(0, 0), (1, 2), (2, 1)}, set()]`

    Args:
        path: Path of the file; one whose name ends with `.gz` is decompressed. An empty line is a pair without links.
        lengths: Iterable of N pairs `(S, T)`, the numbers of source and target words of each sentence pair, by which lines
            and links are checked: `[(len(source.split()), len(target.split())) for source, target in pairs]`. None checks
            neither.
        first: Integer, the number of the first word in the file: 0, or 1 as in many alignments made by people.

    Returns:
        List of N sets of links `(source, target)`, the positions of two words counted from 0.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A field is no link, or a link that is not sure, which `read_gold_alignments` reads; a link lies outside
            its sentence pair; the file has fewer or more lines than there are pairs; or it is not UTF-8 or a damaged gzip
            file. The message has the file and the line.

    References:
        Koehn, 2004, "Pharaoh: a beam search decoder for phrase-based statistical machine translation models".
    """
    alignments = []
    for number, (sure, possible) in enumerate(read_links(path, lengths, first), start=1):
        if possible:
            raise ValueError(
                f"{path}, line {number}: the links must be sure, `source-target`. Received the possible link "
                f"{min(possible)}. Read sure and possible links with `read_gold_alignments`."
            )
        alignments.append(sure)
    return alignments


def read_gold_alignments(path, lengths=None, first=0):
    """The sure and the possible links of each sentence pair, from alignments made by people.

    The lines `"1-1 2p3"`, `"1-2"`, with `first=1`  ->  `[{(0, 0)}, {(0, 1)}]`, `[{(0, 0), (1, 2)}, {(0, 1)}]`

    A sure link is `1-1`; a possible link is `2p3`, or `2?3` in older files. Each sure link is possible, too.

    Args:
        path: As in `read_word_alignments`.
        lengths: As in `read_word_alignments`.
        first: As in `read_word_alignments`. A file that counts from 1 and is read with 0 does not raise, unless `lengths`
            shows it.

    Returns:
        Two lists of N sets of links `(source, target)`, counted from 0: the sure ones, and the possible ones with the sure
        ones among them, as `keras_attention.evaluation.evaluate_word_alignments` takes them.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: As in `read_word_alignments`, except that possible links are read.

    References:
        Och and Ney, 2003, "A systematic comparison of various statistical alignment models", section 5.
    """
    pairs = list(read_links(path, lengths, first))
    return [sure for sure, _ in pairs], [sure | possible for sure, possible in pairs]


def write_word_alignments(path, alignments, possible=None):
    """Write links into a file that `read_word_alignments` reads, whole or not at all.

    `[{(1, 2), (0, 0)}, set()]`  ->  the lines `"0-0 1-2"`, `""`

    Args:
        path: Path of the file; one whose name ends with `.gz` is compressed. A file that is there is replaced when the
            new one is whole. Missing folders are made.
        alignments: Iterable of N sets of links `(source, target)`, counted from 0, the sure links if there are others.
        possible: Iterable of N sets of possible links, with the sure ones among them or without, or None. Those that are
            not sure are written as `1p2`; `read_gold_alignments` reads such a file.

    Raises:
        ValueError: A link is not a pair of integers of 0 or more, or the numbers of sets differ; the message has the number
            of the sentence pair, counted from 0.
    """
    alignments = list(alignments)
    possible = [()] * len(alignments) if possible is None else list(possible)
    if len(possible) != len(alignments):
        raise ValueError(
            f"There must be a set of possible links for each pair. Received {len(alignments)} sets of sure and "
            f"{len(possible)} of possible links. Pass an empty set for a pair without them."
        )
    with whole_file(path) as partial, partial.open("wb") as plain, compressed(plain, partial.suffix == ".gz") as file:
        for number, (sure, others) in enumerate(zip(alignments, possible, strict=True)):
            with naming(f"Sentence pair {number}"):
                file.write(line_of(link_set("alignments", sure), link_set("possible", others)).encode())


def read_links(path, lengths, first):
    """The sure and the other links of each line: `"1-1 2p3"`, first=1  ->  `({(0, 0)}, {(1, 2)})`"""
    path, first = pathlib.Path(path), check_at_least("first", first, 0)
    lines = list(read_lines(path))
    lengths = [None] * len(lines) if lengths is None else [integer_pair("lengths", pair) for pair in lengths]
    if len(lines) != len(lengths):
        raise ValueError(
            f"{path} must have a line for each sentence pair. Received {len(lines)} lines and {len(lengths)} lengths: line "
            f"{min(len(lines), len(lengths)) + 1} is the first without partner. A pair without links has an empty line."
        )
    for number, (line, pair) in enumerate(zip(lines, lengths, strict=True), start=1):
        with naming(f"{path}, line {number}"):
            yield parse(line.split(), pair, first)


def parse(fields, lengths, first):
    """`["1-1", "2p3"]`, (2, 3), 1  ->  `({(0, 0)}, {(1, 2)})`"""
    sure, possible = set(), set()
    for field in fields:
        match = LINK.fullmatch(field)
        if match is None:
            raise ValueError(
                "a link must be written as `source-target`, two positions of words, or as `source p target` without the "
                f'spaces if it is possible only. Received "{shortened(field)}". Write for example 0-2.'
            )
        link = int(match[1]) - first, int(match[3]) - first
        if min(link) < 0:
            raise ValueError(
                f'words must be counted from {first} on. Received the link "{field}". Pass `first=0` for this file.'
            )
        check_within("links", link, lengths)
        (sure if match[2] == "-" else possible).add(link)
    return sure, possible


def line_of(sure, possible):
    """`{(0, 0)}`, `{(0, 0), (1, 2)}`  ->  `"0-0 1p2\\n"`"""
    links = sorted(sure | possible)
    return " ".join(f"{link[0]}{'-' if link in sure else 'p'}{link[1]}" for link in links) + "\n"
