"""The rules of a pointer's answers: `answer` lists the ids chosen before the end, `real` the ids of the real positions."""

import numpy as np


def is_permutation(answer, real):
    return sorted(answer) == sorted(real)


def is_polygon(answer, real):
    return len(set(answer)) == len(answer) >= min(3, len(real)) and set(answer) <= set(real)


def is_triangles(answer, real):
    corners = np.reshape(answer, (-1, 3))
    return bool((np.diff(corners) > 0).all()) and set(answer) <= set(real) and (len(answer) > 0) == (len(real) >= 3)
