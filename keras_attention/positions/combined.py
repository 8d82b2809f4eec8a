"""What several position schemes do together. `positions` are those of the queries and those of the keys."""

from keras_attention.ops.masks import insert_head_axes


def rotate(schemes, tensor, positions):
    """Query or key as the score reads it; `positions` are its own."""
    for scheme in schemes:
        tensor = scheme.rotate(tensor, positions)
    return tensor


def masks(schemes, positions):
    """The masks `(B or 1, T, S)` of the schemes that have one."""
    return [mask for scheme in schemes if (mask := scheme.mask(*positions)) is not None]


def bias(schemes, positions, rank):
    """The sum of what the schemes add to scores with `rank` axes, or `None`."""
    terms = [scheme.bias(*positions) for scheme in schemes if scheme.adds_bias]
    terms = [insert_head_axes(term, rank) for term in terms if term is not None]
    return sum(terms[1:], terms[0]) if terms else None
