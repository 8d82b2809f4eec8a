import math

import numpy as np
import pytest

from keras_attention.checks import arguments


@pytest.mark.parametrize(
    ("check", "given", "message"),
    [
        (arguments.check_positive_integer, ("units", 0), "`units` must be a positive integer. Received: 0."),
        (arguments.check_rate, ("dropout", 1.0), "`dropout` must be a number in [0, 1). Received: 1.0."),
        (arguments.check_rate, ("dropout", -0.1), "`dropout` must be a number in [0, 1). Received: -0.1."),
        (
            arguments.tuple_of_integers,
            ("output_shape", 8.0),
            "`output_shape` must be an integer, a list or tuple of such integers, or `None`. Received: 8.0.",
        ),
        (
            arguments.tuple_of_integers,
            ("attention_axes", (1, "2")),
            "`attention_axes` must be an integer, a list or tuple of such integers, or `None`. Received: (1, '2').",
        ),
        (
            arguments.tuple_of_integers,
            ("attention_axes", ()),
            "`attention_axes` must be an integer, a list or tuple of such integers, or `None`. Received: ().",
        ),
        (
            arguments.tuple_of_integers,
            ("output_shape", (3, 0), 1),
            "`output_shape` must be an integer of 1 or more, a list or tuple of such integers, or `None`. Received: (3, 0).",
        ),
        (
            arguments.tuple_of_integers,
            ("attention_axes", True),
            "`attention_axes` must be an integer, a list or tuple of such integers, or `None`. Received: True.",
        ),
        (arguments.check_positive, ("scale", math.inf), "`scale` must be a positive number. Received: inf."),
    ],
)
def test_a_message_names_the_rule_and_what_was_received(check, given, message):
    with pytest.raises(ValueError) as error:
        check(*given)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("check", "value", "message"),
    [
        (arguments.check_positive_integer, 1.5, "`units` must be a positive integer. Received: 1.5 of type float."),
        (arguments.check_positive_integer, True, "`units` must be a positive integer. Received: True of type bool."),
        (arguments.check_rate, "0.1", "`units` must be a number in [0, 1). Received: '0.1' of type str."),
        (arguments.check_rate, False, "`units` must be a number in [0, 1). Received: False of type bool."),
        (arguments.check_boolean, 1, "`units` must be `True` or `False`. Received: 1 of type int."),
    ],
)
def test_a_wrong_type_is_a_value_error_as_in_keras(check, value, message):
    with pytest.raises(ValueError) as error:
        check("units", value)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("check", "value", "expected"),
    [
        (arguments.check_positive_integer, np.int64(6), 6),
        (arguments.check_positive, np.float32(0.5), 0.5),
        (arguments.check_rate, np.float32(0.25), 0.25),
        (arguments.check_boolean, np.bool_(True), True),
        (arguments.tuple_of_integers, np.int64(6), (6,)),
        (arguments.tuple_of_integers, [np.int32(1), 2], (1, 2)),
    ],
)
def test_numbers_of_numpy_become_those_of_python(check, value, expected):
    found = check("units", value)
    assert found == expected
    assert type(found) is type(expected)
    assert "np." not in repr(found)


def test_an_integer_stands_for_a_tuple_of_one():
    assert arguments.tuple_of_integers("output_shape", 8) == (8,)
    assert arguments.tuple_of_integers("output_shape", [8, 5]) == (8, 5)
    assert arguments.tuple_of_integers("output_shape", None) is None


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (1.5, TypeError, "`copies` must be an integer. Received copies=1.5 of type float. Pass an `int`."),
        (True, TypeError, "`copies` must be an integer. Received copies=True of type bool. Pass an `int`."),
        (2, ValueError, "`copies` must be at least 3. Received copies=2."),
    ],
)
def test_integers_of_functions_have_a_least_value(value, error, message):
    with pytest.raises(error) as raised:
        arguments.check_at_least("copies", value, 3)
    assert str(raised.value) == message
    assert type(arguments.check_at_least("copies", np.int64(3), 3)) is int


def test_columns_have_the_same_number_of_entries():
    arguments.check_same_number("Cut them.", examples=[1, 2], answers=np.zeros((2, 3)))
    message = (
        "There must be examples, and as many answers and titles. Received 2 examples, 3 answers and 2 titles. Cut them."
    )
    with pytest.raises(ValueError) as raised:
        arguments.check_same_number("Cut them.", examples=[1, 2], answers=np.zeros((3, 5)), titles="ab")
    assert str(raised.value) == message
    with pytest.raises(ValueError, match="Received 0 examples and 0 answers"):
        arguments.check_same_number("", examples=[], answers=[])
