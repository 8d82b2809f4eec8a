"""Lines and bytes of files, for every reader and writer: byte order marks, line ends, compression, errors with the line."""

import codecs
import contextlib
import gzip
import zlib

LONGEST_LINE = 2**26  # bytes
LARGEST_GROWTH = 200  # times the size of a compressed file; text and numbers grow five- to twentyfold
ALWAYS_ALLOWED = 2**26  # bytes, to which a compressed file may grow whatever its size
OTHER_MARKS = {  # the longer ones first: that of UTF-16 is the beginning of one of UTF-32
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def read_lines(path):
    """The lines of a UTF-8 file, one after the other.

    The bytes `"a\\r\\n" "b\\u2028c\\n" "\\n" "d"`  ->  `"a"`, `"b\\u2028c"`, `""`, `"d"`

    A line ends with `"\\n"` or `"\\r\\n"` and with nothing else, so that a character such as U+2028 or U+0085 within a
    sentence cannot move the lines after it, as `str.splitlines` would. In a file without any `"\\n"` it ends with `"\\r"`,
    as old programs wrote it. The last line may lack its end. A byte order mark at the start of the file is dropped.

    Args:
        path: `pathlib.Path`; a file whose name ends with `.gz` is decompressed.

    Yields:
        Strings without line end.

    Raises:
        ValueError: The file is not UTF-8 or a damaged gzip file, or a line or the decompressed file is longer than a
            text would be; the message has the file and the line.
    """
    number, size = 0, 0
    with opened(path) as file, whole_gzip(path, lambda: f": it can be read up to line {number} only"):
        for number, line in enumerate(byte_lines(file, path), start=1):
            size += len(line) + 1  # its end counts, too: a million empty lines are a megabyte
            check_growth(path, size)
            yield decoded(line, f"{path}, line {number}")


def byte_lines(file, path):
    """The bytes of each line, without mark and line end."""
    for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), start=1):
        if len(line) > LONGEST_LINE:
            raise ValueError(f"{path}, line {number} has more than {LONGEST_LINE} bytes. Write a line for each text.")
        line = without_mark(line, path) if number == 1 else line
        if number == 1 and not line.endswith(b"\n") and b"\r" in line:
            yield from line.removesuffix(b"\r").split(b"\r")
        else:
            yield line.removesuffix(b"\n").removesuffix(b"\r") if line.endswith(b"\n") else line


def text_of(content, path, encoding="utf-8"):
    """The bytes of a whole file as a string, whose lines end with `"\\n"`, without byte order mark."""
    content = without_mark(content, path) if codecs.lookup(encoding).name == "utf-8" else content
    text = decoded(content, path, encoding).removeprefix("\N{BYTE ORDER MARK}").replace("\r\n", "\n")
    return text if "\n" in text else text.replace("\r", "\n")


def without_mark(content, path):
    """The first bytes of a file that is to be UTF-8."""
    for mark, encoding in OTHER_MARKS.items():
        if content.startswith(mark):
            raise ValueError(
                f"{path} must be UTF-8. Its first bytes, {mark.hex(' ')}, say that it is {encoding}. Convert it, such as by "
                f"`iconv -f {encoding} -t utf-8`."
            )
    return content.removeprefix(codecs.BOM_UTF8)


def decoded(content, place, encoding="utf-8"):
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line, column = before.count(b"\n"), error.start - (before.rfind(b"\n") + 1)
        place = f"{place}, line {line + 1}" if b"\n" in content else place
        raise ValueError(
            f"{place}: byte {column + 1} of the line, 0x{content[error.start]:02x}, is not {encoding.upper()}. Convert the "
            "file, such as by `iconv -f latin1 -t utf-8`, or pass its encoding where there is such an argument."
        ) from error


def opened(path):
    """The file to read bytes from, decompressed if its name ends with `.gz`."""
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")


def compressed(file, is_gzip):
    """The open file itself, or a file that compresses into it, always to the same bytes."""
    return gzip.GzipFile("", "wb", 6, file, mtime=0) if is_gzip else contextlib.nullcontext(file)


@contextlib.contextmanager
def whole_gzip(path, where=lambda: ""):
    """Names the file where gzip cannot go on."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is not a whole gzip file{where()} ({error}). Copy or compress it again.") from error


def check_growth(path, size):
    """Raises where a compressed file becomes so large that it must have been made to fill the memory."""
    if size > ALWAYS_ALLOWED and path.suffix in (".gz", ".zip") and size > LARGEST_GROWTH * path.stat().st_size:
        raise ValueError(
            f"{path} must not grow to more than {LARGEST_GROWTH} times its {path.stat().st_size} bytes. Received {size} "
            "bytes or more. If they are meant, decompress the file and pass that."
        )
