"""A step of training of the Transformer, and what comes before the first: building the model and its graph.

The contenders are one model, weight for weight, with Adam, cross-entropy and the same padded batch: ours, the model
that one builds from the layers of Keras, and torch's, run eagerly.
"""

import numpy as np
from side_by_side import Comparison


def batch(B, T, V):
    """Source, target and labels `(B, T)`: ids from 1 on, sequences between T / 2 and T long, then padding."""
    rng = np.random.default_rng(1)
    real = np.arange(T) < rng.integers(T // 2, T, size=(3, B, 1), endpoint=True)
    real[2] = real[1]  # a label for each target
    return np.where(real, rng.integers(1, V, size=(3, B, T)), 0).astype("int32")


def our_model(V, D, layers, N, dropout=0.1):
    from keras_attention.models import Transformer
    from keras_attention.training import SmoothedCrossentropy

    model = Transformer(V, V, layers, N, hidden_dim=D, intermediate_dim=4 * D, dropout=dropout)
    model.compile("adam", SmoothedCrossentropy(0.0))
    return model


def our_step(B, T, V, **sizes):
    model = our_model(V, **sizes)
    source, target, labels = batch(B, T, V)
    return lambda: model.train_on_batch({"source": source, "target": target}, labels)


def keras_step(B, T, V, **sizes):
    from keras_transformer import keras_transformer

    model = keras_transformer(V, **sizes)
    source, target, labels = batch(B, T, V)
    weights = (labels != 0).astype("float32")
    return lambda: model.train_on_batch({"source": source, "target": target}, labels, sample_weight=weights)


def torch_step(B, T, V, **sizes):
    import torch
    from torch_transformer import TorchTransformer

    model = TorchTransformer(V, **sizes)
    source, target, labels = (torch.from_numpy(ids).long() for ids in batch(B, T, V))
    loss = torch.nn.CrossEntropyLoss(ignore_index=0)
    optimizer = torch.optim.Adam(model.parameters())

    def work():
        optimizer.zero_grad()
        value = loss(model(source, target).flatten(0, 1), labels.flatten())
        value.backward()
        optimizer.step()
        return value.item()

    return work


def our_first_step(**sizes):
    import keras_attention  # noqa: F401 (imports are not part of the work)

    return lambda: our_step(**sizes)()


def keras_first_step(**sizes):
    import keras_transformer  # noqa: F401

    return lambda: keras_step(**sizes)()


MODEL = "d {D}, {layers} + {layers} blocks, {B} x {T} tokens, vocabulary {V}"
DEFAULT = {"B": 64, "T": 20, "V": 8000, "D": 128, "layers": 4, "N": 8}
PAPER = {"B": 16, "T": 32, "V": 8000, "D": 512, "layers": 6, "N": 8}
SMOKE = {"B": 2, "T": 5, "V": 11, "D": 6, "layers": 1, "N": 2}

COMPARISONS = [
    Comparison(
        f"a step of training, {MODEL}",
        contenders={"keras_attention": our_step, "keras": keras_step, "torch": torch_step},
        sizes={"default": DEFAULT, "paper": PAPER, "smoke": SMOKE},
        targets={"default": {"keras": 0.75, "torch": 0.6}, "paper": {"torch": 0.7}},
        calls=3,
    ),
    Comparison(
        f"building the model and its first step, {MODEL}",
        contenders={"keras_attention": our_first_step, "keras": keras_first_step},
        sizes={"default": DEFAULT, "smoke": SMOKE},
        targets={"default": {"keras": 0.4}},
        fresh=True,
    ),
]
