"""Greedy decoding of 64 tokens: `generate`, which keeps projected keys and values, beside the whole model at each step.

Both are one compiled call and write the same tokens. Without a cache the source and all tokens so far are read again for
each new token.
"""

import numpy as np
from side_by_side import Comparison


def our_model(V, D, layers, N):
    """A Transformer that never ends a sequence by itself."""
    import keras

    from keras_attention.models import Transformer
    from keras_attention.tokens import END, PAD

    keras.utils.set_random_seed(1)
    model = Transformer(V, V, layers, N, hidden_dim=D, intermediate_dim=4 * D)
    model.logits_dense.bias.assign(np.where(np.isin(np.arange(V), [PAD, END]), -1e4, 0.0))
    return model


def source_ids(B, S, V):
    return np.random.default_rng(1).integers(4, V, size=(B, S)).astype("int32")


def with_cache(B, S, T, V, **sizes):
    model, source = our_model(V, **sizes), source_ids(B, S, V)
    return lambda: model.generate(source, max_length=T)


def without_cache(B, S, T, V, **sizes):
    import tensorflow as tf

    from keras_attention.tokens import START

    model, source = our_model(V, **sizes), tf.constant(source_ids(B, S, V))

    @tf.function
    def generate(source):
        tokens = tf.fill((B, 1), START)
        for _ in tf.range(T):
            tf.autograph.experimental.set_loop_options(shape_invariants=[(tokens, tf.TensorShape((B, None)))])
            logits = model({"source": source, "target": tokens})[:, -1]
            tokens = tf.concat([tokens, tf.argmax(logits, axis=-1, output_type="int32")[:, None]], axis=1)
        return tokens[:, 1:]

    return lambda: generate(source).numpy()


DEFAULT = {"S": 32, "T": 64, "V": 8000, "D": 256, "layers": 3, "N": 8}
PAPER = {"S": 32, "T": 64, "V": 8000, "D": 512, "layers": 6, "N": 8}
SMOKE = {"S": 3, "T": 5, "V": 11, "D": 6, "layers": 1, "N": 2}

COMPARISONS = [
    Comparison(
        "{T} tokens, batch {B}, d {D}, {layers} + {layers} blocks, vocabulary {V}",
        contenders={"keras_attention": with_cache, "without cache": without_cache},
        sizes={name: {"B": B, **sizes} for name, sizes in (("default", DEFAULT), ("paper", PAPER), ("smoke", SMOKE))},
        targets={"paper": {"without cache": 0.12}} if B == 1 else {},
    )
    for B in (1, 32)
]
