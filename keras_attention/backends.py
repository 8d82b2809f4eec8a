"""The Keras backends that the package runs on."""

import os

BACKENDS = ("tensorflow", "jax", "torch")


def check_backend(name):
    """Raises for a backend that `keras_attention` does not run on; `None` is the default of Keras."""
    if name is not None and name not in BACKENDS:
        raise ValueError(
            f"Unknown Keras backend: {name!r}. keras_attention runs on {', '.join(BACKENDS)}. "
            "Set the environment variable KERAS_BACKEND to one of them before Python starts."
        )


# Before Keras is imported: its own message does not say what is allowed.
check_backend(os.environ.get("KERAS_BACKEND") or None)
