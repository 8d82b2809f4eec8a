"""Configuration of a data set of points: how many points in which order, and how many examples of them."""

import dataclasses

import tensorflow_datasets as tfds

from keras_attention.checks.arguments import check_at_least, is_integer

ORDERS = ("random", "sorted")
COUNTS = ("train_examples", "validation_examples", "test_examples")


@dataclasses.dataclass(eq=False, kw_only=True)
class PointsConfig(tfds.core.BuilderConfig):
    """Number of points, their order, numbers of examples and seed of a data set of points.

    `ConvexHull(config=PointsConfig(name="5-20-small", points=range(5, 21), train_examples=1000))` has sets of 5 to 20
    points. The name is that of a folder: choose a new one for new settings. A name whose data was prepared with other
    settings is an error.

    Args:
        name: String, the name under which TensorFlow Datasets keeps the data.
        points: Integer, the number of points of every example, or a `range` of which each example draws one uniformly.
        order: `"random"`, or `"sorted"` for points that come sorted by x and then by y. Then the lowest index is the
            leftmost point, and the order of the answer is a rule about places.
        train_examples: Integer, the number of training examples.
        validation_examples: Integer, the number of validation examples.
        test_examples: Integer, the number of test examples.
        seed: Integer from 0 on. Each split draws from a stream of its own, so that none repeats examples of another one,
            whatever their numbers of points. A larger split begins with the examples of a smaller one.

    Raises:
        TypeError: A number is not an integer, or `points` is neither an integer nor a `range`.
        ValueError: `points` is below 1 or an empty `range`, the order is unknown, a split is empty or the seed negative.
    """

    points: int | range
    order: str = "random"
    train_examples: int = 1_000_000
    validation_examples: int = 10_000
    test_examples: int = 10_000
    seed: int = 0

    def __post_init__(self):
        self.points = check_number_of_points(self.points)
        for name in COUNTS:
            setattr(self, name, check_at_least(name, getattr(self, name), 1))
        self.seed = check_at_least("seed", self.seed, 0)
        if self.order not in ORDERS:
            raise ValueError(f"`order` must be one of {ORDERS}. Received order={self.order!r}. Pass one of them.")
        if self.description is None:
            self.description = ", ".join(f"{name}: {value}" for name, value in self.settings().items()) + "."

    @property
    def sizes(self):
        """The numbers of points that occur, as a `range`."""
        return self.points if isinstance(self.points, range) else range(self.points, self.points + 1)

    def settings(self):
        """What decides the examples, ready for JSON.

        `{"points": "range(5, 21)", "order": "random", "train_examples": 1000, ..., "seed": 0}`
        """
        inherited = {field.name for field in dataclasses.fields(tfds.core.BuilderConfig)}
        own = [field.name for field in dataclasses.fields(self) if field.name not in inherited]
        values = {name: getattr(self, name) for name in own}
        return {name: value if isinstance(value, int | str) else repr(value) for name, value in values.items()}

    @classmethod
    def in_both_orders(cls, name, **settings):
        """`"5"`, `points=5`  ->  the configurations `"5"` and `"5-sorted"`"""
        return [cls(name=name, **settings), cls(name=f"{name}-sorted", order="sorted", **settings)]


def check_number_of_points(points):
    """`points`, after checking that it is an integer from 1 on or a range of them."""
    if isinstance(points, range):
        if not points or min(points) < 1:
            raise ValueError(
                f"The range `points` must have a number, and none below 1. Received points={points}. For 5 to 20 points "
                "pass `range(5, 21)`: its end is not part of it."
            )
        return points
    if not is_integer(points):
        raise TypeError(
            f"`points` must be an integer or a `range`. Received points={points!r} of type {type(points).__name__}. "
            "Pass the number of points, or `range(5, 21)` for 5 to 20."
        )
    return check_at_least("points", points, 1)
