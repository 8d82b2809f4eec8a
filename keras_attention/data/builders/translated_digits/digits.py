"""Images of handwritten digits: MNIST's files, or the small ones that come with scikit-learn.

Letters in shapes: N images of H rows and W columns.
"""

import pathlib
import re

import numpy as np

from keras_attention.data.files.idx_files import read_idx
from keras_attention.extras import how_to_install

SPLITS = {"train": "train", "t10k": "test"}
PATTERN = r"(train|t10k)-(images|labels)[-.]idx[13]-ubyte(\.gz)?"
EVERY = 5  # one image of so many is for the test where there is one set of images only


def load_digits(folder=None):
    """Images of digits, and their labels.

    A folder with `train-images-idx3-ubyte.gz`, `train-labels-idx1-ubyte.gz`, `t10k-images-idx3-ubyte.gz` and
    `t10k-labels-idx1-ubyte.gz`  ->  `{"train": (images, labels), "test": (images, labels)}`

    Args:
        folder: Path of a folder with the files of MNIST, or of a data set in its format, under their names, each with or
            without `.gz`. Where only `train` or only `t10k` is there, every fifth image is for the test, the first
            among them. `None`: the 1,797 digits of 8 by 8 pixels that come with scikit-learn, split in the same way.

    Returns:
        Dictionary from "train" and "test" to pairs: images, uint8 of shape `(N, H, W)` from 0 to 255, and labels, int32
        of shape `(N,)`.

    Raises:
        FileNotFoundError: There is no folder, or it has no images, or images without labels.
        ValueError: A file is malformed, or images and labels do not fit together.
        ImportError: scikit-learn is needed and not installed.
    """
    if folder is None:
        return split_every_fifth(*scikit_learn_digits())
    pairs = {SPLITS[name]: read_pair(*paths) for name, paths in find_pairs(folder).items()}
    return pairs if len(pairs) == 2 else split_every_fifth(*next(iter(pairs.values())))


def split_every_fifth(images, labels):
    """Ten images  ->  0 and 5 for the test, the others for training."""
    is_test = np.arange(len(images)) % EVERY == 0
    return {"train": (images[~is_test], labels[~is_test]), "test": (images[is_test], labels[is_test])}


def find_pairs(folder):
    """A folder with `t10k-images-idx3-ubyte.gz` and `t10k-labels-idx1-ubyte`  ->  `{"t10k": (images, labels)}`, paths"""
    folder = pathlib.Path(folder).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder}. Pass the path of the folder that holds the IDX files.")
    found = {}
    for path in sorted(folder.iterdir()):
        match = re.fullmatch(PATTERN, path.name)
        if match:
            found.setdefault(match[1], {})[match[2]] = path
    if not found:
        raise FileNotFoundError(
            f"{folder} has no images. Looked for train-images-idx3-ubyte and t10k-images-idx3-ubyte, also with .gz. "
            "Put the files of MNIST into it."
        )
    for name, paths in found.items():
        if len(paths) != 2:
            raise FileNotFoundError(
                f"Images need their labels, and labels their images. {folder} has {next(iter(paths.values())).name} "
                f"alone. Put {name}-images-idx3-ubyte and {name}-labels-idx1-ubyte into it."
            )
    return {name: (paths["images"], paths["labels"]) for name, paths in found.items()}


def read_pair(images_path, labels_path):
    images, labels = read_idx(images_path), read_idx(labels_path)
    fits = images.ndim == 3 and images.dtype == "uint8" and labels.ndim == 1 and labels.dtype.kind in "iu"
    if not fits or len(images) != len(labels):
        raise ValueError(
            f"There must be images (N, H, W) of bytes, and one label for each. Received {images.dtype} of shape "
            f"{images.shape} from {images_path} and {labels.dtype} of shape {labels.shape} from {labels_path}. Pair the "
            "files again."
        )
    return images, labels.astype("int32")


def scikit_learn_digits():
    """Images and labels of scikit-learn, whose pixels reach from 0 to 16."""
    try:
        from sklearn import datasets
    except ImportError as error:
        raise ImportError(
            "Digits without a folder come from scikit-learn, which is not installed. "
            f"{how_to_install('images')} Or pass a folder with the files of MNIST."
        ) from error
    digits = datasets.load_digits()
    return np.round(digits.images * (255 / 16)).astype("uint8"), digits.target.astype("int32")
