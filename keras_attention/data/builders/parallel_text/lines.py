"""Lines of a UTF-8 text file, plain or gzip, with errors that say where."""

import gzip
import hashlib
import zlib


def read_lines(path):
    """The lines of a file, one after the other.

    The bytes `"a\\r\\n" "b\\u2028c\\n" "\\n" "d"`  ->  `"a"`, `"b\\u2028c"`, `""`, `"d"`

    A line ends with `"\\n"` or `"\\r\\n"` and with nothing else, so that a character such as U+2028 or U+0085 within a
    sentence cannot move the lines after it, as `str.splitlines` would. The last line may lack its end. A byte order
    mark at the start of the file is dropped.

    Args:
        path: `pathlib.Path`; a file whose name ends with `.gz` is decompressed.

    Yields:
        Strings without line end.

    Raises:
        ValueError: A byte is not UTF-8, or the gzip file is damaged; the message has the file and the line.
    """
    number = 0
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        try:
            for number, line in enumerate(file, start=1):
                text = decode(line.removesuffix(b"\r\n").removesuffix(b"\n"), path, number)
                yield text.removeprefix("\N{BYTE ORDER MARK}") if number == 1 else text
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(
                f"{path} is not a whole gzip file: it can be read up to line {number} only ({error}). Copy or compress "
                "it again."
            ) from error


def decode(line, path, number):
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}, line {number}: byte {error.start + 1} of the line, 0x{line[error.start]:02x}, is not UTF-8. "
            "Convert the file, such as by `iconv -f latin1 -t utf-8`."
        ) from error


def fingerprint(files):
    """Read every file once, check that the two files of a split fit together, and name what they hold.

    `{"train": (train.en, train.de)}`  ->  `"a3c1..."`

    Args:
        files: Dictionary from the name of a split to its paths `(source, target)`.

    Returns:
        String of 64 hexadecimal digits: a SHA-256 of all splits and their lines. It does not depend on the names of
        the files, on compression, on line ends or on a byte order mark.

    Raises:
        ValueError: Two files of a split have different numbers of lines, or a file has no line or cannot be read.
    """
    contents = []
    for split, (source, target) in files.items():
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
        contents.append((split, source_digest, target_digest))
    return hashlib.sha256(repr(contents).encode()).hexdigest()


def count_and_digest(path):
    """A file with two lines  ->  `(2, "5f1d...")`"""
    count, digest = 0, hashlib.sha256()
    for count, line in enumerate(read_lines(path), start=1):  # noqa: B007 (the number of lines)
        digest.update(line.encode() + b"\n")
    return count, digest.hexdigest()
