"""Heads of the query in groups, each of which reads one head of the memory: grouped-query attention.

The heads of a group follow each other. K is the number of heads of key and value, and of groups.
"""

from keras import ops

from keras_attention.checks.arguments import check_positive_integer


def heads_per_group(num_heads, num_key_value_heads):
    """How many heads of the query read one head of key and value; `None` stands for as many as the query has."""
    if num_key_value_heads is None:
        return 1
    K = check_positive_integer("num_key_value_heads", num_key_value_heads)
    if num_heads % K:
        raise ValueError(
            "`num_heads` must be a multiple of `num_key_value_heads`: as many heads of the query read each head of key and "
            f"value. Received num_heads={num_heads} and num_key_value_heads={K}."
        )
    return num_heads // K


def in_groups(tensor, group):
    """`(..., N, T, H)` -> `(..., K, N/K · T, H)`: the queries of the heads that read one head, as one longer query."""
    if group == 1:
        return tensor
    *batch, N, T, H = ops.shape(tensor)
    return ops.reshape(tensor, (*batch, N // group, group * T, H))


def out_of_groups(tensor, group):
    """Undoes `in_groups`: `(..., K, N/K · T, S)` -> `(..., N, T, S)`."""
    if group == 1:
        return tensor
    *batch, K, rows, S = ops.shape(tensor)
    return ops.reshape(tensor, (*batch, K * group, rows // group, S))


def repeated(tensor, group):
    """`(..., K, S, H)` -> `(..., N, S, H)`: the heads of a memory once for each head of the query."""
    return tensor if group == 1 else ops.repeat(tensor, group, axis=-3)
