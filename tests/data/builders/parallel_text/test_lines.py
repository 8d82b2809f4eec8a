import gzip

import pytest

from keras_attention.data.builders.parallel_text.lines import fingerprint, read_lines

LINES = ["One line.", "", "Drei Wörter hier."]


@pytest.fixture
def write(tmp_path):
    def write_file(name, content):
        path = tmp_path / name
        content = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return write_file


@pytest.mark.parametrize("name", ["train.de", "train.de.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_lines_are_those_of_the_file(write, name, end, last, mark):
    path = write(name, mark + end.join(LINES) + (end if last else ""))
    assert list(read_lines(path)) == LINES


@pytest.mark.parametrize("character", ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\0", " "])
def test_only_newlines_end_a_line_and_nothing_is_stripped(write, character):
    line = f"{character}a{character}b{character}."
    assert list(read_lines(write("train.en", f"{line}\n{line}"))) == [line, line]


@pytest.mark.parametrize("character", ["\r", " ", "\t"])
def test_character_at_the_end_of_a_file_without_newline_stays(write, character):
    assert list(read_lines(write("train.en", f"a{character}"))) == [f"a{character}"]


def test_empty_lines_count_at_every_place(write):
    assert list(read_lines(write("train.en", "\n\na\n\n"))) == ["", "", "a", ""]


def test_file_without_content_has_no_line(write):
    assert list(read_lines(write("train.en", ""))) == list(read_lines(write("train.en.gz", ""))) == []


def test_byte_order_mark_is_dropped_at_the_start_of_the_file_only(write):
    assert list(read_lines(write("train.en", "\ufeff\ufeffa\n\ufeffb\n"))) == ["\ufeffa", "\ufeffb"]


@pytest.mark.parametrize("name", ["train.de", "train.de.gz"])
def test_byte_that_is_not_utf8_raises_with_file_line_and_byte(write, name):
    path = write(name, "gut\nzwölf\n".encode() + "zwölf\n".encode("latin1"))
    with pytest.raises(ValueError, match=r"line 3: byte 3 of the line, 0xf6, is not UTF-8.*iconv") as raised:
        list(read_lines(path))
    assert str(raised.value).startswith(str(path))


def test_utf16_file_raises_at_its_first_byte(write):
    with pytest.raises(ValueError, match=r"train.de, line 1: byte 1 of the line, 0xff, is not UTF-8"):
        list(read_lines(write("train.de", "gut\n".encode("utf-16"))))


def damaged(content, kind):
    """Gzip bytes that were cut, changed in the checksum, changed in the middle, or never were gzip."""
    whole = bytearray(gzip.compress(content, mtime=0))
    if kind == "cut":
        return bytes(whole[: len(whole) // 2])
    if kind == "checksum":
        whole[-8] ^= 1
    if kind == "middle":
        whole[10:20] = b"\xff" * 10
    return content if kind == "plain" else bytes(whole)


@pytest.mark.parametrize("kind", ["cut", "checksum", "middle", "plain"])
def test_damaged_gzip_raises_with_file_and_line(tmp_path, kind):
    path = tmp_path / "train.de.gz"
    path.write_bytes(damaged("".join(f"line {number}\n" for number in range(1000)).encode(), kind))
    with pytest.raises(ValueError, match=r"train.de.gz is not a whole gzip file: it can be read up to line \d+ only"):
        list(read_lines(path))


def test_lines_before_the_damage_are_counted(tmp_path):
    path = tmp_path / "train.de.gz"
    path.write_bytes(damaged(b"a\nb\nc\n", "checksum"))
    with pytest.raises(ValueError, match=r"up to line 3 only .*CRC check failed"):
        list(read_lines(path))


def test_fingerprint_depends_on_lines_and_not_on_how_they_are_stored(write):
    plain = fingerprint({"train": (write("train.en", "a\nb\n"), write("train.de", "c\nd\n"))})
    stored_otherwise = (write("en.train.txt.gz", "\ufeffa\r\nb"), write("de.train.txt", "c\r\nd\r\n"))
    assert fingerprint({"train": stored_otherwise}) == plain


def test_fingerprint_changes_with_every_part(write):
    en, de, other = write("train.en", "a\nb\n"), write("train.de", "c\nd\n"), write("other.en", "a \nb\n")
    parts = [
        {"train": (en, de)},
        {"train": (de, en)},
        {"train": (other, de)},
        {"train": (en, other)},
        {"val": (en, de)},
        {"train": (en, de), "val": (en, de)},
    ]
    assert len({fingerprint(files) for files in parts}) == len(parts)


def test_fingerprint_is_that_of_every_other_machine(write):
    files = {"train": (write("train.en", "a\n"), write("train.de", "ä\n"))}
    assert fingerprint(files) == "246ced2fb3bdba2c2321edecba89ad3d3eccb49dff3ec539f7e1bbf3d1759798"


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (
            "a\nb\n",
            "c\nd\ne\n",
            r"train.en with 2 and .*train.de with 3: line 3 of train.de has no partner in train.en",
        ),
        ("a\nb\n\n", "c", r"train.en with 3 and .*train.de with 1: line 2 of train.en has no partner in train.de"),
        ("a\n", "", r"train.en with 1 and .*train.de with 0: line 1 of train.en has no partner in train.de"),
    ],
)
def test_unequal_line_counts_raise_with_both_files_and_counts(write, source, target, message):
    with pytest.raises(ValueError, match=message):
        fingerprint({"train": (write("train.en", source), write("train.de", target))})


def test_split_without_lines_raises(write):
    with pytest.raises(ValueError, match=r"must have a line. .*train.en and .*train.de are empty"):
        fingerprint({"train": (write("train.en", ""), write("train.de", ""))})
