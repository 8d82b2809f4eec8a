import doctest

import pytest

from keras_attention.evaluation import grow_diag_final_and, symmetrization, symmetrize


def links(text):
    """`"0-0 1-2"`  ->  `{(0, 0), (1, 2)}`"""
    return {tuple(map(int, field.split("-"))) for field in text.split()}


def test_intersection_and_union_are_those_of_the_sets():
    forward, backward = [{(0, 0), (0, 1)}, set()], [{(0, 0), (1, 1)}, {(2, 3)}]
    assert symmetrize(forward, backward, method="intersection") == [{(0, 0)}, set()]
    assert symmetrize(forward, backward, method="union") == [{(0, 0), (0, 1), (1, 1)}, {(2, 3)}]


def test_a_neighbour_grows_at_sides_and_corners_while_one_of_its_words_is_free():
    # From 0-0 to its side 0-1, whose target is free, to its corner 1-2, to the side 2-2 and the corner 2-3.
    assert grow_diag_final_and(links("0-0 0-1 2-2"), links("0-0 1-2 2-3")) == links("0-0 0-1 1-2 2-2 2-3")
    assert grow_diag_final_and(links("0-0 1-1 0-1"), links("0-0 1-1 1-0")) == links("0-0 1-1")


def test_far_link_is_taken_where_both_of_its_words_are_free():
    assert grow_diag_final_and(links("0-0 4-4"), links("0-0")) == links("0-0 4-4")
    assert grow_diag_final_and(links("0-0 0-4"), links("0-0")) == links("0-0")


def test_forward_links_come_before_backward_links_at_the_end():
    assert grow_diag_final_and(links("0-0 4-4"), links("0-0 4-6")) == links("0-0 4-4")
    assert grow_diag_final_and(links("0-0 4-6"), links("0-0 4-4")) == links("0-0 4-6")


# Answers of `symal` of Moses, -alignment=grow -diagonal=yes -final=yes -both=yes. Another order of the directions, or of the
# neighbours, gives others.
MOSES = [
    ("0-0 1-1 4-2 5-3 7-4 7-5", "2-0 3-3 5-2 6-3 7-5", "0-0 1-1 3-3 4-2 5-2 5-3 6-3 7-4 7-5"),
    ("0-0 0-1 6-2 6-3 8-4", "0-1 1-0 2-2 3-0 4-2 5-0 6-1 7-4", "0-0 0-1 1-0 6-2 8-4"),
    ("0-0 1-3 3-1 3-5 5-4 7-6 7-7", "1-3 2-0 5-5 6-5 7-7", "0-0 1-3 3-1 5-4 5-5 6-5 7-6 7-7"),
    ("0-0 0-1 1-2 2-3 6-4 7-6", "0-1 1-0 2-4 4-3 6-7 7-5", "0-0 0-1 1-0 1-2 2-3 2-4 6-7 7-6"),
    ("0-0 3-1 3-2 4-4", "0-1 1-1 2-0 3-2 6-4", "0-1 1-1 2-0 3-1 3-2 4-4"),
    ("0-0 3-1 3-2 4-7 5-3 5-4 5-5 5-6", "1-0 2-2 3-5 4-7 5-7 6-4", "0-0 2-2 3-1 4-7 5-3 5-4 5-5 5-6 5-7 6-4"),
]


@pytest.mark.parametrize(("forward", "backward", "expected"), MOSES)
def test_grown_links_are_those_of_moses(forward, backward, expected):
    assert symmetrize([links(forward)], [links(backward)]) == [links(expected)]


def test_the_sets_that_are_passed_stay_as_they_are():
    forward, backward = links("0-0 0-1"), links("0-0 2-2")
    grow_diag_final_and(forward, backward)
    assert (forward, backward) == (links("0-0 0-1"), links("0-0 2-2"))


def test_unknown_method_raises():
    with pytest.raises(
        ValueError, match=r"one of 'intersection', 'union', 'grow-diag-final-and'\. Received: 'refined'"
    ):
        symmetrize([set()], [set()], method="refined")


def test_each_pair_needs_both_directions():
    with pytest.raises(ValueError, match=r"as many backward\. Received 2 forward and 1 backward"):
        symmetrize([set(), set()], [set()])


def test_wrong_link_raises_with_the_number_of_its_pair():
    with pytest.raises(
        ValueError, match=r"Sentence pair 1: `backward` must be positions from 0 on\. .* link \(0, -1\)"
    ):
        symmetrize([set(), set()], [set(), {(0, -1)}])


def test_examples_give_what_they_say():
    assert doctest.testmod(symmetrization) == (0, 3)
