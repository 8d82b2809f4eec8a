"""Sinusoidal positions in a loop, from the formulas of the papers."""

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


def sinusoids_of_image(mask, width, normalize, temperature=10000.0):
    """`(H, W, width)` for a mask `(H, W)` of real pixels, as the code of Detection Transformers counts them."""
    table = np.zeros((*mask.shape, width))
    for row, column in np.argwhere(mask):
        places = mask[: row + 1, column].sum(), mask[row, : column + 1].sum()
        if normalize:
            sizes = mask[:, column].sum(), mask[row].sum()
            places = [place / (size + 1e-6) * 2 * math.pi for place, size in zip(places, sizes, strict=True)]
        halves = [sinusoids([place], width // 2, temperature)[0] for place in places]
        table[row, column] = np.concatenate(halves)
    return table
