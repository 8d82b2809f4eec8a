import doctest

import numpy as np
import pytest

from keras_attention.data import alignment_array
from keras_attention.data.batches import alignments

LINKS = {(0, 0), (2, 1), (4, 1), (3, 0), (1, 0)}


def test_array_is_one_where_a_link_is():
    array = alignment_array(LINKS, source_length=5, target_length=3)
    assert array.dtype == "float32"
    np.testing.assert_array_equal(array, [[float((s, t) in LINKS) for s in range(5)] for t in range(3)])


def test_normalized_rows_sum_to_one_or_have_no_link():
    array = alignment_array(LINKS, 5, 3, normalize=True)
    np.testing.assert_allclose(array, [[1 / 3, 1 / 3, 0, 1 / 3, 0], [0, 0, 0.5, 0, 0.5], [0] * 5], rtol=1e-6)
    assert array.dtype == "float32"


def test_array_of_subwords_comes_from_that_of_words():
    source_words, target_words = [0, 0, 1, 2], [0, 1, 1]
    array = alignment_array({(0, 1), (2, 0)}, 3, 2)[target_words][:, source_words]
    np.testing.assert_array_equal(array, [[0, 0, 0, 1], [1, 1, 0, 0], [1, 1, 0, 0]])


def test_empty_sentences_have_empty_arrays():
    assert alignment_array(set(), 0, 3, normalize=True).shape == (3, 0)


def test_link_outside_the_lengths_raises():
    with pytest.raises(ValueError, match=r"of 5 source and 3 target words\. Received the link \(0, 3\)"):
        alignment_array({(0, 3)}, 5, 3)


def test_examples_give_what_they_say():
    assert doctest.testmod(alignments) == (0, 1)
