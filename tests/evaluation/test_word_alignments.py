import doctest
import itertools
import math
import random

import pytest

from keras_attention.evaluation import evaluate_word_alignments, word_alignments


def test_values_of_a_small_corpus():
    # |A| = 5, |S| = 4, |A ∩ S| = 2, |A ∩ P| = 3
    sure = [{(0, 0), (1, 1)}, {(0, 1), (2, 2)}]
    possible = [{(0, 0), (1, 1), (1, 2)}, {(0, 1), (2, 2)}]
    found = [{(0, 0), (1, 2), (4, 4)}, {(0, 1), (2, 1)}]
    assert evaluate_word_alignments(sure, possible, found) == pytest.approx(
        {"alignment_error_rate": 1 - 5 / 9, "precision": 3 / 5, "recall": 2 / 4, "f1": 6 / 11}
    )


def test_rates_are_those_of_the_definitions():
    draw = random.Random(7)
    cells = list(itertools.product(range(3), range(5)))
    sure, possible, found = ([set(draw.sample(cells, draw.randint(1, 7))) for _ in range(11)] for _ in range(3))
    a = [(row, link) for row, links in enumerate(found) for link in links]
    in_sure = sum(link in sure[row] for row, link in a)
    in_possible = sum(link in sure[row] or link in possible[row] for row, link in a)
    size = sum(map(len, sure))
    scores = evaluate_word_alignments(sure, possible, found)
    assert scores["alignment_error_rate"] == pytest.approx(1 - (in_sure + in_possible) / (len(a) + size))
    assert scores["precision"] == pytest.approx(in_possible / len(a))
    assert scores["recall"] == pytest.approx(in_sure / size)


def test_possible_links_cost_nothing_and_earn_nothing():
    sure, possible = [{(0, 0)}], [{(1, 1)}]
    for found in ({(0, 0)}, {(0, 0), (1, 1)}):
        assert evaluate_word_alignments(sure, possible, [found])["alignment_error_rate"] == 0
    assert evaluate_word_alignments(sure, possible, [{(1, 1)}])["recall"] == 0


def test_rate_is_one_minus_f1_where_all_links_are_sure():
    sure = [{(0, 0), (1, 2), (2, 1)}]
    scores = evaluate_word_alignments(sure, sure, [{(0, 0), (1, 1)}])
    assert scores["alignment_error_rate"] == pytest.approx(1 - scores["f1"])


def test_share_of_nothing_is_nan():
    nothing_found = evaluate_word_alignments([{(0, 0)}], [set()], [set()])
    assert nothing_found["alignment_error_rate"] == 1
    assert nothing_found["recall"] == 0
    assert math.isnan(nothing_found["precision"])
    nothing_sure = evaluate_word_alignments([set()], [{(0, 0)}], [{(0, 0), (0, 1)}])
    assert nothing_sure["alignment_error_rate"] == nothing_sure["precision"] == 0.5
    assert math.isnan(nothing_sure["recall"])
    assert evaluate_word_alignments([{(0, 0)}], [set()], [{(1, 1)}])["f1"] == 0
    assert all(map(math.isnan, evaluate_word_alignments([set()], [set()], [set()]).values()))


def test_each_pair_needs_its_links():
    with pytest.raises(ValueError, match=r"Received 2 sure, 2 possible and 1 alignments\. Pass an empty set"):
        evaluate_word_alignments([set(), set()], [set(), set()], [set()])


@pytest.mark.parametrize("link", [(0,), (0, 1, 2), (0.5, 1), ("0", "1"), (True, 1), 3])
def test_link_must_be_a_pair_of_integers(link):
    with pytest.raises(
        ValueError, match=r"Sentence pair 1: `alignments` must be pairs of integers, source before target\."
    ):
        evaluate_word_alignments([set(), set()], [set(), set()], [set(), [link]])


def test_examples_give_what_they_say():
    assert doctest.testmod(word_alignments) == (0, 2)
