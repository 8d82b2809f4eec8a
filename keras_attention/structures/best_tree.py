"""The non-projective dependency tree of the highest score, by the algorithm of Chu, Liu and Edmonds.

Every group of words takes its best arc from outside; at first each word is a group. Where these arcs close a circle, its
groups become one, and an arc that enters the circle counts by how far its score is above that of the arc it replaces.
Once there is no circle the rounds are undone, the last one first: a group that another arc enters gives up its own arc.

Arcs are compared by an integer cost before their score. An arc from a root that may be taken only once costs 1, an arc
that is not allowed costs more than all of these together. So a tree has as few of them as possible, at any score.
"""

from keras import ops

from keras_attention.ops.divergence import with_nan
from keras_attention.ops.softmax import LOWEST
from keras_attention.structures.arcs import allowed_arcs, finite_arcs, has_no_tree, is_root, relative_scores

# Following heads 2^20 times leads from every word to the root or into a circle.
DOUBLINGS = 20


def over_group(reduce, same, values, initial):
    """For each word `(..., n)` the maximum or minimum of the values of its group and of `initial`."""
    values = ops.where(same, values[..., None, :], ops.cast(initial, values.dtype))
    return reduce(values, axis=-1, initial=initial)


def first_maximum(scores):
    """Index of the first maximum of each row, `(...)`. No argmax, which raises where there are no words."""
    is_maximum = ops.equal(scores, ops.max(scores, axis=-1, keepdims=True, initial=2 * LOWEST))
    word = ops.arange(ops.shape(scores)[-1], dtype="int32")
    return ops.min(ops.where(is_maximum, word, 2**30), axis=-1, initial=2**30)


def best_entering_arcs(same, costs, scores):
    """The best arc into each group of words from outside.

    Args:
        same: Boolean `(..., n, n)`, whether two words are of one group.
        costs, scores: `(..., n, n)`.

    Returns:
        For each word `(..., n)`: the head where the arc enters its group, which is the word itself for the root, or -1
        where the arc enters at another word; and the cost and the score of the arc of its group.
    """
    word = ops.arange(ops.shape(scores)[-1], dtype="int32")
    never = 2**30
    inside = ops.logical_and(same, ops.logical_not(is_root(scores)))
    costs = ops.where(inside, never, costs)
    cost = over_group(ops.min, same, ops.min(costs, axis=-1, initial=never), never)
    scores = ops.where(ops.equal(costs, cost[..., None]), scores, 2 * LOWEST)
    of_word = ops.max(scores, axis=-1, initial=2 * LOWEST)
    score = over_group(ops.max, same, of_word, 2 * LOWEST)
    candidate = ops.where(ops.equal(of_word, score), word, never)
    enters = ops.equal(over_group(ops.min, same, candidate, never), word)
    return ops.where(enters, first_maximum(scores), -1), cost, score


def follow(heads, labels):
    """Follows the heads of n words until all stand at the root or in a circle.

    Args:
        heads: Integers `(..., n)`, n for the root.
        labels: Integers `(..., n)`.

    Returns:
        Where each word ends, `(..., n)`, and the least of the labels on the way.
    """
    n = ops.shape(heads)[-1]
    root = ops.cast(ops.full_like(ops.sum(heads, axis=-1, keepdims=True), n), heads.dtype)

    def doubled(_, state):
        ends, least = state
        return ops.take_along_axis(ends, ends, axis=-1), ops.minimum(least, ops.take_along_axis(least, ends, axis=-1))

    start = tuple(ops.concatenate([tensor, root], axis=-1) for tensor in (heads, labels))
    ends, least = ops.fori_loop(0, DOUBLINGS, doubled, start)
    return ends[..., :-1], least[..., :-1]


def heads_of(selection):
    """The heads `(..., n)` that the one-hot rows of `selection (..., n, n)` name, n for the root."""
    heads = first_maximum(selection)
    word = ops.arange(ops.shape(selection)[-1], dtype="int32")
    return ops.where(ops.equal(heads, word), ops.shape(selection)[-1], heads)


