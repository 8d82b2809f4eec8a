"""Labelled documents from a folder of class folders, plain or zip."""

import pathlib
import zipfile
from typing import NamedTuple

import numpy as np


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
        encoding: String, that of all files.

    Returns:
        `Documents`, classes and files in alphabetic order.

    Raises:
        FileNotFoundError: There is no such folder or file.
        ValueError: There are not two class folders, one has no text, a file has another encoding, or the zip file is
            damaged.
    """
    path = pathlib.Path(path)
    if path.suffix == ".zip" and path.is_file():
        try:
            with zipfile.ZipFile(path) as archive:
                return read_class_folders(path, zipfile.Path(archive), encoding)
        except zipfile.BadZipFile as error:
            raise ValueError(f"{path} is not a whole zip file ({error}). Copy it again.") from error
    if not path.is_dir():
        raise FileNotFoundError(f"There is no folder {path}. Pass one of class folders, or a zip file of them.")
    return read_class_folders(path, path, encoding)


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
            texts.append(decoded(file, encoding))
            labels.append(label)
            names.append(file.name)
    return Documents(texts, np.array(labels, "int32"), [folder.name for folder in folders], names)


def visible(entries):
    """In alphabetic order, without `.git`, `__MACOSX` and such."""
    return sorted((each for each in entries if not each.name.startswith((".", "__"))), key=lambda each: each.name)


def decoded(file, encoding):
    try:
        return file.read_bytes().decode(encoding)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{file} must be in {encoding}. Received bytes that are not: {error}. Pass its `encoding`, such as "
            '"latin-1", or write the file again.'
        ) from error
