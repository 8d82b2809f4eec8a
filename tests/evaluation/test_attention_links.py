import doctest

import numpy as np
import pytest

from keras_attention.evaluation import attention_links, links_by_argmax, links_by_threshold, links_of_words


def test_largest_weight_of_each_target_word_is_its_link():
    weights = np.random.default_rng(3).random((3, 5)).astype("float32")
    expected = {(max(range(5), key=lambda source: weights[target, source]), target) for target in range(3)}
    assert links_by_argmax(weights) == expected


def test_target_without_weights_has_no_link():
    assert links_by_argmax([[0.0, 0.0], [0.5, 0.5]]) == {(0, 1)}
    assert links_by_argmax(np.zeros((3, 0))) == links_by_argmax(np.zeros((0, 5))) == set()


def test_every_weight_above_the_threshold_is_a_link():
    weights = np.random.default_rng(5).random((3, 5))
    expected = {(source, target) for target in range(3) for source in range(5) if weights[target, source] > 0.4}
    assert links_by_threshold(weights, 0.4) == expected
    assert links_by_threshold([[0.5, 0.5]], 0.5) == set()


def test_links_are_python_integers():
    weights = np.ones((2, 3), "float32")
    words = np.array([0, 1, 2])
    for links in (links_by_argmax(weights), links_by_threshold(weights, 0.5), links_of_words({(0, 0)}, words, words)):
        assert {type(position) for link in links for position in link} == {int}


def test_words_are_linked_where_any_of_their_subwords_are():
    source_words, target_words = [0, 1, 1, 2, -1], [0, 0, 1]
    links = {(0, 1), (1, 1), (2, 0), (4, 2), (3, 2)}
    expected = {(source_words[s], target_words[t]) for s, t in links if source_words[s] >= 0}
    assert links_of_words(links, source_words, target_words) == expected == {(0, 0), (1, 0), (2, 1)}


def test_subword_without_word_raises():
    with pytest.raises(ValueError, match=r"of 2 source and 3 target words\. Received the link \(2, 0\)"):
        links_of_words({(2, 0)}, [0, 1], [0, 1, 2])


@pytest.mark.parametrize("extract", [links_by_argmax, lambda weights: links_by_threshold(weights, 0.5)])
def test_weights_must_be_a_finite_matrix(extract):
    with pytest.raises(ValueError, match=r"shape \(T, S\)\. Received shape \(2, 3, 5\)\. Pass one sentence pair"):
        extract(np.zeros((2, 3, 5)))
    with pytest.raises(ValueError, match=r"must be finite .* Received shape \(1, 2\) with nan"):
        extract([[0.5, np.nan]])


def test_examples_give_what_they_say():
    assert doctest.testmod(attention_links) == (0, 3)
