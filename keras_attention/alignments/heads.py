"""Weights of an alignment of which each head has its own."""


def shape_by_head(alignment, scores_shape):
    """`(N, 1, 1)`, one number for each of the `alignment.num_heads` heads of scores `(..., N, T, S)`; `()` where it is `None`.

    Raises:
        ValueError: If the scores have another number of heads.
    """
    N, name = alignment.num_heads, type(alignment).__name__
    if N is None:
        return ()
    if len(scores_shape) < 3 or scores_shape[-3] != N:
        raise ValueError(
            f"An {name} with num_heads={N} takes scores of shape (..., {N}, T, S). Received shape {tuple(scores_shape)}. "
            "Pass the number of heads, or leave `num_heads` out."
        )
    return N, 1, 1
