import gzip
import struct
import sys

import numpy as np
import pytest

from keras_attention.data import load_digits

H, W = 3, 5


def write_idx(path, array):
    content = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.astype("uint8").tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def images_of(count, first=0):
    """Images that hold their number."""
    return np.broadcast_to(np.arange(first, first + count, dtype="uint8")[:, None, None], (count, H, W))


def test_the_files_of_mnist_are_the_two_splits(tmp_path):
    write_idx(tmp_path / "train-images-idx3-ubyte.gz", images_of(7))
    write_idx(tmp_path / "train-labels-idx1-ubyte", np.arange(7) % 3)
    write_idx(tmp_path / "t10k-images.idx3-ubyte", images_of(2, first=50))
    write_idx(tmp_path / "t10k-labels-idx1-ubyte.gz", np.array([9, 8]))
    (tmp_path / "README").write_text("Digits.")
    digits = load_digits(tmp_path)
    assert list(digits["train"][0][:, 0, 0]) == [0, 1, 2, 3, 4, 5, 6]
    assert list(digits["train"][1]) == [0, 1, 2, 0, 1, 2, 0]
    assert list(digits["test"][0][:, 2, 4]) == [50, 51]
    assert list(digits["test"][1]) == [9, 8]
    assert digits["train"][0].shape == (7, H, W)


@pytest.mark.parametrize("name", ["train", "t10k"])
def test_of_one_pair_every_fifth_image_is_for_the_test(name, tmp_path):
    write_idx(tmp_path / f"{name}-images-idx3-ubyte.gz", images_of(11))
    write_idx(tmp_path / f"{name}-labels-idx1-ubyte.gz", np.arange(11))
    digits = load_digits(tmp_path)
    assert list(digits["test"][1]) == list(digits["test"][0][:, 0, 0]) == [0, 5, 10]
    assert list(digits["train"][1]) == list(digits["train"][0][:, 0, 0]) == [1, 2, 3, 4, 6, 7, 8, 9]


def test_without_a_folder_they_are_those_of_scikit_learn():
    digits = load_digits()
    assert {split: len(labels) for split, (_, labels) in digits.items()} == {"train": 1437, "test": 360}
    images, labels = digits["train"]
    assert images.shape == (1437, 8, 8) and images.dtype == "uint8" and images.max() == 255
    assert set(labels) == set(range(10)) and labels.dtype == "int32"


def test_scikit_learn_is_asked_for_when_it_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(
        ImportError, match=r"scikit-learn, which is not installed.*pip install '\.\[images\]'.*Or pass a folder"
    ):
        load_digits()


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*nowhere. Pass the path"):
        load_digits(tmp_path / "nowhere")


def test_a_folder_without_images_says_what_was_looked_for(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has no images. Looked for train-images-idx3-ubyte"):
        load_digits(tmp_path)


def test_images_without_labels_are_named(tmp_path):
    write_idx(tmp_path / "train-images-idx3-ubyte", images_of(3))
    with pytest.raises(FileNotFoundError, match=r"has train-images-idx3-ubyte alone. Put .* train-labels-idx1-ubyte"):
        load_digits(tmp_path)


@pytest.mark.parametrize("images, labels", [(images_of(3), np.arange(2)), (np.zeros((3, 7)), np.arange(3))])
def test_images_and_labels_that_do_not_fit_are_named(images, labels, tmp_path):
    write_idx(tmp_path / "train-images-idx3-ubyte", images)
    write_idx(tmp_path / "train-labels-idx1-ubyte", labels)
    message = (
        rf"one label for each. Received uint8 of shape \({', '.join(map(str, images.shape))}\) from .*Pair the files"
    )
    with pytest.raises(ValueError, match=message):
        load_digits(tmp_path)
