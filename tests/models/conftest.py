"""Transformers of a few thousand weights."""

import keras
import numpy as np
import pytest

from keras_attention.models import Transformer

SOURCE_VOCABULARY, TARGET_VOCABULARY = 19, 23
SOURCE = np.array([[4, 5, 6, 7, 8, 9, 10], [11, 12, 13, 14, 0, 0, 0]], "int32")  # B = 2, S = 7
TARGET = np.array([[1, 7, 8, 9, 10], [1, 11, 12, 0, 0]], "int32")  # T = 5
LABELS = np.array([[7, 8, 9, 10, 2], [11, 12, 2, 0, 0]], "int32")


def padded(ids, kind):
    """The rows of `ids (2, n)` with their padding on the "right", on the "left", or in "holes" and on both sides."""
    result = np.zeros((2, 2 * ids.shape[1] + 1), ids.dtype)
    for row, tokens in zip(result, ids, strict=True):
        real = tokens[tokens != 0]
        n = np.arange(len(real))
        row[{"right": n, "left": n - len(real), "holes": 2 * n + 1}[kind]] = real
    return result


def make_transformer(**arguments):
    keras.utils.set_random_seed(3)
    defaults = {"num_layers": 2, "num_heads": 2, "hidden_dim": 6, "intermediate_dim": 13, "dropout": 0.3, "seed": 5}
    if not arguments.get("tie_embeddings"):
        defaults["target_vocabulary_size"] = TARGET_VOCABULARY
    return Transformer(SOURCE_VOCABULARY, **{**defaults, **arguments})


VARIANTS = {
    "as_in_the_paper": {},
    "normalize_first": {"normalize_first": True},
    "tied_and_additive": {"tie_embeddings": True, "score": "additive"},
}


@pytest.fixture(scope="session")
def transformers():
    """One untrained model for each variant; tests that train make their own."""
    return {name: make_transformer(**arguments) for name, arguments in VARIANTS.items()}


not_on_jax = pytest.mark.skipif(
    keras.backend.backend() == "jax",
    reason="JAX compiles every model for every shape; one case of a kind is left there",
)


@pytest.fixture(
    params=[
        "as_in_the_paper",
        *(pytest.param(name, marks=not_on_jax) for name in ("normalize_first", "tied_and_additive")),
    ],
    scope="session",
)
def transformer(request, transformers):
    return transformers[request.param]
