"""What a pointer network serves: its signatures, and the checks of their rows."""

import keras
from keras import ops

from keras_attention.models.points import BEHIND_END, no_position
from keras_attention.tokens import PAD


def pointer_signatures(model, max_length, sampler):
    """What `keras_attention.serving.export` writes of a `PointerNetwork`, for any number of points.

        point   points (B, S, F), lengths (B,) -> indices (B, L), probabilities (B, L), scores (B,)
        score   points (B, S, F), lengths (B,), indices (B, T) -> scores (B,)

    A row has `lengths[b]` points, the rest is padding. `probabilities[t]` is how probable `indices[t]` is, given the
    indices before it; 0 after the end. The scores are those of the sampler and of `log_probability`.
    """
    feature_dim = model.config["feature_dim"]
    inputs = {
        "points": keras.KerasTensor((None, None, feature_dim), dtype="float32", name="points"),
        "lengths": keras.KerasTensor((None,), dtype="int32", name="lengths"),
    }

    def source_of(points, lengths):
        mask = ops.arange(ops.shape(points)[1], dtype="int32") < lengths[:, None]
        return {"source": points, "source_mask": mask}

    def point(points, lengths):
        source = source_of(points, lengths)
        indices, scores = model.search(source, max_length, sampler)
        return {"indices": indices, "probabilities": probabilities(model, source, indices), "scores": scores}

    def score(points, lengths, indices):
        return {"scores": model.score(source_of(points, lengths), indices)}

    indices = keras.KerasTensor((None, None), dtype="int32", name="indices")
    of_points, of_indices = served_checks()
    return {
        "point": (point, inputs, of_points),
        "score": (score, {**inputs, "indices": indices}, [*of_points, *of_indices]),
    }


def probabilities(model, source, indices):
    """The probability of each index `(B, L)` or `(B, n, L)`, given those before it; 0 after the end."""
    shape = ops.shape(indices)
    if len(shape) == 3:
        source = keras.tree.map_structure(lambda tensor: ops.repeat(tensor, shape[1], axis=0), source)
        indices = ops.reshape(indices, (shape[0] * shape[1], shape[2]))
    gained = ops.exp(model.token_log_probabilities(source, indices))
    return ops.reshape(ops.where(model.target_mask(indices), gained, 0.0), shape)


def served_checks():
    """What `check_points` and `check_indices` check in Python, for the rows of a served signature.

    Returns:
        Two lists of checks `(reason, function of the inputs -> boolean (B,))`: those of `points (B, S, F)` and
        `lengths (B,)`, and those of `indices (B, T)` for them.
    """

    def has_impossible_length(points, lengths, **_):
        return (lengths < 0) | (lengths > ops.shape(points)[1])

    def is_not_finite(points, lengths, **_):
        real = ops.arange(ops.shape(points)[1], dtype="int32") < lengths[:, None]
        return ops.any(real & ~ops.all(ops.isfinite(points), axis=-1), axis=-1)

    def goes_on_behind_end(indices, **_):
        return ops.any((indices[:, 1:] != PAD) & (indices[:, :-1] == PAD), axis=-1)

    def points_outside(indices, lengths, **_):
        return ops.any((indices < 0) | (indices > lengths[:, None]), axis=-1)

    of_points = [
        ("`lengths` must be from 0 to the number of points.", has_impossible_length),
        ("The features of real positions must be finite.", is_not_finite),
    ]
    return of_points, [(BEHIND_END, goes_on_behind_end), (no_position("indices"), points_outside)]
