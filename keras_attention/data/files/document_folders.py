"""Labelled documents from a folder of class folders, plain or zip."""

import pathlib
import zipfile
import zlib
from typing import NamedTuple

import numpy as np

from keras_attention.checks.messages import shortened
from keras_attention.data.files.lines import check_growth, text_of


class Documents(NamedTuple):
    """Texts with their labels.

    Attributes:
        texts: List of N strings.
        labels: int32 array `(N,)`, positions in `class_names`.
        class_names: List of strings.
        names: List of N strings, the name of each file in its class folder.
    """

    texts: list
    labels: np.ndarray
    class_names: list
    names: list

    def __repr__(self):
        return f"Documents({len(self.texts)} texts of the classes {shortened(self.class_names)})"

    def take(self, rows):
        """The documents at these positions, or where these booleans `(N,)` are True: `documents.take(labels == 1)`"""
        rows = np.arange(len(self.texts))[np.asarray(rows)]
        texts, names = ([column[row] for row in rows] for column in (self.texts, self.names))
        return Documents(texts, self.labels[rows], self.class_names, names)


def load_documents(path, encoding="utf-8"):
    """Documents from class folders of text files.

    `reviews/neg/1.txt`, `reviews/pos/1.txt`, `reviews/pos/2.txt`  ->  `Documents(texts=["Bad.", "Good.", "Fine."],
    labels=[0, 1, 1], class_names=["neg", "pos"], names=["1.txt", "1.txt", "2.txt"])`

    Args:
        path: Folder, or file that ends with `.zip`, whose folders are the classes; one folder around them may be there.
            Read are the files in them that end with `.txt`, by their names; hidden ones are passed over.
        encoding: String, that of all files. A byte order mark is dropped, and every line ends with `"\\n"`.

    Returns:
        `Documents`, classes and files in alphabetic order.

    Raises:
        FileNotFoundError: There is no such folder or file.
        ValueError: There are not two class folders, one has no text, a file has another encoding, or the zip file is
            damaged, encrypted, or made to fill the memory.
    """
    path = pathlib.Path(path)
    if path.suffix == ".zip" and path.is_file():
        try:
            with zipfile.ZipFile(path) as archive:
                check_archive(path, archive.infolist())
                return read_class_folders(path, zipfile.Path(archive), encoding)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise ValueError(f"{path} is not a whole zip file ({error}). Copy it again.") from error
        except NotImplementedError as error:
            raise ValueError(
                f"{path} is packed in a way that Python cannot read ({error}). Pack it as usual."
            ) from error
    if not path.is_dir():
        raise FileNotFoundError(f"There is no folder {path}. Pass a folder of class folders, or a zip file of them.")
    return read_class_folders(path, path, encoding)


def check_archive(path, entries):
    if any(entry.flag_bits & 1 for entry in entries):
        raise ValueError(f"{path} is encrypted. Unpack it with its password and pass the folder.")
    check_growth(path, sum(entry.file_size for entry in entries))


def read_class_folders(path, root, encoding):
    folders = visible(each for each in root.iterdir() if each.is_dir())
    if len(folders) == 1:
        folders = visible(each for each in folders[0].iterdir() if each.is_dir())
    if len(folders) < 2:
        raise ValueError(
            f"{path} must have a folder for each class, two or more. Received {[folder.name for folder in folders]}. Put "
            "the texts of each class into a folder that is named after it."
        )
    texts, labels, names = [], [], []
    for label, folder in enumerate(folders):
        files = visible(each for each in folder.iterdir() if each.name.endswith(".txt") and each.is_file())
        if not files:
            raise ValueError(f"Each class folder of {path} must have a .txt file. Received none in {folder.name!r}.")
        for file in files:
            texts.append(text_of(file.read_bytes(), file, encoding))
            labels.append(label)
            names.append(file.name)
    return Documents(texts, np.array(labels, "int32"), [folder.name for folder in folders], names)


def visible(entries):
    """In alphabetic order, without `.git`, `__MACOSX` and such."""
    return sorted((each for each in entries if not each.name.startswith((".", "__"))), key=lambda each: each.name)