def is_tree(selection, mask=None, *, single_root=True):
    """Boolean `(...)`: whether the ones of `selection (..., n, n)` are the arcs of a tree that is allowed."""
    allowed, is_present = allowed_arcs(selection, mask)
    has_one_head = ops.equal(ops.sum(selection, axis=-1), ops.cast(is_present, selection.dtype))
    has_only_allowed = ops.all(ops.logical_or(allowed, ops.equal(selection, 0.0)), axis=-1)
    n = ops.shape(selection)[-1]
    heads = ops.where(is_present, heads_of(selection), n)
    ends, _ = follow(heads, heads)
    holds = ops.logical_and(ops.logical_and(has_one_head, has_only_allowed), ops.equal(ends, n))
    roots = ops.sum(ops.where(is_root(selection), selection, 0.0), axis=(-2, -1))
    return ops.logical_and(ops.all(holds, axis=-1), roots <= (1.0 if single_root else ops.cast(n, selection.dtype)))


def rounds_of_contraction(costs, scores):
    """Labels and heads of the groups of words in every round, `(n, ..., n)`, and the number of rounds."""
    *batch, _, n = ops.shape(scores)
    word = ops.broadcast_to(ops.arange(n, dtype="int32"), (*batch, n))

    def body(index, _, label, cost, score, labels, heads):
        same = ops.equal(label[..., :, None], label[..., None, :])
        entering, least, best = best_entering_arcs(same, costs - cost[..., None], scores - score[..., None])
        at = ops.reshape(index, (1, 1))
        labels, heads = (
            ops.scatter_update(table, at, row[None]) for table, row in ((labels, label), (heads, entering))
        )
        group_heads = over_group(ops.max, same, ops.where(ops.equal(entering, word), n, entering), -1)
        ends, first = follow(group_heads, label)
        circles = ops.where(ends < n, ops.take_along_axis(label, ops.minimum(ends, n - 1), axis=-1), -1)
        in_circle = ops.any(ops.equal(label[..., :, None], circles[..., None, :]), axis=-1)
        cost, score = cost + ops.where(in_circle, least, 0), score + ops.where(in_circle, best, 0.0)
        return index + 1, ops.any(in_circle), ops.where(in_circle, first, label), cost, score, labels, heads

    tables = [ops.zeros((n, *batch, n), "int32") for _ in range(2)]
    start = (0, ops.any(costs >= 0), word, ops.zeros_like(word), ops.zeros((*batch, n), scores.dtype), *tables)
    index, *_, labels, heads = ops.while_loop(lambda index, go_on, *_: ops.logical_and(go_on, index < n), body, start)
    return labels, heads, index


def best_tree(scores, mask=None, *, single_root=True):
    """The tree with the highest sum of scores, its arcs as ones `(..., n, n)`; zeros where no tree is allowed.

    Args:
        scores, mask, single_root: As in `spanning_trees.log_partition_and_marginals`.

    Example:
        >>> best_tree(ops.array([[0.0, 2.0, 1.0], [3.0, 0.0, 5.0], [1.0, 4.0, 1.0]]))  # not the circle 5 + 4
        [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]

    References:
        Chu and Liu, 1965; Edmonds, 1967, Journal of Research of the National Bureau of Standards 71B.
    """
    if scores.shape[-1] == 0:
        return ops.zeros_like(scores)
    allowed, is_present = finite_arcs(scores, mask)
    n, diagonal = ops.shape(scores)[-1], is_root(scores)
    relative = ops.where(allowed, ops.stop_gradient(relative_scores(scores, allowed)[0]), 0.0)
    costs = ops.where(allowed, ops.cast(diagonal, "int32") if single_root else 0, n + 1)
    costs = ops.where(ops.logical_and(diagonal, ops.logical_not(is_present)[..., None]), 0, costs)
    labels, heads, rounds = rounds_of_contraction(costs, relative)

    def taken_back(index, found):
        label, entering = (ops.take(table, rounds - 1 - index, axis=0) for table in (labels, heads))
        same = ops.equal(label[..., :, None], label[..., None, :])
        is_entered = over_group(ops.max, same, found, -1) >= 0
        return ops.where(ops.logical_or(is_entered, entering < 0), found, entering)

    found = ops.fori_loop(0, rounds, taken_back, -ops.ones_like(ops.cast(is_present, "int32")))
    selection = ops.equal(found[..., None], ops.arange(n, dtype="int32"))
    selection = ops.cast(ops.logical_and(selection, is_present[..., None]), relative.dtype)
    has_tree = is_tree(selection, allowed, single_root=single_root)
    selection = ops.where(has_tree[..., None, None], selection, 0.0)
    return with_nan(selection, has_no_tree(scores, has_tree, mask), mask)
