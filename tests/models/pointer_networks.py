"""Pointer networks of a few hundred weights, and what they read."""

import functools

import keras
import numpy as np
import pytest
from compiled import compiled
from keras import ops
from models.conftest import not_on_jax

from keras_attention.layers import SoftAttention
from keras_attention.models import PointerNetwork

B, S, F, T = 3, 7, 3, 8
LENGTHS = [7, 4, 2]
POINTS = np.random.default_rng(3).normal(size=(B, S, F)).astype("float32")
MASK = np.arange(S) < np.array(LENGTHS)[:, None]
SOURCE = {"source": POINTS, "source_mask": MASK}
# Answers that every constraint but the triangles allows; the target is what the decoder reads.
LABELS = np.array([[3, 1, 7, 2, 5, 4, 6, 0], [4, 1, 3, 2, 0, 0, 0, 0], [2, 1, 0, 0, 0, 0, 0, 0]], "int32")
TARGET = np.pad(LABELS[:, :-1], ((0, 0), (1, 0)))
REAL = np.arange(T) <= np.array(LENGTHS)[:, None]  # the end counts, the padding after it does not
INPUTS = {**SOURCE, "target": TARGET}

VARIANTS = {
    "lstm": {"hidden_dim": 11},
    "permutation": {"hidden_dim": 11, "constraint": "permutation"},
    "transformer": {
        "encoder": "transformer",
        "hidden_dim": 16,
        "num_layers": 2,
        "constraint": "permutation",
        "tanh_clipping": 5.0,
    },
    "gru": {"decoder": "gru", "hidden_dim": 11, "constraint": "polygon", "glimpse": "additive"},
}

EACH_VARIANT = [pytest.param(name, marks=[not_on_jax] * (name != "permutation")) for name in VARIANTS]


def make_pointer_network(**arguments):
    """A network whose weights are far from their initial values, so that its answers are not all alike."""
    keras.utils.set_random_seed(3)
    if isinstance(arguments.get("glimpse"), str):
        arguments["glimpse"] = SoftAttention(arguments["glimpse"])
    model = PointerNetwork(**{"feature_dim": F, "hidden_dim": 11, "seed": 5, **arguments})
    rng = np.random.default_rng(11)
    model.set_weights([weight + rng.normal(scale=0.5, size=weight.shape) for weight in model.get_weights()])
    return model


@functools.cache
def shared(variant):
    """The network of a variant, made once for all tests, which must not change its weights."""
    return make_pointer_network(**VARIANTS[variant])


def tensors(nest):
    return keras.tree.map_structure(ops.convert_to_tensor, nest)


def logits_of(model, inputs=INPUTS):
    return ops.convert_to_numpy(compiled(PointerNetwork.__call__, model)(tensors(inputs)))


def log_probability(model, inputs):
    """`model.log_probability(inputs)`, on JAX by one compiled call."""
    return ops.convert_to_numpy(compiled(PointerNetwork.score, model)(*model.check_pairs(inputs)))


def alignment(model, inputs):
    """`model.alignment(inputs)`, on JAX by one compiled call."""
    return ops.convert_to_numpy(compiled(PointerNetwork.align, model)(*model.check_pairs(inputs)))
