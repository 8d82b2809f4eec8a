"""Sinusoidal positions in a loop, from the formula of the paper."""

import math

import numpy as np


def sinusoids(positions, width, max_wavelength=10000.0):
    """`(length, width)` for a list of positions: sines at even places, cosines at odd ones."""
    table = np.zeros((len(positions), width))
    for row, position in enumerate(positions):
        for place in range(width):
            angle = position / max_wavelength ** (2 * (place // 2) / width)
            table[row, place] = math.cos(angle) if place % 2 else math.sin(angle)
    return table
