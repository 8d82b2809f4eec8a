"""Initializers that serve several weights of one layer."""

import keras


def fresh(initializer):
    """A copy that draws its own numbers.

    An unseeded initializer of Keras is stateless: called twice for the same shape it gives the same numbers twice, and
    two kernels of a layer would start equal. A copy of an initializer with a seed keeps the seed, as the user asked.
    """
    return initializer.clone() if isinstance(initializer, keras.initializers.Initializer) else initializer


def get_initializer(identifier):
    """The initializer that an object or a config stands for. A name stays one: each weight makes an initializer of it."""
    return identifier if isinstance(identifier, str) else keras.initializers.get(identifier)
