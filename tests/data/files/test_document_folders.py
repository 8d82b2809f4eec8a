import pathlib
import shutil
import zipfile

import numpy as np
import pytest

from keras_attention.data import load_documents

FILES = {"pos/b.txt": "Good.\nVery.", "pos/a.txt": "Grün", "neg/c.txt": "", "ok/d.txt": "So so."}


def write(root, files):
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


@pytest.fixture
def folder(tmp_path):
    other = {"README.md": "no class", "pos/notes.md": "no text", "pos/.a.txt": "hidden", ".git/x.txt": "hidden"}
    a_folder = {"pos/old.txt/e.txt": "no file of the class"}
    return write(tmp_path / "reviews", FILES | other | a_folder)


def test_class_folders_are_read_in_alphabetic_order(folder):
    texts, labels, class_names, names = load_documents(folder)
    assert texts == ["", "So so.", "Grün", "Good.\nVery."]
    assert labels.dtype == "int32"
    assert labels.tolist() == [0, 1, 2, 2]
    assert class_names == ["neg", "ok", "pos"]
    assert names == ["c.txt", "d.txt", "a.txt", "b.txt"]


@pytest.mark.parametrize("around", [False, True], ids=["classes at the top", "one folder around them"])
def test_zip_file_gives_the_same(folder, tmp_path, around):
    base = {"base_dir": folder.name} if around else {}
    path = shutil.make_archive(tmp_path / "packed", "zip", folder.parent if around else folder, **base)
    for read, expected in zip(load_documents(path), load_documents(str(folder)), strict=True):
        np.testing.assert_array_equal(read, expected)


def test_one_folder_around_the_classes_is_looked_into(folder):
    assert load_documents(folder.parent).class_names == ["neg", "ok", "pos"]


def test_documents_are_taken_by_booleans_or_positions(folder):
    documents = load_documents(folder)
    chosen = documents.take([name in ("a.txt", "d.txt") for name in documents.names])
    assert (chosen.texts, chosen.labels.tolist(), chosen.names) == (["So so.", "Grün"], [1, 2], ["d.txt", "a.txt"])
    assert chosen.class_names == documents.class_names
    assert documents.take(np.array([3, 0])).texts == ["Good.\nVery.", ""]
    assert documents.take([False] * 4).texts == []


def test_missing_folder_raises(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*none\. Pass a folder of class folders"):
        load_documents(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match=r"none\.zip"):
        load_documents(tmp_path / "none.zip")


def test_folder_without_class_folders_raises(tmp_path):
    with pytest.raises(ValueError, match=r"must have a folder for each class, two or more\. Received \[\]"):
        load_documents(tmp_path)
    with pytest.raises(ValueError, match=r"two or more\. Received \[\]"):
        load_documents(write(tmp_path, {"pos/a.txt": "a"}))


def test_empty_class_folder_raises(folder):
    (folder / "bad").mkdir()
    with pytest.raises(ValueError, match=r"must have a \.txt file\. Received none in 'bad'"):
        load_documents(folder)


def test_file_in_another_encoding_raises_and_can_be_read_with_it(tmp_path):
    write(tmp_path, {"neg/a.txt": "ok", "pos/b.txt": "grün".encode("latin-1")})
    with pytest.raises(ValueError, match=r"b\.txt: byte 3 of the line, 0xfc, is not UTF-8\..* pass its encoding"):
        load_documents(tmp_path)
    assert load_documents(tmp_path, encoding="latin-1").texts == ["ok", "grün"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    "encoding, mark", [("utf-8", "\ufeff"), ("utf-8", ""), ("utf-16", ""), ("utf-16-le", "\ufeff")]
)
def test_marks_are_dropped_and_lines_end_as_on_this_machine(tmp_path, end, encoding, mark):
    write(tmp_path, {name: f"{mark}Gut.{end}{end}Ü".encode(encoding) for name in ("neg/a.txt", "pos/b.txt")})
    assert load_documents(tmp_path, encoding=encoding).texts == ["Gut.\n\nÜ"] * 2


def test_utf16_and_bad_bytes_are_named_with_what_to_do(tmp_path):
    write(tmp_path, {"neg/a.txt": "ok", "pos/b.txt": "ok".encode("utf-16")})
    with pytest.raises(ValueError, match=r"b\.txt must be UTF-8\. .* ff fe, .* utf-16\. .*`iconv -f utf-16 -t utf-8`"):
        load_documents(tmp_path)
    write(tmp_path, {"pos/b.txt": b"ok\nso\xff"})
    with pytest.raises(ValueError, match=r"b\.txt, line 2: byte 3 of the line, 0xff, is not UTF-8"):
        load_documents(tmp_path)


def test_a_zip_file_that_would_fill_the_memory_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr("keras_attention.data.files.lines.ALWAYS_ALLOWED", 2**20)
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("pos/a.txt", "w") as file:
        file.write(bytes(2**21))
    size = f"200 times its {path.stat().st_size} bytes. Received {2**21} bytes"
    with pytest.raises(ValueError, match=rf"bomb\.zip must not grow to more than {size}"):
        load_documents(path)


def test_an_encrypted_zip_file_is_named(tmp_path, folder):
    path = pathlib.Path(shutil.make_archive(tmp_path / "packed", "zip", folder))
    content = bytearray(path.read_bytes())
    content[content.rindex(b"PK\1\2") + 8] |= 1  # the flag of the last file, as a program that encrypts sets it
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"packed\.zip is encrypted\. Unpack it"):
        load_documents(path)


def test_documents_print_as_a_line(folder):
    assert repr(load_documents(folder)) == "Documents(4 texts of the classes ['neg', 'ok', 'pos'])"


def test_damaged_zip_file_raises(tmp_path, folder):
    path = tmp_path / "packed.zip"
    path.write_bytes(b"no zip")
    with pytest.raises(ValueError, match=r"packed\.zip is not a whole zip file .* Copy it again"):
        load_documents(path)
