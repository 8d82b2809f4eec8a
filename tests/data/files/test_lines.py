import gzip

import pytest

from keras_attention.data.files.lines import read_lines

LINES = ["One line.", "", "Drei Wörter hier."]


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


@pytest.mark.parametrize("character", [" ", "\t"])
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


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_file_with_carriage_returns_alone_has_lines_too(write, last, mark):
    assert list(read_lines(write("train.de", mark + "\r".join(LINES) + ("\r" if last else "")))) == LINES


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
@pytest.mark.parametrize("name", ["train.de", "train.de.gz"])
def test_a_file_of_another_unicode_encoding_is_known_by_its_mark(write, name, encoding):
    path = write(name, "gut\n".encode(encoding))
    with pytest.raises(ValueError, match=rf"must be UTF-8\. .* say that it is {encoding}\. .*`iconv -f {encoding} -t"):
        list(read_lines(path))


def test_a_line_and_a_file_that_would_fill_the_memory_are_refused(write, monkeypatch):
    monkeypatch.setattr("keras_attention.data.files.lines.LONGEST_LINE", 7)
    with pytest.raises(ValueError, match=r"train\.de, line 2 has more than 7 bytes"):
        list(read_lines(write("train.de", "gut\n" + "so" * 5)))
    monkeypatch.setattr("keras_attention.data.files.lines.ALWAYS_ALLOWED", 7)
    path = write("train.de.gz", "gut\n" * 100_000)
    with pytest.raises(ValueError, match=r"train\.de\.gz must not grow to more than 200 times its \d+ bytes"):
        list(read_lines(path))
    with pytest.raises(ValueError, match=r"must not grow to more than 200 times"):
        list(read_lines(write("empty.de.gz", "\n" * 100_000)))
    assert len(list(read_lines(write("train.de", "gut\n" * 1000)))) == 1000


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
