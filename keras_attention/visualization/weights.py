"""The check of the attention weights of a plot."""

ROUNDING = 1e-3  # how far a weight may be outside [0, 1]; half precision rounds


def check_weights(name, weights):
    """Raises unless the weights, an array, are numbers from 0 to 1."""
    if weights.size and not -ROUNDING <= weights.min() <= weights.max() <= 1.0 + ROUNDING:
        raise ValueError(
            f"`{name}` must be numbers from 0 to 1. Received weights from {weights.min():.4g} to {weights.max():.4g}. Pass the "
            "weights after the softmax, not the scores."
        )
