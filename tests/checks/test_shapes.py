import pytest

from keras_attention.checks import shapes


def test_unknown_sizes_never_differ():
    assert shapes.sizes_differ(3, 5)
    assert not shapes.sizes_differ(3, 3)
    assert not shapes.sizes_differ(None, 5)
    assert not shapes.sizes_differ(3, None)


def test_unknown_shapes_are_checked_as_far_as_they_are_known():
    shapes.check_attention_shapes((None, None, 7), (None, None, 11), (None, None, 7))
    shapes.check_attention_shapes((2, None, 7), (None, 5, 11), (2, 5, None))
    shapes.check_same_width((2, 3, None), (2, 5, 7), "DotScore")


@pytest.mark.parametrize(
    ("check", "arguments", "message"),
    [
        (
            shapes.check_rank,
            ("query", (7,), 2, "(..., T, D)"),
            "`query` must have at least 2 axes, `(..., T, D)`. Received shape (7,). "
            "Add the missing axes, for example a batch axis with `keras.ops.expand_dims(tensor, 0)`.",
        ),
        (
            shapes.check_same_rank,
            ((2, 7), (2, 5, 11), (2, 5, 11)),
            "`query`, `value` and `key` must have the same number of axes. Received query of shape (2, 7), "
            "value of shape (2, 5, 11) and key of shape (2, 5, 11). "
            "Add the missing axes, for example a length of one with `keras.ops.expand_dims(query, -2)`.",
        ),
        (
            shapes.check_same_batch,
            ((2, 3, 7), (4, 5, 11)),
            "`query` and `value` must agree in every axis left of the last two (batch axes). Received query of shape "
            "(2, 3, 7) and value of shape (4, 5, 11). Pass one memory for each query of the batch.",
        ),
        (
            shapes.check_same_length,
            ((2, 5, 11), (2, 4, 7)),
            "`key` and `value` must have the same length S. Received key of shape (2, 4, 7) (S=4) and value of shape "
            "(2, 5, 11) (S=5). Pass one key for each value, or leave `key` out to use `value` as key.",
        ),
        (
            shapes.check_same_width,
            ((2, 3, 7), (2, 5, 11), "DotScore"),
            "DotScore needs query and key of the same width D. Received query of shape (2, 3, 7) (D=7) and key of "
            'shape (2, 5, 11) (D=11). Use a score with weights, such as "bilinear" or "additive", or project one of '
            "the two.",
        ),
        (
            shapes.check_known_width,
            ("query", (2, 3, None)),
            "`query` must have a known last axis, its features. Received shape (2, 3, None). "
            "Give the size in `keras.Input(shape=(None, D))`.",
        ),
    ],
)
def test_a_message_names_the_rule_what_was_received_and_the_fix(check, arguments, message):
    with pytest.raises(ValueError) as error:
        check(*arguments)
    assert str(error.value) == message


def test_the_three_shapes_of_attention_are_checked_together():
    shapes.check_attention_shapes((2, 3, 7), (2, 5, 11), (2, 5, 13))
    with pytest.raises(ValueError, match=r"`query` must have at least 3 axes.* Received shape \(3, 7\)"):
        shapes.check_attention_shapes((3, 7), (5, 11), (5, 7))
    with pytest.raises(ValueError, match=r"same number of axes.* \(2, 3, 7\).* \(2, 13, 5, 11\)"):
        shapes.check_attention_shapes((2, 3, 7), (2, 13, 5, 11), (2, 13, 5, 7))
    with pytest.raises(ValueError, match=r"agree in every axis left of the last two.* \(2, 17, 3, 7\)"):
        shapes.check_attention_shapes((2, 17, 3, 7), (2, 13, 5, 11), (2, 13, 5, 7))
    with pytest.raises(ValueError, match=r"same length S.*\(S=4\).*\(S=5\)"):
        shapes.check_attention_shapes((2, 3, 7), (2, 5, 11), (2, 4, 7))


def test_lengths_are_compared_along_each_attention_axis():
    shapes.check_same_length((2, 3, 5, 11), (2, 13, 5, 7), axes=(2,))
    with pytest.raises(ValueError, match=r"\(S=13\).*\(S=3\)"):
        shapes.check_same_length((2, 3, 5, 11), (2, 13, 5, 7), axes=(1, 2))
