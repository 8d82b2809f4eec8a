import itertools

import numpy as np
import pytest

from keras_attention.data.builders.tsp import held_karp
from keras_attention.data.builders.tsp.held_karp import held_karp_tours, levels


def lengths(points, tours):
    """Lengths of closed tours: `(n, 2)` and `(M, n)`  ->  `(M,)`"""
    corners = points[np.asarray(tours)]
    return np.sqrt(((corners - np.roll(corners, -1, axis=1)) ** 2).sum(axis=-1)).sum(axis=1)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7])
def test_no_other_tour_is_shorter(n, rng):
    points = rng.random((13, n, 2))
    every_tour = [(0, *others) for others in itertools.permutations(range(1, n))]
    for one_set, tour in zip(points, held_karp_tours(points), strict=True):
        assert tuple(tour) in every_tour
        np.testing.assert_allclose(lengths(one_set, [tour])[0], lengths(one_set, every_tour).min(), rtol=1e-14)


def test_tour_of_twelve_points_on_a_circle_goes_around_it(rng):
    places = np.array([rng.permutation(12) for _ in range(5)])
    angles = places * (2 * np.pi / 12)
    for place, tour in zip(places, held_karp_tours(np.stack([np.cos(angles), np.sin(angles)], axis=-1)), strict=True):
        steps = np.diff(place[tour], append=place[0]) % 12
        assert set(steps) in ({1}, {11})


def test_tours_do_not_depend_on_how_many_are_found_at_once(rng, monkeypatch):
    points = rng.random((11, 7, 2))
    tours = held_karp_tours(points)
    monkeypatch.setattr(held_karp, "TABLE_BYTES", 2 * 8 * 2**6 * 6)  # two sets
    np.testing.assert_array_equal(held_karp_tours(points), tours)


def test_equal_points_have_a_tour():
    assert sorted(held_karp_tours(np.full((1, 5, 2), 0.5))[0]) == [0, 1, 2, 3, 4]


def test_one_step_leads_to_the_set_of_two_points():
    ((state, previous_states, legs),) = levels(2)
    assert (state.tolist(), previous_states.tolist(), legs.tolist()) == ([6, 7], [[5, 2]], [[2, 1]])
