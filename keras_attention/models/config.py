"""The config of a model: the arguments of its constructor, with what quantization has changed since."""

import keras

from keras_attention.saving.dtype_policies import with_policy
from keras_attention.saving.lookup import config_of


def config_of_model(model, **parts):
    """`model.config`, name and trainable, in plain dictionaries: Keras tracks those of a model.

    Args:
        model: The model.
        parts: Argument -> the layer, or the layers by name, that the model has made of it.
    """
    config = keras.saving.serialize_keras_object(model.config)
    config = with_policy(config, keras.dtype_policies.get(config.get("dtype")), model)
    for name, part in parts.items():
        config[name] = config_now(config[name], part)
    return {**config, "name": model.name, "trainable": model.trainable}


def config_now(config, part):
    """The config of what was made of `config`, if something in it is quantized; else, or if it was a name, as it was."""
    if not isinstance(config, dict):
        return config
    if isinstance(part, dict):
        return {name: config_now(each, part[name]) for name, each in config.items()}
    is_quantized = any(layer.quantization_mode is not None for layer in part._flatten_layers())
    return config_of(part) if is_quantized else config
