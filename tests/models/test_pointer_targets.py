"""Targets of a pointer network that are no positions of the source: never read as if they were something."""

import keras
import numpy as np
import pytest
from models.pointer_networks import INPUTS, LABELS, SOURCE, TARGET, B, S, T, make_pointer_network, shared
from reference.arrays import to_numpy
from tolerances import FLOAT32

each_index = pytest.mark.parametrize("index", [S + 1, -1], ids=["beyond", "negative"])


def with_target(index):
    target = TARGET.copy()
    target[1, 2] = index
    return {**SOURCE, "target": target}


@each_index
def test_a_known_target_that_is_no_position_is_an_error_of_a_call(index):
    message = rf"`target` must hold 0 or a position of the source, from 1 to {S}. Received {index} among"
    with pytest.raises(ValueError, match=message):
        shared("permutation")(with_target(index))


def test_a_target_that_is_no_position_is_named_before_the_first_step():
    model = make_pointer_network()
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    for method in (model.fit, model.evaluate, model.train_on_batch):
        with pytest.raises(ValueError, match=rf"from 1 to {S}. Received {S + 1} among"):
            method(with_target(S + 1), LABELS)


@pytest.mark.skipif(
    keras.backend.backend() == "torch", reason="torch computes eagerly, where such targets are an error"
)
@each_index
def test_inside_a_graph_the_logits_are_nan_from_a_target_on_that_is_no_position(index):
    logits = shared("permutation").predict(with_target(index), verbose=0)
    is_wrong = np.zeros((B, T), bool)
    is_wrong[1, 2:] = True
    np.testing.assert_array_equal(np.isnan(logits), np.broadcast_to(is_wrong[..., None], logits.shape))
    others = to_numpy(shared("permutation")(INPUTS))[~is_wrong]
    np.testing.assert_allclose(logits[~is_wrong], others, atol=FLOAT32)
