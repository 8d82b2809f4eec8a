import keras
import numpy as np
from reference.arrays import to_numpy

from keras_attention.saving.initializers import fresh


def test_copies_of_an_unseeded_initializer_draw_different_numbers():
    initializer = keras.initializers.GlorotUniform()
    first, second = (to_numpy(fresh(initializer)((3, 5))) for _ in range(2))
    assert np.abs(first - second).min() > 0


def test_a_copy_of_a_seeded_initializer_keeps_the_seed():
    initializer = keras.initializers.RandomNormal(stddev=0.5, seed=3)
    first, second = (to_numpy(fresh(initializer)((3, 5))) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, to_numpy(initializer((3, 5))))


def test_a_function_is_used_as_it_is():
    def ones(shape, dtype=None):
        return keras.ops.ones(shape, dtype)

    assert fresh(ones) is ones
