"""What the constraints allow, compared with all answers of their definitions on every mask of up to four real positions."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops
from reference.pointer_answers import is_permutation, is_polygon, is_triangles

from keras_attention.decoding import Constraint, Permutation, Polygon, Triangles, constraints

END = 0  # before the positions 1 to S
S = 5
MASKS = [mask for mask in itertools.product([False, True], repeat=S) if sum(mask) <= 4]
ROWS = 512  # of one call: JAX compiles every shape anew


@keras.saving.register_keras_serializable(package="test_constraints")
class Forward(Constraint):
    """A path that never goes back, and takes at most `limits[0]` steps of at most `limits[1]`."""

    def __init__(self, limits=(3, 2)):
        self.limits = list(limits)

    def positions(self, mask, counts, last):
        ids = ops.cumsum(ops.ones_like(counts), axis=-1)
        near = ops.logical_and(ids > last[..., None], ids <= last[..., None] + self.limits[1])
        return ops.logical_and(mask, ops.logical_and(near, ops.sum(counts, axis=-1, keepdims=True) < self.limits[0]))

    def get_config(self):
        return {"limits": self.limits}


# === All answers ===


def allowed_ids(constraint, masks, answers):
    """Boolean `(len(answers), S + 1)`: the ids that may follow each answer on its mask."""
    allowed = []
    for first in range(0, len(answers), ROWS):
        mask, counts, last = np.zeros((ROWS, S), bool), np.zeros((ROWS, S), "int32"), np.zeros(ROWS, "int32")
        for row, (one, answer) in enumerate(zip(masks[first:][:ROWS], answers[first:][:ROWS], strict=True)):
            mask[row] = one
            for index in answer:
                counts[row, index - 1] += 1
                last[row] = index
        allowed.append(ops.convert_to_numpy(constraint(*map(ops.convert_to_tensor, (mask, counts, last)))))
    return np.concatenate(allowed)[: len(answers)] if answers else []


def walk(constraint, steps):
    """For each mask of MASKS the set of the answers of at most `steps` positions that the constraint lets end."""
    ended = {mask: set() for mask in MASKS}
    masks, answers = list(MASKS), [()] * len(MASKS)
    for _ in range(steps + 1):
        following = []
        for mask, answer, allowed in zip(masks, answers, allowed_ids(constraint, masks, answers), strict=True):
            assert allowed.any()
            if allowed[END]:
                ended[mask].add(answer)
            following += [(mask, (*answer, index)) for index in np.flatnonzero(allowed) if index != END]
        masks, answers = [mask for mask, _ in following], [answer for _, answer in following]
    return ended


def ids(mask):
    """The ids of the real positions."""
    return [index for index, real in enumerate(mask, start=1) if real]


def sequences(real, steps):
    return {answer for length in range(steps + 1) for answer in itertools.product(real, repeat=length)}


def permutations(real, steps):
    return set(itertools.permutations(real))


def selections(min_vertices):
    def answers(real, steps):
        lengths = range(min(min_vertices, len(real)), len(real) + 1)
        return {answer for length in lengths for answer in itertools.permutations(real, length)}

    return answers


def triangles(real, steps):
    corners = list(itertools.combinations(real, 3))
    numbers = range(1, steps // 3 + 1) if corners else [0]
    return {sum(answer, ()) for number in numbers for answer in itertools.product(corners, repeat=number)}


def forward(real, steps):
    """Or the end at once, where the first step can't be made."""
    found = {()}
    for length in range(1, 4):
        for answer in itertools.combinations(real, length):
            found |= {answer} if max(np.diff((0, *answer))) <= 2 else set()
    return found


@pytest.mark.parametrize(
    ("constraint", "definition", "steps"),
    [
        (Constraint(), sequences, 3),
        (Permutation(), permutations, 5),
        (Polygon(), selections(3), 5),
        (Polygon(min_vertices=1), selections(1), 5),
        (Polygon(min_vertices=7), selections(7), 5),
        (Triangles(), triangles, 9),
        (Forward(), forward, 5),
    ],
    ids=["none", "permutation", "polygon", "polygon_of_1", "polygon_of_7", "triangles", "of_a_user"],
)
def test_the_answers_are_those_of_the_definition_on_every_mask(constraint, definition, steps):
    for mask, answers in walk(constraint, steps).items():
        assert answers == definition(ids(mask), steps), mask


