"""The order that sorts numbers."""

import numpy as np

from keras_attention.data.builders.point_sets.arrays import point_sets, sets_of_any_size


@sets_of_any_size
def ascending_orders(values):
    """Positions that sort every set of numbers from the lowest on; of equal numbers the lowest position comes first.

    `[[[0.5], [0.1], [0.5], [0.3]]]`  ->  `array([[2, 4, 1, 3]])`

    Args:
        values: Array of shape `(N, n, 1)`: N sets of n numbers; or a list of N arrays `(n, 1)` that differ in n.

    Returns:
        int32 array of shape `(N, n)`, positions counted from 1; a list of arrays `(n,)` for a list of different n.

    Raises:
        ValueError: `values` has another shape, or a number that is not finite.
    """
    values = point_sets(values, coordinates=1)
    return (np.argsort(values[..., 0], axis=1, kind="stable") + 1).astype("int32")
