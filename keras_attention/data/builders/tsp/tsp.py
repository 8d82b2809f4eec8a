"""TFDS builder of `tsp`: points, and a shortest closed tour through them."""

import collections.abc
import dataclasses

from keras_attention.data.builders.point_sets import PointsConfig, PointSetBuilder
from keras_attention.data.builders.tsp.pyvrp_solver import PyVRP
from keras_attention.data.builders.tsp.tours import check_solver, shortest_tours


@dataclasses.dataclass(eq=False, kw_only=True)
class TspConfig(PointsConfig):
    """A `PointsConfig` with a solver for more than 12 points.

    `Tsp(config=TspConfig(name="30-small", points=30, train_examples=1000, solver=PyVRP(iterations=200)))`

    Args:
        solver: Function from one set of points to a tour, such as `PyVRP()`; examples of up to 12 points are solved
            exactly without it. Its `repr` is kept with the data.

    Raises:
        ValueError: There are more than 12 points and no solver.
    """

    solver: collections.abc.Callable | None = None

    def __post_init__(self):
        super().__post_init__()
        check_solver(max(self.sizes), self.solver)


class Tsp(PointSetBuilder):
    """`{"points": [[0.1, 0.1], [0.9, 0.8], [0.8, 0.2], [0.2, 0.9]], "indices": [1, 3, 2, 4]}`

    `points` are float32 of shape `(n, 2)`, uniform in the unit square. `indices` are int32 of shape `(n,)`: a shortest
    closed tour, counted from 1, from index 1 on and counter-clockwise, the first index not repeated. Up to 12 points it
    is exact. `shortest_tours` computes it for points of your own and says what holds for few, collinear and equal points.

    `tfds.load("tsp/10", as_supervised=True)` gives the pairs `(points, indices)`. Configurations:

    - `"5"`, `"10"`: as many points in every example; a million for training, 10,000 each for validation and test.
    - `"20"`, `"5-20"`: 20 points, or 5 to 20 and each number as often as the others; beyond 12 points the tours are those
      of `PyVRP(iterations=100)`; 20,000 and 50,000 for training, 1,000 each for validation and test.
    - `"5-sorted"` and so on: the points of each example sorted by x and then by y, so that a tour begins at the leftmost.
    - `"tiny"`: 61, 17 and 13 examples of 3 to 7 points, for tests.
    - Your own: `Tsp(config=TspConfig(name="7", points=7))`.

    Up to 12 points the examples depend on the settings alone, beyond also on the version of the solver, which is kept in
    `info.metadata`. Preparing more than 12 points needs pyvrp, of the extra `geometry`; reading them does not.
    """

    DESCRIPTION = (
        "A shortest closed tour from index 1 on, counter-clockwise, without the way home. Up to 12 points it is exact "
        "(Held and Karp), beyond it is what the solver of the configuration found."
    )
    CONFIG = TspConfig
    EXAMPLES_AT_ONCE = 256  # a solver may take seconds for them
    PACKAGES = ("numpy", "pyvrp")
    BUILDER_CONFIGS = [  # noqa: RUF012 (a name TFDS reads)
        *TspConfig.in_both_orders("5", points=5),
        *TspConfig.in_both_orders("10", points=10),
        *TspConfig.in_both_orders(
            "20", points=20, train_examples=20_000, validation_examples=1000, test_examples=1000, solver=PyVRP()
        ),
        *TspConfig.in_both_orders(
            "5-20",
            points=range(5, 21),
            train_examples=50_000,
            validation_examples=1000,
            test_examples=1000,
            solver=PyVRP(),
        ),
        TspConfig(name="tiny", points=range(3, 8), train_examples=61, validation_examples=17, test_examples=13),
    ]

    def label(self, points):
        return shortest_tours(points, self.builder_config.solver)
