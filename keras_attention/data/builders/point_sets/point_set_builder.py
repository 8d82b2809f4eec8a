"""TFDS builder of sets of points with an answer that is a list of positions."""

import abc
import importlib.metadata

import numpy as np
import tensorflow_datasets as tfds

from keras_attention.data.builders.point_sets.arrays import lexicographic_order
from keras_attention.data.builders.point_sets.points_config import PointsConfig
from keras_attention.data.builders.point_sets.random_points import random_bits, random_point_sets
from keras_attention.data.builders.prepared_once import PreparedOnce

HOMEPAGE = "https://arxiv.org/abs/1506.03134"

CITATION = """\
@inproceedings{vinyals2015pointer,
  title = {Pointer Networks},
  author = {Vinyals, Oriol and Fortunato, Meire and Jaitly, Navdeep},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2015}
}
"""

EXAMPLES = """\
An example is `points`, drawn uniformly as float32, and `indices`, positions of `points` counted from 1. Example number i
depends on the settings of the points, the seed, the split and i alone.
"""


class PointSetBuilder(PreparedOnce, skip_registration=True):
    """Base of the data sets of points: `{"points": float32 (n, F), "indices": int32 (m,)}`.

    A subclass describes its answers in `DESCRIPTION`, lists its `BUILDER_CONFIGS`, and computes the answers of many
    sets at once in `label`. The rest is here. The points are drawn, put in order and labelled while TensorFlow Datasets
    asks for examples, so its progress bar covers all of the work. Settings and package versions are kept as
    `info.metadata`, and prepared data with other settings is not opened.

    Class attributes:
        DESCRIPTION: String that describes the answer and its notation.
        CONFIG: The class that its configurations must have.
        COORDINATES: Integer F, the numbers in a point.
        EXAMPLES_AT_ONCE: Integer, how many examples are labelled together. It changes speed only.
        PACKAGES: Names of the distributions that compute the answer.
    """

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "First release."}  # noqa: RUF012 (a name TFDS reads)

    DESCRIPTION = ""
    CONFIG = PointsConfig
    COORDINATES = 2
    EXAMPLES_AT_ONCE = 1024
    PACKAGES = ("numpy",)

    def __init__(self, *, config=None, **kwargs):
        if isinstance(config, tfds.core.BuilderConfig) and not isinstance(config, self.CONFIG):
            raise TypeError(
                f"`config` of `{self.name}` must be a {self.CONFIG.__name__}, or the name of a predefined one. Received "
                f"a {type(config).__name__}. Pass `{self.CONFIG.__name__}(name=..., points=...)`."
            )
        super().__init__(config=config, **kwargs)
        self._check_prepared_settings()

    def download_and_prepare(self, **arguments):
        super().download_and_prepare(**arguments)
        self._check_prepared_settings()  # another process may have prepared them in the meantime

    @abc.abstractmethod
    def label(self, points):
        """Answers of many sets.

        Args:
            points: float32 array of shape `(N, n, F)`.

        Returns:
            N int32 arrays of positions, counted from 1: a list, or an array of shape `(N, m)`.
        """

    def _check_prepared_settings(self):
        asked, prepared = self.builder_config.settings(), self.info.metadata["settings"]
        names = sorted(name for name in {*asked, *prepared} if asked.get(name) != prepared.get(name))
        if names:
            differences = ", ".join(f"{name}={prepared.get(name)!r} instead of {asked.get(name)!r}" for name in names)
            raise ValueError(
                f"The name of a configuration stands for its settings. {self.data_dir} was prepared with {differences}. "
                f"Give the new settings a name other than {self.builder_config.name!r}, or delete that folder."
            )

    def _info(self):
        return tfds.core.DatasetInfo(
            builder=self,
            description=f"{self.DESCRIPTION}\n{EXAMPLES}",
            features=tfds.features.FeaturesDict(
                {
                    "points": tfds.features.Tensor(
                        shape=(None, self.COORDINATES), dtype=np.float32, doc="Points of the unit square or interval."
                    ),
                    "indices": tfds.features.Tensor(
                        shape=(None,), dtype=np.int32, doc="Positions of `points`, counted from 1."
                    ),
                }
            ),
            supervised_keys=("points", "indices"),
            homepage=HOMEPAGE,
            citation=CITATION,
            metadata=tfds.core.MetadataDict(
                settings=self.builder_config.settings(), packages=package_versions(self.PACKAGES)
            ),
            disable_shuffling=True,  # the examples are independent: their number is their place
        )

    def _split_generators(self, dl_manager):
        config = self.builder_config
        counts = {
            "train": config.train_examples,
            "validation": config.validation_examples,
            "test": config.test_examples,
        }
        return {split: self._generate_examples(stream, count) for stream, (split, count) in enumerate(counts.items())}

    def _generate_examples(self, stream, count):
        bits = random_bits(self.builder_config.seed, stream)
        for first in range(0, count, self.EXAMPLES_AT_ONCE):
            yield from enumerate(self._next_examples(bits, min(self.EXAMPLES_AT_ONCE, count - first)), start=first)

    def _next_examples(self, bits, count):
        """A list of `count` examples, labelled by groups of equal size."""
        config = self.builder_config
        points, lengths = random_point_sets(bits, count, config.sizes, self.COORDINATES)
        examples = [None] * count
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            group = points[rows, :length]  # (N, n, F)
            if config.order == "sorted":
                group = np.take_along_axis(group, lexicographic_order(group)[..., None], axis=1)
            for row, one_set, indices in zip(rows, group, self.label(group), strict=True):
                examples[row] = {"points": one_set, "indices": indices}
        return examples


def package_versions(packages):
    """`("numpy", "scipy")`  ->  `{"numpy": "2.4.6"}` where scipy is not installed"""
    versions = {}
    for package in packages:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions
