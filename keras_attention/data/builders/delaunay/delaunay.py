"""TFDS builder of `delaunay`: points, and the triangles of their Delaunay triangulation."""

from keras_attention.data.builders.delaunay.triangulations import delaunay_triangulations
from keras_attention.data.builders.point_sets import PointsConfig, PointSetBuilder


class Delaunay(PointSetBuilder):
    """`{"points": [[0.0, 0.0], [0.9, 0.1], [0.1, 0.8], [0.9, 0.9]], "indices": [1, 2, 3, 2, 3, 4]}`

    `points` are float32 of shape `(n, 2)`, uniform in the unit square. `indices` are int32 of shape `(3 t,)`: t triangles
    of three corners, counted from 1, the corners of each by index and the triangles by the place of their incenter, from
    left to right. `delaunay_triangulations` computes them for points of your own and says what holds for collinear, equal
    and cocircular points.

    `tfds.load("delaunay/5-50", as_supervised=True)` gives the pairs `(points, indices)`. Configurations, with a million
    training examples, and with 10,000 each for validation and test:

    - `"5"`, `"10"`, `"50"`: as many points in every example.
    - `"5-20"`, `"5-50"`: 5 to 20 or 50 points, each number as often as the others.
    - `"5-sorted"` and so on: the points of each example sorted by x and then by y, so that the corners of a triangle run
      from left to right.
    - `"tiny"`: 61, 17 and 13 examples of 3 to 7 points, for tests.
    - Your own: `Delaunay(config=PointsConfig(name="7", points=7))`.

    The examples depend on the settings and on Qhull, whose version in scipy is kept in `info.metadata`. Preparing the
    data takes minutes and needs scipy, of the extra `geometry`; reading it does not.
    """

    DESCRIPTION = (
        "The triangles of the Delaunay triangulation as a flat list: three corners each, in increasing index, and the "
        "triangles by the coordinates of their incenter, x before y. No triangle, as for points on a line: no index."
    )
    PACKAGES = ("numpy", "scipy")
    BUILDER_CONFIGS = [  # noqa: RUF012 (a name TFDS reads)
        *PointsConfig.in_both_orders("5", points=5),
        *PointsConfig.in_both_orders("10", points=10),
        *PointsConfig.in_both_orders("50", points=50),
        *PointsConfig.in_both_orders("5-20", points=range(5, 21)),
        *PointsConfig.in_both_orders("5-50", points=range(5, 51)),
        PointsConfig(name="tiny", points=range(3, 8), train_examples=61, validation_examples=17, test_examples=13),
    ]

    def label(self, points):
        return delaunay_triangulations(points)
