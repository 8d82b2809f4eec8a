"""TFDS builder of `translated_digits`: digits somewhere in a larger black image."""

import functools
import hashlib

import numpy as np
import tensorflow_datasets as tfds

from keras_attention.checks.arguments import check_at_least
from keras_attention.data.builders.point_sets.random_points import random_bits
from keras_attention.data.builders.prepared_once import PreparedOnce
from keras_attention.data.builders.translated_digits.digits import load_digits

DESCRIPTION = """\
Handwritten digits, each at a random place of a larger black image, the whole digit within it. Every place is equally
likely.
"""

CITATION = """\
@inproceedings{mnih2014recurrent,
  title = {Recurrent Models of Visual Attention},
  author = {Mnih, Volodymyr and Heess, Nicolas and Graves, Alex and Kavukcuoglu, Koray},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2014}
}
"""


class TranslatedDigits(PreparedOnce):
    """`{"image": uint8 (canvas, canvas, 1), "label": 7}`: a digit somewhere in a black image.

    A digit of 1 by 2 pixels on a canvas of 3: `[[9, 8]]`  ->  `[[0, 0, 0], [0, 0, 0], [0, 9, 8]]`

    The splits are "train" and "test", from `load_digits`, which says how the files of a folder are named. Example number i
    of a split depends on the digits, the settings and i alone; examples with other settings are prepared beside these.

    `TranslatedDigits(folder).as_dataset(split="train", as_supervised=True)` gives the pairs `(image, label)`, after
    `download_and_prepare()`. With TensorFlow Datasets: `tfds.load("translated_digits", builder_kwargs={"folder": folder})`.

    Args:
        folder: Path of a folder with the files of MNIST, or `None` for the digits of scikit-learn.
        canvas: Integer, height and width of the images, 60 in the paper. The digits must fit.
        copies: Integer, how many examples, each at a place of its own, are made of each digit for training.
        seed: Integer from 0 on, of the places.
        data_dir: Path under which TensorFlow Datasets keeps prepared examples, or `None` for its usual one.

    Raises:
        ValueError: The digits do not fit on the canvas, or a number is too small; and as `load_digits`.
        TypeError: A number is not an integer.

    References:
        Mnih, Heess, Graves and Kavukcuoglu, 2014, section 4.1, arXiv:1406.6247.
    """

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "First release."}  # noqa: RUF012 (a name TFDS reads)

    def __init__(self, folder=None, canvas=60, copies=1, seed=0, *, data_dir=None):
        self.folder = folder
        self.canvas = canvas = check_at_least("canvas", canvas, 1)
        self.copies = copies = check_at_least("copies", copies, 1)
        self.seed = seed = check_at_least("seed", seed, 0)
        self.digits = load_digits(folder)
        for images, _ in self.digits.values():
            check_fits(images.shape, canvas)
        name = f"canvas{canvas}_copies{copies}_seed{seed}_{fingerprint(self.digits)}"
        config = tfds.core.BuilderConfig(name=name, description=f"Digits on {canvas} by {canvas} pixels.")
        super().__init__(config=config, data_dir=data_dir)

    def __reduce__(self):
        arguments = (self.folder, self.canvas, self.copies, self.seed)
        return functools.partial(type(self), *arguments, data_dir=self.data_dir_root), ()

    def _info(self):
        image = tfds.features.Image(shape=(self.canvas, self.canvas, 1), dtype=np.uint8, encoding_format="png")
        return tfds.core.DatasetInfo(
            builder=self,
            description=DESCRIPTION,
            features=tfds.features.FeaturesDict({"image": image, "label": tfds.features.Scalar(np.int32)}),
            supervised_keys=("image", "label"),
            homepage="https://arxiv.org/abs/1406.6247",
            citation=CITATION,
            disable_shuffling=True,
        )

    def _split_generators(self, dl_manager):
        return {
            "train": self._generate_examples("train", stream=0, copies=self.copies),
            "test": self._generate_examples("test", stream=1, copies=1),
        }

    def _generate_examples(self, split, stream, copies):
        images, labels = self.digits[split]
        bits = random_bits(self.seed, stream)
        for number in range(copies * len(images)):
            digit = number % len(images)
            yield number, {"image": translated(images[digit], self.canvas, bits)[..., None], "label": labels[digit]}


def translated(image, canvas, bits):
    """The image at a random place of a black one of `canvas` by `canvas` pixels.

    Args:
        image: Array `(H, W)`.
        canvas: Integer.
        bits: Source as `random_bits` gives it; it moves on by two words.
    """
    places = [canvas - size + 1 for size in image.shape]
    # The upper half of a word times the number of places: no place is more likely than another by more than 2^-32.
    top, left = (int(word) // 2**32 * count // 2**32 for word, count in zip(bits.random_raw(2), places, strict=True))
    result = np.zeros((canvas, canvas), image.dtype)
    result[top : top + image.shape[0], left : left + image.shape[1]] = image
    return result


def check_fits(shape, canvas):
    if max(shape[1:]) > canvas:
        raise ValueError(
            f"The digits must fit on the canvas. Received digits of shape {tuple(shape)} and canvas={canvas}. Pass a "
            f"`canvas` of {max(shape[1:])} or more."
        )


def fingerprint(digits):
    """`{"train": (images, labels), ...}`  ->  16 hexadecimal digits that name the content"""
    digest = hashlib.sha256()
    for split in sorted(digits):
        for array in digits[split]:
            digest.update(repr((split, array.shape, array.dtype.name)).encode() + array.tobytes())
    return digest.hexdigest()[:16]
