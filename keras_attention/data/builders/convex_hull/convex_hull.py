"""TFDS builder of `convex_hull`: points, and the corners of their convex hull."""

from keras_attention.data.builders.convex_hull.hulls import convex_hulls
from keras_attention.data.builders.point_sets import PointsConfig, PointSetBuilder


class ConvexHull(PointSetBuilder):
    """`{"points": [[0.1, 0.1], [0.9, 0.8], [0.2, 0.9], [0.8, 0.2], [0.4, 0.5]], "indices": [1, 4, 2, 3]}`

    `points` are float32 of shape `(n, 2)`, uniform in the unit square. `indices` are int32 of shape `(m,)`: the corners
    of the convex hull, counted from 1, counter-clockwise from the lowest index, the first one not repeated.
    `convex_hulls` computes them for points of your own and says what holds for collinear and equal points.

    `tfds.load("convex_hull/5-50", as_supervised=True)` gives the pairs `(points, indices)`. Configurations, with a
    million training examples, and with 10,000 each for validation and test:

    - `"5"`, `"10"`, `"50"`: as many points in every example.
    - `"5-20"`, `"5-50"`: 5 to 20 or 50 points, each number as often as the others.
    - `"5-sorted"` and so on: the points of each example sorted by x and then by y.
    - `"tiny"`: 61, 17 and 13 examples of 3 to 7 points, for tests.
    - Your own: `ConvexHull(config=PointsConfig(name="7", points=7))`.

    The examples depend on the settings alone. Preparing a million takes minutes.
    """

    DESCRIPTION = (
        "The vertices of the convex hull, counter-clockwise from the lowest index. Collinear points between two "
        "vertices are none, and of equal points the lowest index stands for all."
    )
    EXAMPLES_AT_ONCE = 16_384  # sets of up to 50 points are labelled by their number of points
    BUILDER_CONFIGS = [  # noqa: RUF012 (a name TFDS reads)
        *PointsConfig.in_both_orders("5", points=5),
        *PointsConfig.in_both_orders("10", points=10),
        *PointsConfig.in_both_orders("50", points=50),
        *PointsConfig.in_both_orders("5-20", points=range(5, 21)),
        *PointsConfig.in_both_orders("5-50", points=range(5, 51)),
        PointsConfig(name="tiny", points=range(3, 8), train_examples=61, validation_examples=17, test_examples=13),
    ]

    def label(self, points):
        return convex_hulls(points)
