"""Dtype policies of layers inside of others: quantization gives each one its own, which a config has to name.

Keras looks the policy of a layer up by its path, such as "block/feed_forward/output", where it was made with a
`keras.dtype_policies.DTypePolicyMap`; so a layer or model that is made with the map of another one has the same parts.
"""

import json
import re

import keras
from keras.dtype_policies import DTypePolicyMap


def policy_with_parts(policy, layer, key=re.escape):
    """`policy`, or, once a layer inside of `layer` is quantized, a map of the policies of all layers inside.

    Args:
        policy: What `layer` was made with.
        layer: A layer or a model.
        key: Function from the path of a part to the regular expression that it must match.

    Raises:
        ValueError: If a part has an activation quantizer of its own, which no policy holds.
    """
    parts = {part.path: part for part in layer._flatten_layers(include_self=False)}
    policies = {path: policy_at(part.dtype_policy, path) for path, part in parts.items()}
    changed = [
        path
        for path, part in parts.items()
        if part.quantization_mode is not None and policies[path] != policy_at(policy, path)
    ]
    for path in changed:
        check_quantizer(parts[path])
    if not changed:
        return policy
    default = default_policy(policy)
    return DTypePolicyMap(default, {key(path): each for path, each in policies.items() if path and each != default})


def with_policy(config, policy, layer, key=re.escape):
    """The config of `layer`, made with `policy`, with a dtype that also names the policies of the layers inside."""
    changed = policy_with_parts(policy, layer, key)
    return config if changed is policy else {**config, "dtype": keras.dtype_policies.serialize(changed)}


def with_policies_of_parts(config, layer):
    """The config of a layer, with a dtype that also names the policies of the layers inside wherever the layer is put."""

    def key(path):
        # A wrapper such as `Sequential` stands before the path of a layer that it built, but not of one read from a file.
        inside = path.removeprefix(f"{layer.path}/")
        return re.escape(path) if inside == path else f"(.*/)?{re.escape(layer.name)}/{re.escape(inside)}"

    return with_policy(config, layer.dtype_policy, layer, key)


def policy_at(policy, path, default=None):
    """The policy of the layer at `path` inside of a layer or model made with `policy`.

    A layer without others inside is given this policy: Keras cannot save a quantized layer that has a map. With a
    `default` it has that instead, quantized where a map says so.
    """
    found = policy[path] if isinstance(policy, DTypePolicyMap) and path else default_policy(policy)
    if default is None:
        return found
    default = keras.dtype_policies.get(default)
    is_named = found.quantization_mode is not None and found.compute_dtype == default.compute_dtype
    return found if is_named else default


def default_policy(policy):
    """The policy of the layers that a map doesn't name; a policy that is not a map stays."""
    return policy.default_policy if isinstance(policy, DTypePolicyMap) else policy


def part_policy(default, policy):
    """As `policy_at` with a default, for a part that has others inside."""
    default = keras.dtype_policies.get(default)
    if not isinstance(policy, DTypePolicyMap):
        return default
    named = {path: each for path, each in policy.items() if each.compute_dtype == default.compute_dtype}
    return DTypePolicyMap(default, named)


def check_quantizer(layer):
    """Raises unless a quantized layer reads its inputs as its policy says; another quantizer would not come back."""
    config = getattr(layer, "quantization_config", None)
    if not isinstance(config, keras.quantizers.Int8QuantizationConfig | keras.quantizers.Int4QuantizationConfig):
        return
    quantizers = (each.activation_quantizer for each in (config, type(config)()))
    received, usual = (
        each and json.dumps(each.get_config()) for each in quantizers
    )  # a list in one, a tuple in the other
    if received != usual:
        raise ValueError(
            f"The layer {layer.path!r} has an activation quantizer of its own, which cannot be saved with the layer or the "
            f"model around it. Received: {received}. Quantize by the mode alone: `quantize({config.mode!r})`."
        )
