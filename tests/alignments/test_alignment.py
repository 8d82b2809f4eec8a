"""The interface of the alignments, and `alignments.get`."""

import keras
import numpy as np
import pytest
from keras import ops
from reference.arrays import normal, to_numpy

from keras_attention import alignments
from keras_attention.alignments import Alignment, Categorical


class Uniform(Alignment):
    def marginals(self, scores, mask=None):
        allowed = ops.cast(ops.broadcast_to(True if mask is None else mask, ops.shape(scores)), scores.dtype)
        return allowed / ops.maximum(ops.sum(allowed, axis=-1, keepdims=True), 1.0)


def test_an_alignment_of_a_user_needs_nothing_but_marginals():
    weights = Uniform()(normal(1, 2, 4), mask=np.array([[[True, True, False, False], [False] * 4]]))
    assert to_numpy(weights).tolist() == [[[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]]


def test_an_alignment_without_marginals_says_what_is_missing():
    with pytest.raises(NotImplementedError, match=r"Alignment must define `marginals\(scores, mask\)`"):
        Alignment().marginals(normal(3, 5))


def test_symbolic_weights_have_shape_and_type_of_the_scores():
    weights = Uniform(dtype="mixed_bfloat16")(keras.Input((3, None), dtype="float32"))
    assert (weights.shape, weights.dtype) == ((None, 3, None), "float32")


def test_a_name_stands_for_an_alignment():
    assert type(alignments.get("softmax")) is Categorical


def test_get_returns_an_alignment_as_it_is_and_reads_a_config():
    alignment = Categorical(name="mine")
    assert alignments.get(alignment) is alignment
    assert alignments.get(keras.saving.serialize_keras_object(alignment)).name == "mine"


def test_an_unknown_name_is_answered_with_the_known_ones_and_a_suggestion():
    with pytest.raises(ValueError, match=r'Unknown alignment: "sofmax"\. Known: .*"softmax".*Did you mean "softmax"\?'):
        alignments.get("sofmax")


def test_a_score_is_no_alignment():
    with pytest.raises(TypeError, match=r"`alignment` must be one of .* instance of `Alignment`. Received: .* Dense\."):
        alignments.get(keras.layers.Dense(3, name="d"))
