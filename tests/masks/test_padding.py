import numpy as np
import pytest
from reference.arrays import normal, to_numpy

from keras_attention.layers import SoftAttention
from keras_attention.masks import Padding

REAL = np.array([[True, True, False], [False, False, False]])


def test_padding_is_the_mask_of_the_keys():
    query, value = normal(2, 5, 7), normal(2, 3, 7)
    layer = SoftAttention()
    found = layer(query, value, attention_mask=Padding(REAL).mask(5, 3))
    np.testing.assert_array_equal(to_numpy(found), to_numpy(layer(query, value, value_mask=REAL)))


@pytest.mark.parametrize(
    ("mask", "error", "message"),
    [
        ([True, False], ValueError, r"`mask` must have 2 axes, `\(B, S\)`\. Received shape \(2,\)"),
        (
            [[0.0, 1.0]],
            TypeError,
            r"`mask` must be boolean, True = attend, or integers 0 and 1\. Received dtype float32",
        ),
    ],
)
def test_padding_is_boolean(mask, error, message):
    with pytest.raises(error, match=message):
        Padding(mask)


def test_padding_must_match_the_keys():
    with pytest.raises(
        ValueError, match=r"`key_length` must be .*, 3\. Received key_length=5 for Padding\(shape=\(2, 3\)\)"
    ):
        Padding(REAL).mask(3, 5)
