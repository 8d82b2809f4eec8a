import keras
import pytest

from keras_attention import scores
from keras_attention.saving.lookup import copy_of, get_by_name
from keras_attention.scores import Score

NAMES = {"dense": keras.layers.Dense, "dropout": keras.layers.Dropout, "identity": keras.layers.Identity}


def test_a_name_gives_a_new_object_each_time():
    first, second = (get_by_name("identity", NAMES, keras.layers.Layer, "layer") for _ in range(2))
    assert isinstance(first, keras.layers.Identity)
    assert first is not second


def test_an_instance_of_the_base_passes_through():
    layer = keras.layers.Flatten()
    assert get_by_name(layer, NAMES, keras.layers.Layer, "layer") is layer


def test_the_closest_name_is_suggested():
    with pytest.raises(
        ValueError, match=r'Unknown layer: "dens". Known: "dense", "dropout", "identity". Did .* "dense"\?'
    ):
        get_by_name("dens", NAMES, keras.layers.Layer, "layer")


def test_a_config_of_another_class_is_a_type_error():
    config = keras.saving.serialize_keras_object(keras.initializers.Zeros())
    with pytest.raises(TypeError, match=r"`layer` must be one of .* instance of `Layer`. Received: .* of type Zeros"):
        get_by_name(config, NAMES, keras.layers.Layer, "layer")


def test_a_dictionary_that_is_no_config_is_a_type_error():
    with pytest.raises(TypeError, match=r"`layer` must be one of .* Received: {'units': 3} of type dict"):
        get_by_name({"units": 3}, NAMES, keras.layers.Layer, "layer")


def test_copies_draw_other_random_numbers_than_the_original_and_each_other():
    original = keras.layers.Dropout(0.25, seed=3)
    copies = [copy_of(original, index) for index in range(3)]
    assert {layer.rate for layer in copies} == {0.25}
    assert len({original.seed, *(layer.seed for layer in copies)}) == 4
    assert [layer.seed for layer in copies] == [copy_of(original, index).seed for index in range(3)]
    assert copy_of(keras.layers.Dropout(0.25), 1).seed is None


@keras.saving.register_keras_serializable(package="tests")
class Doubled(Score):
    def __init__(self, inner, **kwargs):
        super().__init__(**kwargs)
        self.inner = scores.get(inner)

    def build(self, query_shape, key_shape):
        self.inner.build(query_shape, key_shape)
        self.built = True

    def get_config(self):
        return {**super().get_config(), "inner": keras.saving.serialize_keras_object(self.inner)}


def test_a_copy_is_unbuilt_and_so_are_its_parts():
    score = Doubled("additive")
    score.build((2, 3, 5), (2, 7, 5))
    assert not copy_of(score).inner.built
