import gzip
import struct

import pytest

from keras_attention.data import read_idx

PAIR = bytes.fromhex("00000802 00000002 00000003 050709 0b0d11".replace(" ", ""))


def test_the_bytes_of_a_file_are_an_array(tmp_path):
    path = tmp_path / "array"
    path.write_bytes(PAIR)
    array = read_idx(path)
    assert array.tolist() == [[5, 7, 9], [11, 13, 17]]
    assert array.dtype == "uint8"
    array[0, 0] = 3  # it may be changed


def test_a_compressed_file_is_the_same(tmp_path):
    (tmp_path / "array.gz").write_bytes(gzip.compress(PAIR))
    assert read_idx(str(tmp_path / "array.gz")).tolist() == [[5, 7, 9], [11, 13, 17]]


@pytest.mark.parametrize(
    "code, letter, dtype",
    [(0x09, "b", "int8"), (0x0B, "h", "int16"), (0x0C, "i", "int32"), (0x0D, "f", "float32"), (0x0E, "d", "float64")],
)
def test_numbers_have_the_type_that_the_file_names(code, letter, dtype, tmp_path):
    path = tmp_path / "array"
    path.write_bytes(struct.pack(f">HBBI3{letter}", 0, code, 1, 3, -5, 0, 113))
    array = read_idx(path)
    assert array.tolist() == [-5, 0, 113]
    assert array.dtype == dtype and array.dtype.isnative


def test_an_array_without_numbers_is_read(tmp_path):
    path = tmp_path / "array"
    path.write_bytes(struct.pack(">HBBII", 0, 8, 2, 0, 7))
    assert read_idx(path).shape == (0, 7)


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "not an IDX file: .* Received the bytes of an empty file"),
        (b"\x89PNG", "not an IDX file: .* Received the bytes 89 50 4e 47"),
        (b"\0\0\x0a\1" + PAIR[4:], "not an IDX file: .* Received the bytes 00 00 0a 01"),
        (PAIR[:-1], r"must have 18 bytes for numbers of shape \(2, 3\), as its header says. Received 17 bytes"),
        (PAIR + b"\0", r"must have 18 bytes for numbers of shape \(2, 3\), as its header says. Received 19 bytes"),
        (b"\0\0\x08\2" + b"\xff" * 8 + b"1", r"must have 18446744065119617037 bytes .* Received 13 bytes"),
        (b"\0\0\x08\xff" + PAIR[4:], "not an IDX file: .* Received the bytes 00 00 08 ff"),
        (PAIR[:9], "must have 13 bytes .* Received 9 bytes"),
    ],
)
def test_a_malformed_file_is_named(content, message, tmp_path):
    path = tmp_path / "digits"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"digits {'is ' if 'not an IDX' in message else ''}{message}"):
        read_idx(path)


def test_a_compressed_file_that_says_it_is_huge_is_not_believed(tmp_path):
    path = tmp_path / "digits.gz"
    path.write_bytes(gzip.compress(b"\0\0\x08\2" + b"\xff" * 8 + b"1"))
    with pytest.raises(ValueError, match=r"digits\.gz must not grow to .* Received 18446744065119617025 bytes"):
        read_idx(path)


@pytest.mark.parametrize(
    "content",
    [PAIR, gzip.compress(PAIR)[:-9], b"\x1f\x8b\x08\x00" + b"\xff" * 30],
    ids=["not_compressed", "cut_off", "no_stream"],
)
def test_a_damaged_gzip_file_is_named(content, tmp_path):
    path = tmp_path / "digits.gz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"digits\.gz is not a whole gzip file .* Copy or compress it again"):
        read_idx(path)
