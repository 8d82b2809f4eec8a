"""The Transformer of Vaswani et al. built from the layers of Keras alone, as its guides do: a functional graph."""

import keras
import numpy as np
from keras import layers as kl
from keras import ops


class Positions(kl.Layer):
    """`√D · inputs + sinusoids`, of up to 512 positions."""

    def build(self, inputs_shape):
        D = inputs_shape[-1]
        angles = np.arange(512)[:, None] / 10000 ** (2 * (np.arange(D) // 2) / D)
        self.scale = D**0.5
        self.table = np.where(np.arange(D) % 2, np.cos(angles), np.sin(angles)).astype("float32")

    def call(self, inputs):
        return self.scale * inputs + ops.convert_to_tensor(self.table)[: ops.shape(inputs)[1]]


def residual(inputs, update, dropout):
    return kl.LayerNormalization(epsilon=1e-6)(inputs + kl.Dropout(dropout)(update))


def attend(query, value, mask, N, dropout, **options):
    attention = kl.MultiHeadAttention(N, query.shape[-1] // N, dropout=dropout)
    return residual(query, attention(query, value, value_mask=mask, **options), dropout)


def feed(inputs, dropout):
    D = inputs.shape[-1]
    return residual(inputs, kl.Dense(D)(kl.Dense(4 * D, activation="relu")(inputs)), dropout)


def keras_transformer(V, D, layers, N, dropout=0.1):
    """Compiled model `{"source": (B, S), "target": (B, T)}` -> logits `(B, T, V)`; weigh the labels with 0 at padding."""
    source, target = (keras.Input((None,), dtype="int32", name=name) for name in ("source", "target"))
    source_mask, target_mask = source != 0, target != 0
    encoded = kl.Dropout(dropout)(Positions()(kl.Embedding(V, D)(source)))
    for _ in range(layers):
        encoded = attend(encoded, encoded, source_mask, N, dropout)
        encoded = feed(encoded, dropout)
    hidden = kl.Dropout(dropout)(Positions()(kl.Embedding(V, D)(target)))
    for _ in range(layers):
        hidden = attend(hidden, hidden, target_mask, N, dropout, use_causal_mask=True)
        hidden = attend(hidden, encoded, source_mask, N, dropout)
        hidden = feed(hidden, dropout)
    model = keras.Model({"source": source, "target": target}, kl.Dense(V)(hidden))
    # Means over the real tokens, as the implicit mask would, without one.
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="mean_with_sample_weight")
    model.compile("adam", loss)
    return model
