import pytest

from keras_attention.data.builders.point_sets import PointsConfig


def test_settings_are_ready_for_json():
    config = PointsConfig(name="a", points=range(5, 21), order="sorted", train_examples=7, test_examples=3, seed=11)
    assert config.settings() == {
        "points": "range(5, 21)",
        "order": "sorted",
        "train_examples": 7,
        "validation_examples": 10_000,
        "test_examples": 3,
        "seed": 11,
    }


def test_description_is_made_of_the_settings():
    assert PointsConfig(name="a", points=5).description == (
        "points: 5, order: random, train_examples: 1000000, validation_examples: 10000, test_examples: 10000, seed: 0."
    )


def test_description_of_the_user_stays():
    assert PointsConfig(name="a", points=5, description="Mine.").description == "Mine."


@pytest.mark.parametrize(("points", "sizes"), [(5, [5]), (range(5, 8), [5, 6, 7]), (range(2, 9, 3), [2, 5, 8])])
def test_sizes_are_the_numbers_of_points_that_occur(points, sizes):
    assert list(PointsConfig(name="a", points=points).sizes) == sizes


def test_both_orders_are_two_configurations_of_the_same_settings():
    first, second = PointsConfig.in_both_orders("5-7", points=range(5, 8), seed=3)
    assert (first.name, second.name) == ("5-7", "5-7-sorted")
    assert second.settings() == {**first.settings(), "order": "sorted"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"points": 0}, "`points` must be at least 1. Received points=0"),
        ({"points": range(5)}, r"none below 1. Received points=range\(0, 5\)"),
        ({"points": range(7, 5)}, r"must have a number.* Received points=range\(7, 5\)"),
        ({"points": 5, "order": "clockwise"}, "one of .*'random', 'sorted'.* Received order='clockwise'"),
        ({"points": 5, "train_examples": 0}, "`train_examples` must be at least 1. Received train_examples=0"),
        ({"points": 5, "validation_examples": -3}, "Received validation_examples=-3"),
        ({"points": 5, "test_examples": 0}, "Received test_examples=0"),
        ({"points": 5, "seed": -1}, "`seed` must be at least 0. Received seed=-1"),
    ],
)
def test_impossible_values_raise(settings, message):
    with pytest.raises(ValueError, match=message):
        PointsConfig(name="a", **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"points": 5.0}, "an integer or a `range`. Received points=5.0 of type float"),
        ({"points": (5, 20)}, r"Received points=\(5, 20\) of type tuple"),
        ({"points": True}, "Received points=True of type bool"),
        ({"points": 5, "train_examples": 1e6}, "must be an integer. Received train_examples=1000000.0 of type float"),
        ({"points": 5, "seed": None}, "Received seed=None of type NoneType"),
    ],
)
def test_values_of_another_type_raise(settings, message):
    with pytest.raises(TypeError, match=message):
        PointsConfig(name="a", **settings)
