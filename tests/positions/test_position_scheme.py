"""What an attention takes as a position scheme. `test_every_scheme.py` runs those of a user beside those of the package."""

import numpy as np
import pytest
from reference.arrays import normal, to_numpy
from reference.schemes import B, D, Distant, H, N, T
from tolerances import EXACT

from keras_attention import positions
from keras_attention.layers import MultiHeadAttention
from keras_attention.positions import (
    ALiBi,
    PositionScheme,
    Rotary,
    ShawRelative,
    SlidingWindow,
    T5Bias,
    TransformerXLRelative,
)

NAMES = {
    "alibi": ALiBi,
    "rotary": Rotary,
    "shaw": ShawRelative,
    "t5": T5Bias,
    "transformer_xl": TransformerXLRelative,
}


def test_the_window_is_the_argument_of_keras():
    inputs = normal(B, T, D)
    by_object, by_argument = (
        MultiHeadAttention(N, H, **options) for options in ({"position": SlidingWindow(3)}, {"sliding_window": 3})
    )
    expected = to_numpy(by_object(inputs, inputs))
    by_argument.build((B, T, D), (B, T, D))
    by_argument.set_weights(by_object.get_weights())
    np.testing.assert_allclose(to_numpy(by_argument(inputs, inputs)), expected, atol=EXACT)


@pytest.mark.parametrize(("name", "kind"), NAMES.items())
def test_a_name_stands_for_a_scheme(name, kind):
    assert type(positions.get(name)) is kind
    assert type(MultiHeadAttention(N, H, position=name).position) is kind


def test_no_scheme_stays_none():
    assert positions.get(None) is None


def test_an_unknown_name_is_an_error_that_lists_the_known_ones():
    known = r'Unknown position: "rotery"\. Known: "alibi", "rotary", "shaw", "t5", "transformer_xl"\. .*"rotary"\?'
    with pytest.raises(ValueError, match=known):
        positions.get("rotery")


def test_what_is_no_scheme_is_an_error():
    with pytest.raises(TypeError, match=r"`position` must be one of .*`PositionScheme`.* Received: 3 of type int"):
        MultiHeadAttention(N, H, position=3)


def test_flash_attention_adds_no_bias():
    with pytest.raises(ValueError, match=r"Flash attention adds no bias to the scores\. Received <Distant"):
        MultiHeadAttention(N, H, position=Distant(), flash_attention=True)


def test_a_scheme_without_hooks_changes_nothing():
    inputs = normal(B, T, D)
    plain, other = MultiHeadAttention(N, H), MultiHeadAttention(N, H, position=PositionScheme())
    expected = to_numpy(plain(inputs, inputs))
    other.build((B, T, D), (B, T, D))
    other.set_weights(plain.get_weights())
    np.testing.assert_allclose(to_numpy(other(inputs, inputs)), expected, atol=EXACT)
