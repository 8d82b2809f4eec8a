import sys

import numpy as np
import pytest

from keras_attention.data.builders.tsp import PyVRP, shortest_tours

pytest.importorskip("pyvrp", reason="pyvrp, of the extra `geometry`, is not installed")


def length(points, tour):
    corners = points[tour]
    return np.sqrt(((corners - np.roll(corners, -1, axis=0)) ** 2).sum(axis=-1)).sum()


def test_tours_of_ten_points_are_the_exact_ones(rng):
    points = rng.random((5, 10, 2))
    for one_set, exact in zip(points, shortest_tours(points) - 1, strict=True):
        np.testing.assert_allclose(length(one_set, PyVRP()(one_set)), length(one_set, exact))


def test_tour_of_a_circle_goes_around_it(rng):
    place = rng.permutation(29)
    angles = place * (2 * np.pi / 29)
    tour = PyVRP()(np.stack([np.cos(angles), np.sin(angles)], axis=-1))
    assert set(np.diff(place[tour], append=place[0]) % 29) in ({1}, {28})


def test_tour_is_the_same_on_every_run(rng):
    points = rng.random((31, 2))
    np.testing.assert_array_equal(PyVRP(iterations=3, seed=5)(points), PyVRP(iterations=3, seed=5)(points))


def test_scale_of_the_points_does_not_matter(rng):
    points = rng.random((13, 2))
    np.testing.assert_allclose(length(points, PyVRP()(points * 1024)), length(points, PyVRP()(points)))


def test_equal_points_have_a_tour():
    assert sorted(PyVRP()(np.full((13, 2), 0.5))) == list(range(13))


def test_two_points_have_a_tour():
    assert PyVRP()([[0, 0], [1, 1]]).tolist() == [0, 1]


def test_name_tells_the_settings():
    assert repr(PyVRP(iterations=7)) == "PyVRP(iterations=7, seed=0)"


def test_missing_pyvrp_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyvrp", None)
    with pytest.raises(ImportError, match=r"pyvrp, which is not installed.*pip install '\.\[geometry\]'"):
        PyVRP()(np.zeros((13, 2)))
