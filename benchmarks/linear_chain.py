"""Marginals of a linear chain of C states and the gradient of a function of them, beside torch-struct."""

import numpy as np
from side_by_side import Comparison


def batch(B, T, C):
    """`(unary (B, T, C), pairwise (C, C), factors (B, T, C))`."""
    rng = np.random.default_rng(1)
    return [rng.normal(size=shape).astype("float32") for shape in ((B, T, C), (C, C), (B, T, C))]


def ours(B, T, C, jit_compile=True):
    import tensorflow as tf

    from keras_attention.structures.linear_chain import chain_marginals

    unary, pairwise, factors = map(tf.constant, batch(B, T, C))

    @tf.function(jit_compile=jit_compile)
    def step(unary, pairwise):
        with tf.GradientTape() as tape:
            tape.watch([unary, pairwise])
            total = tf.reduce_sum(factors * chain_marginals(unary, pairwise))
        return tape.gradient(total, [unary, pairwise])

    return lambda: [gradient.numpy() for gradient in step(unary, pairwise)]


def ours_without_xla(**sizes):
    return ours(**sizes, jit_compile=False)


def torch_struct(B, T, C):
    import torch
    from torch_struct import LinearChainCRF

    unary, pairwise, factors = map(torch.from_numpy, batch(B, T, C))
    unary.requires_grad_(), pairwise.requires_grad_()

    def work():
        # Its potentials are those of the T - 1 pairs, [next, previous].
        potentials = unary[:, 1:, :, None] + pairwise.T
        potentials = torch.cat([potentials[:, :1] + unary[:, :1, None, :], potentials[:, 1:]], dim=1)
        pairs = LinearChainCRF(potentials).marginals
        marginals = torch.cat([pairs[:, :1].sum(dim=-2), pairs.sum(dim=-1)], dim=1)  # (B, T, C)
        return [gradient.numpy() for gradient in torch.autograd.grad((factors * marginals).sum(), [unary, pairwise])]

    return work


COMPARISONS = [
    Comparison(
        "marginals of {B} linear chains, {T} positions of {C} states, and their gradient",
        contenders={
            "keras_attention, XLA": ours,
            "the same without XLA": ours_without_xla,
            "torch-struct": torch_struct,
        },
        sizes={"default": {"B": 32, "T": 128, "C": 10}, "smoke": {"B": 2, "T": 3, "C": 5}},
        targets={"default": {"torch-struct": 0.12}},
    ),
]
