"""Pairs of lines: from two files, or from one whose lines have a tab between source and target."""

import hashlib

from keras_attention.checks.messages import shortened
from keras_attention.data.files.lines import read_lines


def read_pairs(paths):
    """The pairs of a split: `(train.en, train.de)` or `(train.tsv,)`  ->  `("A dog runs.", "Ein Hund rennt.")`, ...

    Text after a second tab, such as the source of a sentence in the files of Tatoeba and Anki, is left out. An empty
    line is a pair of empty texts.
    """
    if len(paths) == 2:
        yield from zip(*map(read_lines, paths), strict=True)
        return
    for number, line in enumerate(read_lines(paths[0]), start=1):
        fields = line.split("\t") if line else ["", ""]
        if len(fields) not in (2, 3):
            raise ValueError(
                f"{paths[0]}, line {number}: there must be a tab between source and target, and at most one more before a "
                f"remark. Received {len(fields) - 1} tabs in {shortened(repr(line))}. Write `source<tab>target`."
            )
        yield fields[0], fields[1]


def fingerprint(files):
    """Read every file once, check that the two files of a split fit together, and name their content.

    `{"train": (train.en, train.de)}`  ->  `"a3c1..."`

    Args:
        files: Dictionary from the name of a split to its paths, `(source, target)` or `(both,)`.

    Returns:
        String of 64 hexadecimal digits: a SHA-256 of all splits and their lines. It does not depend on the names of
        the files, on how the two sides are joined, on compression, on line ends or on a byte order mark.

    Raises:
        ValueError: Two files of a split have different numbers of lines, a line of one file for both has no tab, or a file has
            no line or cannot be read.
    """
    contents = []
    for split, paths in files.items():
        digests = digests_of_both(*paths) if len(paths) == 1 else digests_of_each(*paths)
        contents.append((split, *digests))
    return hashlib.sha256(repr(contents).encode()).hexdigest()


def digests_of_both(path):
    digests, count = (hashlib.sha256(), hashlib.sha256()), 0
    for count, pair in enumerate(read_pairs((path,)), start=1):  # noqa: B007 (the number of lines)
        for digest, text in zip(digests, pair, strict=True):
            digest.update(text.encode() + b"\n")
    if count == 0:
        raise ValueError(f"A split must have a line. {path} is empty. Fill it or move it away.")
    return [digest.hexdigest() for digest in digests]


def digests_of_each(source, target):
    source_count, source_digest = count_and_digest(source)
    target_count, target_digest = count_and_digest(target)
    if source_count != target_count:
        shorter, longer = (source, target) if source_count < target_count else (target, source)
        raise ValueError(
            f"The two files of a split must have equal numbers of lines. Received {source} with {source_count} "
            f"and {target} with {target_count}: line {min(source_count, target_count) + 1} of {longer.name} has no "
            f"partner in {shorter.name}. Pair the lines again; a sentence without translation has an empty line."
        )
    if source_count == 0:
        raise ValueError(f"A split must have a line. {source} and {target} are empty. Fill them or move them away.")
    return source_digest, target_digest


def count_and_digest(path):
    """A file with two lines  ->  `(2, "5f1d...")`"""
    count, digest = 0, hashlib.sha256()
    for count, line in enumerate(read_lines(path), start=1):  # noqa: B007 (the number of lines)
        digest.update(line.encode() + b"\n")
    return count, digest.hexdigest()
