"""Numbers and switches of every constructor: NumPy's are taken, what is none is refused by one rule."""

import inspect
import json
import math

import numpy as np
import pytest
from contract.cases import CASES, each

OF_KERAS = {"trainable", "dtype", "name", "reduction"}


def given(case):
    """Arguments of the constructor, those of the case before the defaults."""
    parameters = inspect.signature(case.kind).parameters
    defaults = {name: each.default for name, each in parameters.items() if name not in OF_KERAS}
    return {**{name: value for name, value in defaults.items() if value is not inspect.Parameter.empty}, **case.options}


def each_argument(*kinds):
    """Runs a test once for each argument whose value in the case, or whose default, is of one of the types."""
    pairs = [(case, name) for case in CASES if not case.variant for name in given(case)]
    chosen = [
        pytest.param(*pair, id="-".join(map(str, pair))) for pair in pairs if type(given(pair[0])[pair[1]]) in kinds
    ]
    return pytest.mark.parametrize(("case", "name"), chosen)


def assert_refused(case, name, wrong, words):
    for value in wrong:
        with pytest.raises(ValueError, match=rf"`{name}` must be {words}.*Received: {value!r}"):
            case.make(**{name: value})


@each([case for case in CASES if not case.variant])
def test_numbers_of_numpy_are_those_of_python(case):
    of_numpy = {int: np.int64, float: np.float64, bool: np.bool_}
    options = {name: value for name, value in given(case).items() if type(value) in of_numpy}
    if "seed" in given(case):
        options["seed"] = 5
    config = case.make(**{name: of_numpy[type(value)](value) for name, value in options.items()}).get_config()
    config = json.loads(json.dumps(config))
    assert {name: config[name] for name in options if not isinstance(config[name], dict)} == {
        name: value for name, value in options.items() if not isinstance(config[name], dict)
    }


@each_argument(int)
def test_what_is_no_integer_is_refused_by_name(case, name):
    assert_refused(case, name, [1.5, True, "2"], "")


@each_argument(float)
def test_what_is_no_finite_number_is_refused_by_name(case, name):
    assert_refused(case, name, [True, "0.1", math.nan, math.inf], "")


@each_argument(bool)
def test_what_is_neither_true_nor_false_is_refused_by_name(case, name):
    assert_refused(case, name, [1, "yes", None], r"`True` or `False`\.")


@each([case for case in CASES if not case.variant and "seed" in given(case)])
def test_what_is_no_seed_is_refused_by_name(case):
    assert_refused(case, "seed", [-1, 0.5, True], r"an integer of 0 or more, or `None`\.")
