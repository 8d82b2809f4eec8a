"""Every test starts from the same random numbers."""

import keras
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def seed():
    keras.utils.set_random_seed(7)


@pytest.fixture
def rng():
    return np.random.default_rng(7)
