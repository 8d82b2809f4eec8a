"""TFDS builder of `sorting`: numbers, and the order that sorts them."""

from keras_attention.data.builders.point_sets import PointsConfig, PointSetBuilder
from keras_attention.data.builders.sorting.ascending import ascending_orders


class Sorting(PointSetBuilder):
    """`{"points": [[0.5], [0.1], [0.7], [0.3]], "indices": [2, 4, 1, 3]}`

    `points` are float32 of shape `(n, 1)`, uniform in [0, 1). `indices` are int32 of shape `(n,)`: the positions, counted
    from 1, of the numbers from the lowest to the highest. `ascending_orders` computes them for numbers of your own.

    `tfds.load("sorting/5", as_supervised=True)` gives the pairs `(points, indices)`. Configurations, with a million
    training examples, and with 10,000 each for validation and test:

    - `"5"`, `"10"`, `"15"`, `"50"`: as many numbers in every example.
    - `"5-20"`, `"5-50"`: 5 to 20 or 50 numbers, each amount as often as the others.
    - `"tiny"`: 61, 17 and 13 examples of 3 to 7 numbers, for tests.
    - Your own: `Sorting(config=PointsConfig(name="7", points=7))`, in random order.

    The examples depend on the settings alone.
    """

    DESCRIPTION = (
        "The positions of the numbers from the lowest to the highest; of equal ones the lowest position first."
    )
    COORDINATES = 1
    BUILDER_CONFIGS = [  # noqa: RUF012 (a name TFDS reads)
        PointsConfig(name="5", points=5),
        PointsConfig(name="10", points=10),
        PointsConfig(name="15", points=15),
        PointsConfig(name="50", points=50),
        PointsConfig(name="5-20", points=range(5, 21)),
        PointsConfig(name="5-50", points=range(5, 51)),
        PointsConfig(name="tiny", points=range(3, 8), train_examples=61, validation_examples=17, test_examples=13),
    ]

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        if self.builder_config.order != "random":
            raise ValueError(
                "Numbers to be sorted must come in random order. Received a configuration with "
                f"order={self.builder_config.order!r}. Leave `order` out."
            )

    def label(self, points):
        return ascending_orders(points)
