"""Names as shorthands for objects: `score="additive"` stands for `AdditiveScore()`."""

import copy
import difflib

import keras

from keras_attention.ops.random import split_seed


def get_by_name(identifier, names, base, kind):
    """The object that `identifier` stands for.

    Args:
        identifier: A name of `names`, an instance of `base`, or the config that Keras wrote of one.
        names: Dictionary from name to class.
        base: Class that the object must belong to.
        kind: Word for messages, such as `"score"`.

    Raises:
        ValueError: If the name is unknown; the message lists the known ones.
        TypeError: If `identifier` is something else.
    """
    if isinstance(identifier, base):
        return identifier
    if isinstance(identifier, dict) and "config" in identifier:
        return get_by_name(from_config(identifier), names, base, kind)
    known = ", ".join(f'"{name}"' for name in sorted(names))
    if isinstance(identifier, str):
        if identifier in names:
            return names[identifier]()
        close = difflib.get_close_matches(identifier, names, n=1)
        hint = f' Did you mean "{close[0]}"?' if close else ""
        raise ValueError(f'Unknown {kind}: "{identifier}". Known: {known}.{hint}')
    one_of = f"one of {known} or " if known else ""
    raise TypeError(
        f"`{kind}` must be {one_of}an instance of `{base.__name__}`. "
        f"Received: {identifier!r} of type {type(identifier).__name__}."
    )


def copy_of(layer, index=0, **changes):
    """An unbuilt layer like this one but for `changes`, with weights of its own; its class need not be registered.

    Copies of different `index` have different seeds where the layer has one: choices by the same random numbers would
    not be independent of each other.
    """
    config = without(layer.get_config(), "shared_object_id", "build_config")
    if config.get("seed") is not None:
        config["seed"] = split_seed(config["seed"], index + 1)[index]
    return type(layer).from_config({**config, **changes})


def from_config(config):
    """The object that a config of Keras stands for. The config stays as it is: some layers take theirs apart."""
    return keras.saving.deserialize_keras_object(copy.deepcopy(config))


def config_of(layer):
    """Config from which `get_by_name` makes a layer like this one, unbuilt, whether or not this one is built.

    The layer that owns it builds it, also on loading; a second build would be an error.
    """
    config = without(keras.saving.serialize_keras_object(layer), "shared_object_id")
    return {name: value for name, value in config.items() if name != "build_config"}


def config_of_shared(layer):
    """As `config_of`, for a layer that others may share: while Keras writes a file, it has a number, the same for all of them.

    Keras numbers what it has seen before. Reading the file, it makes one object of all configs with the same number.
    """
    _, seen_before = keras.saving.serialize_keras_object(layer), keras.saving.serialize_keras_object(layer)
    number = {name: seen_before[name] for name in ("shared_object_id",) if name in seen_before}
    return {**config_of(layer), **number}


def without(config, *names):
    """The config without these entries, which Keras adds to that of any part.

    By "shared_object_id" it takes two copies of a part for one object while it loads a file; by "build_config" it builds.
    """
    if isinstance(config, dict):
        return {name: without(value, *names) for name, value in config.items() if name not in names}
    return [without(value, *names) for value in config] if isinstance(config, list) else config


def described(thing):
    """`repr` of an object from its config: `WarmupInverseSquareRoot(hidden_dim=512, warmup_steps=4000, scale=1.0)`."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in thing.get_config().items())
    return f"{type(thing).__name__}({arguments})"
