"""Parts of a pointer network's graph: position 0, the padding of targets, and what may be chosen after them."""

import keras
from keras import ops

from keras_attention.decoding import constraints
from keras_attention.saving.lookup import config_of
from keras_attention.tokens import PAD


def real_targets(target):
    """Mask `(B, T)` of a shifted target: `[[0, 3, 1, 0]]` -> `[[True, True, True, False]]`; the first is the start."""
    is_first = ops.equal(ops.cumsum(ops.ones_like(target), axis=-1), 1)
    return ops.logical_or(is_first, ops.not_equal(target, PAD))


def nan_after_no_position(logits, target, mask):
    """Logits `(B, T, S + 1)`, NaN from the first step whose target `(B, T)` is not in [0, S]; `mask` is `(B, S)`.

    Such an index points at nothing, which the decoder would read as a zero vector.
    """
    S = ops.sum(ops.ones_like(mask, dtype="int32"), axis=-1, keepdims=True)  # (B, 1)
    is_wrong = ops.logical_or(target < 0, target > S)
    number_of_wrong = ops.cumsum(ops.cast(is_wrong, "int32"), axis=-1)  # (B, T)
    return ops.where((number_of_wrong > 0)[..., None], float("nan"), logits)


@keras.saving.register_keras_serializable(package="keras_attention")
class Choices(keras.layers.Layer):
    """The constraint as a layer, within which `==` compares tensors, also while the functional graph is built."""

    def __init__(self, constraint, **kwargs):
        super().__init__(**kwargs)
        self.constraint = constraints.get(constraint)

    def call(self, mask, counts, last):
        return self.constraint(mask, counts, last)

    def get_config(self):
        return {**super().get_config(), "constraint": config_of(self.constraint)}


@keras.saving.register_keras_serializable(package="keras_attention")
class TargetPadding(keras.layers.Layer):
    """The logits as they are, with the mask of their shifted target, by which losses and metrics leave out padding."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, target, logits):
        return logits

    def compute_mask(self, target, previous_mask):
        return real_targets(target)


@keras.saving.register_keras_serializable(package="keras_attention")
class _Outside(keras.layers.Layer):
    """Puts one learned vector before the others: `(B, S, D)` -> `(B, S + 1, D)`. Weights files of 0.1 know it by its name."""

    def build(self, inputs_shape):
        self.vector = self.add_weight(name="vector", shape=(inputs_shape[-1],), initializer="glorot_uniform")

    def call(self, inputs):
        B, _, D = ops.shape(inputs)
        return ops.concatenate([ops.broadcast_to(self.vector, (B, 1, D)), inputs], axis=1)

    def get_config(self):  # Keras asks for it where an argument, here a policy, is an object
        return super().get_config()
