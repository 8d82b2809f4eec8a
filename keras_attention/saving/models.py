"""Seeds in the files of models, where Keras leaves them out, and errors for tools of Keras that cannot handle our models."""

import inspect

import keras
import numpy as np

SEEDS = "seeds"  # in the file, beside the numbers of the weights


class SeededModel(keras.Model):
    """Base class of all models: a `.keras` file holds the states of their random numbers, and `save` refuses `.h5`.

    `keras.saving.save_model(model, "model.h5")` writes such a file all the same: it does not ask the model. The file loads by
    `keras.saving.load_model("model.h5", custom_objects={"Transformer": Transformer}, compile=False)` with the model's class,
    and its random numbers start anew.
    """

    def save(self, filepath, overwrite=True, zipped=None, **kwargs):
        check_keras_file(filepath)
        super().save(filepath, overwrite, zipped, **kwargs)

    def save_own_variables(self, store):
        super().save_own_variables(store)
        save_seeds(self, store)

    def load_own_variables(self, store):
        super().load_own_variables(load_seeds(self, store))


def check_keras_file(filepath):
    """Raises for a whole model in the older format of Keras 2, from which it does not come back as it was."""
    if str(filepath).endswith((".h5", ".hdf5")):
        raise ValueError(
            "A whole model is saved as a `.keras` file: an HDF5 file of it does not load by itself and lacks the states of its "
            f"random numbers. Received: {filepath}. Save `model.keras`, or the weights alone by "
            "`save_weights('model.weights.h5')`."
        )


def seed_states(model):
    """The variables of all seed generators inside of a model, in the order in which its layers stand."""
    return [variable for variable in model.variables if variable.name == "seed_generator_state"]


def save_seeds(model, store):
    """Puts the states of a model's seed generators into its `store`: a continued training draws the same numbers."""
    states = seed_states(model)
    if states:
        store[SEEDS] = np.stack([keras.ops.convert_to_numpy(state) for state in states])


def load_seeds(model, store):
    """Takes the states out of `store`, and returns what else is in it.

    They stay as they are where the file has none, as those of version 0.1, or those of another number of generators, as
    the weights of a model with dropout read by one without.
    """
    names = list(store.keys())
    entries = {name: store[name] for name in names}
    states, saved = seed_states(model), entries.pop(SEEDS, ())
    if len(saved) == len(states):
        for state, value in zip(states, saved, strict=True):
            state.assign(value)
    return entries


def made_of_arguments(model_class):
    """A model that makes its graph from its arguments, and raises where it is handed a graph.

    `keras.models.clone_model` hands the copy of a graph to a class whose constructor takes anything, `(*args, **kwargs)`;
    of any other class the copy would be a bare functional model, without its methods. Readers of the signature see the
    arguments all the same.
    """
    signature = inspect.signature(model_class)
    model_class.__init__ = _checked(model_class.__init__)
    model_class.__signature__ = _SignatureOf(model_class.__init__, signature)
    return model_class


def _checked(constructor):
    def checked(self, *args, **kwargs):
        if any(isinstance(leaf, keras.KerasTensor) for leaf in keras.tree.flatten(args)):
            name = type(self).__name__
            raise ValueError(
                f"A {name} makes its graph itself. Received the graph of a copy, as `keras.models.clone_model` makes it. "
                f"For a copy with fresh weights call `{name}.from_config(model.get_config())`; to copy the graph alone "
                "clone `keras.Model(model.input, model.output)`."
            )
        constructor(self, *args, **kwargs)

    return checked


class _SignatureOf:
    """The signature of a class and of those that inherit its constructor; others have their own."""

    def __init__(self, constructor, signature):
        self.constructor = constructor
        self.signature = signature

    def __get__(self, instance, owner):
        return self.signature if owner.__init__ is self.constructor else None
