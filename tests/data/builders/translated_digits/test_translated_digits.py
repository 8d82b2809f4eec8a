import pickle
import struct

import numpy as np
import pytest
import tensorflow_datasets as tfds

from keras_attention.data.builders.point_sets.random_points import random_bits
from keras_attention.data.builders.translated_digits.translated_digits import TranslatedDigits, translated

H, W, CANVAS = 2, 3, 7
IMAGE = np.arange(1, H * W + 1, dtype="uint8").reshape(H, W)


@pytest.fixture
def folder(tmp_path):
    """Eleven images of one brightness each; 0, 5 and 10 are for the test."""
    folder = tmp_path / "digits"
    folder.mkdir()
    images = np.broadcast_to(np.arange(1, 12, dtype="uint8")[:, None, None], (11, H, W))
    header = struct.pack(">HBBIII", 0, 8, 3, 11, H, W)
    (folder / "train-images-idx3-ubyte").write_bytes(header + images.tobytes())
    labels = np.arange(11, dtype="uint8") % 10
    (folder / "train-labels-idx1-ubyte").write_bytes(struct.pack(">HBBI", 0, 8, 1, 11) + labels.tobytes())
    return folder


@pytest.fixture
def data_dir(tmp_path):
    return tmp_path / "tfds"


def examples(builder, split):
    builder.download_and_prepare()
    return [(image, label) for image, label in builder.as_dataset(split=split, as_supervised=True).as_numpy_iterator()]


def test_an_image_is_a_digit_somewhere_in_black(folder, data_dir):
    found = examples(TranslatedDigits(folder, CANVAS, data_dir=data_dir), "train")
    assert [label for _, label in found] == [1, 2, 3, 4, 6, 7, 8, 9]
    for image, label in found:
        assert image.shape == (CANVAS, CANVAS, 1) and image.dtype == "uint8"
        rows, columns, _ = np.nonzero(image)
        assert set(image[rows, columns, 0]) == {label + 1}
        assert len(rows) == H * W
        assert (np.ptp(rows), np.ptp(columns)) == (H - 1, W - 1)


def test_every_place_is_equally_likely():
    bits, counts = random_bits(7, 0), np.zeros((CANVAS - H + 1, CANVAS - W + 1))
    for _ in range(3000):
        image = translated(IMAGE, CANVAS, bits)
        row, column = np.argwhere(image == 1)[0]
        np.testing.assert_array_equal(image[row : row + H, column : column + W], IMAGE)
        counts[row, column] += 1
    five_deviations = 5 * np.sqrt(3000 / counts.size)
    assert (np.abs(counts - 3000 / counts.size) <= five_deviations).all()


def test_a_digit_as_large_as_the_canvas_stays_as_it_is():
    np.testing.assert_array_equal(translated(np.ones((3, 3)), 3, random_bits(0, 0)), np.ones((3, 3)))


def test_copies_of_a_digit_have_places_of_their_own(folder, data_dir):
    builder = TranslatedDigits(folder, 31, copies=3, data_dir=data_dir)
    found = examples(builder, "train")
    assert [label for _, label in found] == [1, 2, 3, 4, 6, 7, 8, 9] * 3
    places = {tuple(np.argwhere(image)[0]) for image, label in found if label == 1}
    assert len(places) == 3
    assert len(examples(builder, "test")) == 3


def test_examples_depend_on_the_settings_alone(folder, tmp_path):
    builders = [
        TranslatedDigits(folder, CANVAS, seed=seed, data_dir=tmp_path / name)
        for name, seed in (("a", 0), ("b", 0), ("c", 1))
    ]
    first, second, other = ([image.tolist() for image, _ in examples(builder, "test")] for builder in builders)
    assert first == second != other
    assert builders[0].info.full_name == builders[1].info.full_name != builders[2].info.full_name


def test_examples_that_are_prepared_keep_their_place_beside_others(folder, data_dir):
    first = TranslatedDigits(folder, CANVAS, data_dir=data_dir)
    images = [image.tolist() for image, _ in examples(first, "test")]
    examples(TranslatedDigits(folder, 8, data_dir=data_dir), "test")
    assert [image.tolist() for image, _ in examples(first, "test")] == images


def test_tfds_loads_the_registered_name(folder, data_dir):
    arguments = {"folder": folder, "canvas": CANVAS}
    found = tfds.load("translated_digits", split="test", data_dir=data_dir, builder_kwargs=arguments)
    assert [int(example["label"]) for example in found] == [0, 5, 0]


def test_a_pickled_builder_reads_the_same_examples(folder, data_dir):
    builder = TranslatedDigits(folder, CANVAS, copies=2, data_dir=data_dir)
    copy = pickle.loads(pickle.dumps(builder))
    assert copy.data_dir == builder.data_dir and len(examples(copy, "train")) == 16


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        (
            {"canvas": 2},
            ValueError,
            r"digits must fit on the canvas. Received digits of shape \(8, 2, 3\) and canvas=2",
        ),
        ({"canvas": 7.5}, TypeError, "`canvas` must be an integer. Received canvas=7.5"),
        ({"copies": 0}, ValueError, "`copies` must be at least 1. Received copies=0"),
        ({"seed": -1}, ValueError, "`seed` must be at least 0. Received seed=-1"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_written(arguments, error, message, folder, data_dir):
    with pytest.raises(error, match=message):
        TranslatedDigits(folder, data_dir=data_dir, **arguments)
    assert not data_dir.exists()
