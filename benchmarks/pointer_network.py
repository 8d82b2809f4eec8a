"""A step of training the Pointer Network, beside the same model in torch."""

import numpy as np
from side_by_side import Comparison


def batch(B, n):
    """Random points and orders: `(points (B, n, 2), target (B, n + 1), labels (B, n + 1))`."""
    rng = np.random.default_rng(1)
    labels = np.pad(rng.permuted(np.tile(np.arange(1, n + 1), (B, 1)), axis=1), ((0, 0), (0, 1)))
    return rng.random((B, n, 2), "float32"), np.roll(labels, 1, axis=1).astype("int32"), labels.astype("int32")


def our_step(B, n, D):
    from keras_attention.models import PointerNetwork
    from keras_attention.training import SmoothedCrossentropy

    model = PointerNetwork(hidden_dim=D)
    model.compile("adam", SmoothedCrossentropy(0.0))
    points, target, labels = batch(B, n)
    inputs = {"source": points, "source_mask": np.ones((B, n), "bool"), "target": target}
    return lambda: model.train_on_batch(inputs, labels)


def torch_step(B, n, D, loop=False):
    import torch
    from torch_pointer_network import TorchPointerNetwork

    model = TorchPointerNetwork(D, loop)
    points, target, labels = map(torch.from_numpy, batch(B, n))
    loss, optimizer = torch.nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters())

    def work():
        optimizer.zero_grad()
        value = loss(model(points, target.long()).flatten(0, 1), labels.long().flatten())
        value.backward()
        optimizer.step()
        return value.item()

    return work


def torch_loop_step(**sizes):
    return torch_step(**sizes, loop=True)


COMPARISONS = [
    Comparison(
        "a step of training, LSTM pointer network, d {D}, {B} x {n} points",
        contenders={"keras_attention": our_step, "torch, step by step": torch_loop_step, "torch, one call": torch_step},
        sizes={"default": {"B": 128, "n": 20, "D": 256}, "smoke": {"B": 2, "n": 3, "D": 5}},
        targets={"default": {"torch, step by step": 0.6}},
        calls=3,
    ),
]
