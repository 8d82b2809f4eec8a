"""The position schemes that the tests compare, those of a user among them, each with the score of one pair by its formula."""

import dataclasses
from collections.abc import Callable

import keras
import numpy as np
from keras import ops
from reference.position_schemes import rotary_angles, sines_and_cosines, slope, t5_bucket, turned

from keras_attention.positions import (
    ALiBi,
    PositionScheme,
    Rotary,
    ShawRelative,
    SlidingWindow,
    T5Bias,
    TransformerXLRelative,
)

B, T, D, N, H, SLOTS = 2, 7, 11, 3, 5, 13


@keras.saving.register_keras_serializable(package="tests")
class Turned(PositionScheme):
    """The first two features of a head are a point in the plane, turned by its position in radians."""

    adds_bias = False

    def rotate(self, tensor, positions):
        angle = ops.cast(positions, tensor.dtype)[:, None]  # (B or 1, 1, length)
        x, y = tensor[..., 0], tensor[..., 1]
        turned = [x * ops.cos(angle) - y * ops.sin(angle), x * ops.sin(angle) + y * ops.cos(angle)]
        return ops.concatenate([ops.stack(turned, axis=-1), tensor[..., 2:]], axis=-1)


@keras.saving.register_keras_serializable(package="tests")
class Distant(PositionScheme):
    """A learned number for each head, times the distance, is added."""

    def build(self, query_shape):
        self.slope = self.add_weight(name="slope", shape=(query_shape[1],), initializer="ones")
        self.built = True

    def bias(self, query_positions, key_positions):
        distance = query_positions[..., :, None] - key_positions[..., None, :]
        return -ops.cast(ops.abs(distance), "float32")[:, None] * self.slope[:, None, None]  # (B or 1, N, T, S)


# === Formulas: the score of a query at p and a key at r in head n, before the division by √H ===


def of_turned_pair(query, key, p, r, n, weights):
    return turned(query, [p], [(0, 1)]) @ turned(key, [r], [(0, 1)])


def of_distant_pair(query, key, p, r, n, weights):
    return query @ key - np.sqrt(H) * weights[0][n] * abs(p - r)


def of_rotary_pair(query, key, p, r, n, weights):
    pairs = [(0, 2), (1, 3)]
    return turned(query, rotary_angles(p, 4), pairs) @ turned(key, rotary_angles(r, 4), pairs)


def of_alibi_pair(query, key, p, r, n, weights):
    return query @ key - np.sqrt(H) * slope(n, N) * abs(p - r)


def of_t5_pair(query, key, p, r, n, weights):
    return query @ key + np.sqrt(H) * weights[0][t5_bucket(r - p, 8, 5), n]


def of_window_pair(query, key, p, r, n, weights):
    return query @ key if abs(p - r) < 3 else -np.inf


def of_shaw_pair(query, key, p, r, n, weights):
    return query @ (key + weights[0][np.clip(r - p, -2, 2) + 2])


def of_shaw_value(p, r, weights):
    return weights[1][np.clip(r - p, -2, 2) + 2]


def of_transformer_xl_pair(query, key, p, r, n, weights):
    kernel, content_bias, position_bias = weights
    relative_key = sines_and_cosines(p - r, 16) @ kernel[:, n]
    return query @ key + query @ relative_key + content_bias[n] @ key + position_bias[n] @ relative_key  # section 3.3


def nothing(p, r, weights):
    return 0.0


@dataclasses.dataclass(frozen=True)
class Entry:
    """How to make a scheme, the score of one pair under it, and what is added to the value of one pair."""

    make: Callable
    score: Callable
    value: Callable = nothing


SCHEMES = {
    "turned": Entry(Turned, of_turned_pair),
    "distant": Entry(Distant, of_distant_pair),
    "rotary": Entry(lambda: Rotary(rotary_dim=4), of_rotary_pair),
    "alibi": Entry(ALiBi, of_alibi_pair),
    "t5": Entry(lambda: T5Bias(num_buckets=8, max_distance=5), of_t5_pair),
    "shaw": Entry(lambda: ShawRelative(max_distance=2), of_shaw_pair, of_shaw_value),
    "transformer_xl": Entry(TransformerXLRelative, of_transformer_xl_pair),
    "window": Entry(lambda: SlidingWindow(3), of_window_pair),
}
