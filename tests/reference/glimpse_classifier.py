"""The recurrent model of visual attention in NumPy, one image and one glimpse at a time, straight from the formulas."""

import numpy as np
from reference import glimpses


def dense(inputs, weights):
    kernel, bias = weights
    return inputs @ kernel + bias


def relu(x):
    return np.maximum(x, 0)


def look(image, weights, num_glimpses, size, num_scales):
    """Locations `(T, 2)` and logits after each glimpse `(T, num_classes)`, with mean locations.

    Args:
        weights: Name of a layer -> `[kernel, bias]`.
    """
    location, hidden = np.zeros(2), np.zeros(weights["core"][1].shape)
    locations, logits = [], []
    for _ in range(num_glimpses):
        locations.append(location)
        what = relu(dense(glimpses.glimpse(image, location, size, num_scales, 2).ravel(), weights["what"]))
        where = relu(dense(location, weights["where"]))
        glimpse = relu(dense(np.concatenate([what, where]), weights["glimpse"]))
        hidden = relu(dense(np.concatenate([glimpse, hidden]), weights["core"]))
        logits.append(dense(hidden, weights["action"]))
        location = np.tanh(dense(hidden / len(hidden) ** 0.25, weights["next_location"]))
    return np.array(locations), np.array(logits)
