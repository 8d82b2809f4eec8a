"""Glimpses in NumPy, one cell at a time, straight from their definition."""

import math

import numpy as np


def mean_of_rectangle(image, top, left, width):
    """Mean of a square of `width` pixels whose corner is at `(top, left)`, zeros outside: pixels count by their part."""
    H, W, C = image.shape
    total = np.zeros(C)
    for row in range(math.floor(top), math.ceil(top + width)):
        for column in range(math.floor(left), math.ceil(left + width)):
            if 0 <= row < H and 0 <= column < W:
                height = min(top + width, row + 1) - max(top, row)
                breadth = min(left + width, column + 1) - max(left, column)
                total += height * breadth * image[row, column]
    return total / width**2


def glimpse(image, location, size, num_scales, scale_factor):
    """`(H, W, C)`, `(y, x)` -> `(size, size, num_scales · C)`."""
    H, W, C = image.shape
    result = np.zeros((size, size, num_scales * C))
    y, x = (location[0] + 1) / 2 * H, (location[1] + 1) / 2 * W
    for scale in range(num_scales):
        cell = scale_factor**scale
        for row in range(size):
            for column in range(size):
                top, left = y - size * cell / 2 + row * cell, x - size * cell / 2 + column * cell
                result[row, column, scale * C : (scale + 1) * C] = mean_of_rectangle(image, top, left, cell)
    return result