def test_after_two_triangles_for_each_point_comes_the_end():
    mask, counts = np.array([[True, False, True, True]]), np.array([[5, 0, 5, 5]], "int32")
    for whole, expected in ((0, [True, True, False, False, False]), (1, [True, False, False, False, False])):
        received = Triangles()(mask, ops.convert_to_tensor(counts + whole), ops.array([4]))
        assert ops.convert_to_numpy(received).tolist() == [expected]


# === Long answers ===


@pytest.mark.parametrize(
    ("constraint", "is_valid", "length"),
    [(Permutation(), is_permutation, 200), (Polygon(), is_polygon, 200), (Triangles(), is_triangles, 29)],
    ids=["permutation", "polygon", "triangles"],
)
def test_a_random_walk_never_leaves_the_rules_and_always_ends(constraint, is_valid, length, rng):
    numbers = np.array([0, 1, 2, 3, 7, length // 2, length] * 2)
    chance_of_the_end = np.repeat([1.0, 1e-9], 7)  # the second half ends where nothing else is left
    mask = np.argsort(rng.uniform(size=(14, length)), axis=-1) < numbers[:, None]  # padding anywhere
    counts, last, answers = np.zeros((14, length), "int32"), np.zeros(14, "int32"), [[] for _ in numbers]
    live = np.ones(14, bool)
    for _ in range(constraint.max_length(length)):
        allowed = ops.convert_to_numpy(constraint(*map(ops.convert_to_tensor, (mask, counts, last))))
        assert allowed.any(-1).all()
        weights = allowed * rng.uniform(size=allowed.shape)
        weights[:, END] *= chance_of_the_end
        last = np.where(live, np.argmax(weights, axis=-1), END).astype("int32")
        live &= last != END
        for row in np.flatnonzero(live):
            answers[row].append(int(last[row]))
            counts[row, last[row] - 1] += 1
    assert not live.any()
    assert all(is_valid(answer, ids(real)) for answer, real in zip(answers, mask, strict=True))


# === All steps at once ===


@pytest.mark.parametrize("name", [None, "permutation", "polygon", "triangles"])
def test_all_steps_at_once_equal_one_after_the_other(name, rng):
    constraint, B, T = constraints.get(name), 2, 7
    mask, target = rng.uniform(size=(B, S)) < 0.8, rng.integers(0, S + 1, (B, T)).astype("int32")
    chosen = target[..., None] == np.arange(1, S + 1)  # (B, T, S)
    counts = np.cumsum(chosen, axis=1).astype("int32")
    at_once = constraint(*map(ops.convert_to_tensor, (mask[:, None], counts, target)))
    assert tuple(at_once.shape) == (B, T, S + 1)
    for step in range(T):
        expected = constraint(*map(ops.convert_to_tensor, (mask, counts[:, step], target[:, step])))
        np.testing.assert_array_equal(ops.convert_to_numpy(at_once)[:, step], ops.convert_to_numpy(expected))


@pytest.mark.parametrize("constraint", [Constraint(), Permutation(), Polygon(), Triangles()])
def test_without_a_single_position_the_end_is_all_there_is(constraint):
    empty = np.zeros((2, 0))
    received = constraint(ops.cast(empty, "bool"), ops.cast(empty, "int32"), ops.zeros(2, "int32"))
    assert ops.convert_to_numpy(received).tolist() == [[True], [True]]
    assert constraint.max_length(0) == 1


# === Objects ===

EQUAL = {
    "permutation": Permutation(),
    "polygon": Polygon(3),
    "triangles": Triangles(),
}


@pytest.mark.parametrize("name", EQUAL)
def test_a_name_an_object_and_its_config_are_one(name):
    constraint = constraints.get(name)
    config = keras.saving.serialize_keras_object(constraint)
    assert constraint == EQUAL[name] == constraints.get(config) == constraints.get(constraint)
    assert constraints.get(constraint) is constraint
    assert hash(constraint) == hash(EQUAL[name])


def test_none_is_the_base_class_and_has_a_config():
    constraint = constraints.get(None)
    assert type(constraint) is Constraint and constraint == Constraint()
    assert constraints.get(keras.saving.serialize_keras_object(constraint)) == constraint


def test_those_that_allow_something_else_differ():
    different = [Constraint(), Permutation(), Polygon(), Polygon(5), Triangles(), Forward(), Forward((1, 2))]
    assert all(one != other for one, other in itertools.combinations(different, 2))
    assert len(set(different)) == 7 and Permutation() != "permutation"


def test_a_constraint_of_the_user_comes_back_from_its_config():
    constraint = Forward((5, 7))
    assert constraints.get(keras.saving.serialize_keras_object(constraint)) == constraint
    assert len({constraint, Forward((5, 7))}) == 1


class Careless(Constraint):
    """Looks neither at the mask nor after its argument."""

    def __init__(self, argument):
        self.argument = argument

    def positions(self, mask, counts, last):
        return counts == 0


def test_padding_is_never_allowed_whatever_a_constraint_says():
    allowed = Careless(3)(ops.array([[True, False]]), counts=ops.array([[0, 0]]), last=ops.array([0]))
    assert ops.convert_to_numpy(allowed).tolist() == [[True, True, False]]


def answering(**answers):
    """A constraint whose methods return what is given."""
    methods = {name: lambda self, mask, counts, last, answer=answer: answer for name, answer in answers.items()}
    return type("Answering", (Constraint,), methods)()


@pytest.mark.parametrize(
    ("answers", "error", "message"),
    [
        (
            {"positions": np.zeros((2, 3), "float32")},
            TypeError,
            r"`Answering.positions` must .* boolean .* Received: float32",
        ),
        (
            {"positions": [[True] * 3] * 2},
            TypeError,
            r"`\(..., S\)`, the shape of `counts`, here \(2, 3\)\. Received: list",
        ),
        ({"positions": np.ones((2, 3, 3), "bool")}, ValueError, r"here \(2, 3\)\. Received shape \(2, 3, 3\)"),
        ({"positions": np.ones((2,), "bool")}, ValueError, r"here \(2, 3\)\. Received shape \(2,\)"),
        (
            {"positions": np.ones((2, 1), "bool")},
            ValueError,
            r"Received shape \(2, 1\)\. Pass it through `ops.broadcast_to`",
        ),
        ({"end": np.zeros((2,), "int32")}, TypeError, r"`Answering.end` must .* `\(...\)`, .* Received: int32"),
        ({"end": np.ones((2, 1), "bool")}, ValueError, r"the shape of `last`, here \(2,\)\. Received shape \(2, 1\)"),
        ({"end": False}, TypeError, r"Received: bool\. Compare, .* or use `ops.zeros_like\(last, 'bool'\)`"),
    ],
)
def test_what_a_constraint_of_the_user_returns_is_checked(answers, error, message):
    answers = {
        name: ops.convert_to_tensor(answer) if isinstance(answer, np.ndarray) else answer
        for name, answer in answers.items()
    }
    with pytest.raises(error, match=message):
        answering(**answers)(ops.ones((2, 3), "bool"), ops.zeros((2, 3), "int32"), ops.zeros((2,), "int32"))


def test_a_constraint_is_shown_as_it_is_written():
    assert [repr(each) for each in (Constraint(), Polygon(5), Forward())] == [
        "Constraint()",
        "Polygon(min_vertices=5)",
        "Forward(limits=[3, 2])",
    ]
    assert repr(Careless(3)) == "Careless()"  # it has no config


def test_a_constraint_with_arguments_must_have_a_config():
    with pytest.raises(
        NotImplementedError, match=r"Careless has arguments of its own and must define `get_config\(\)`"
    ):
        keras.saving.serialize_keras_object(Careless(3))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: constraints.get("polygone"), ValueError, r'Unknown constraint: "polygone".*Did you mean "polygon"'),
        (lambda: constraints.get(Permutation), TypeError, r"an instance of `Constraint`. Received: .* of type type"),
        (lambda: constraints.get(3), TypeError, r'`constraint` must be one of "permutation".* Received: 3 of type int'),
        (lambda: Polygon(0), ValueError, "`min_vertices` must be a positive integer. Received: 0"),
        (lambda: Polygon(2.5), ValueError, r"`min_vertices` must be a positive integer. Received: 2.5 of type float"),
    ],
)
def test_mistakes_are_named(make, error, message):
    with pytest.raises(error, match=message):
        make()
