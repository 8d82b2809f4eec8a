import itertools
import random

import pytest

from keras_attention.data import read_gold_alignments, read_word_alignments, write_word_alignments


def random_alignments(seed):
    draw = random.Random(seed)
    cells = list(itertools.product(range(13), range(11)))
    return [set(draw.sample(cells, draw.randint(0, 7))) for _ in range(17)]


def test_lines_are_sets_of_links(write):
    path = write("test.align", "0-0 1-2 2-1\r\n\n  10-3  0-0 0-0 \n")
    assert read_word_alignments(path) == [{(0, 0), (1, 2), (2, 1)}, set(), {(10, 3), (0, 0)}]


def test_positions_that_count_from_one_become_those_from_zero(write):
    assert read_word_alignments(write("test.align", "1-1 2-3"), first=1) == [{(0, 0), (1, 2)}]


@pytest.mark.parametrize("mark", ["p", "?"])
def test_gold_links_are_sure_or_possible(write, mark):
    path = write("test.gold", f"1-1 2{mark}3\n\n3{mark}1\n")
    sure, possible = read_gold_alignments(path, first=1)
    assert sure == [{(0, 0)}, set(), set()]
    assert possible == [{(0, 0), (1, 2)}, set(), {(2, 0)}]


@pytest.mark.parametrize("name", ["test.align", "new/test.align.gz"])
def test_written_links_are_read_again(tmp_path, name):
    alignments = random_alignments(1)
    write_word_alignments(tmp_path / name, alignments)
    assert read_word_alignments(tmp_path / name, lengths=[(13, 11)] * 17) == alignments


def test_written_gold_links_are_read_again(tmp_path):
    sure, possible = random_alignments(2), random_alignments(3)
    write_word_alignments(tmp_path / "test.gold", sure, possible)
    together = [certain | maybe for certain, maybe in zip(sure, possible, strict=True)]
    assert read_gold_alignments(tmp_path / "test.gold") == (sure, together)


def test_written_lines_are_in_the_order_of_the_source(tmp_path):
    write_word_alignments(tmp_path / "test.gold", [{(10, 1), (2, 3)}, []], [{(2, 3), (2, 1)}, set()])
    assert (tmp_path / "test.gold").read_bytes() == b"2p1 2-3 10-1\n\n"


def test_file_without_lines_has_no_pairs(write):
    assert read_word_alignments(write("test.align", ""), lengths=[]) == []
    assert read_gold_alignments(write("test.gold", "")) == ([], [])


@pytest.mark.parametrize(
    "field", ["0", "0-", "-1-2", "0--1", "0-0-1", "0.5-1", "a-b", "0:1", "0-1p2", "²-1", "0-" + "9" * 99]
)
def test_field_that_is_no_link_raises_with_file_and_line(write, field):
    path = write("test.align", f"0-0\n1-1 {field} 2-2\n")
    with pytest.raises(ValueError, match=r"test\.align, line 2: a link must be written as `source-target`") as raised:
        read_word_alignments(path)
    assert f'Received "{field[:30]}' in str(raised.value)


def test_possible_link_of_an_aligner_raises(write):
    with pytest.raises(ValueError, match=r"line 2: the links must be sure.* link \(1, 2\)\. .*`read_gold_alignments`"):
        read_word_alignments(write("test.gold", "0-0\n0-0 1p2\n"))


@pytest.mark.parametrize(("line", "link"), [("0-0 5-1", r"\(5, 1\)"), ("1-3", r"\(1, 3\)"), ("5p0", r"\(5, 0\)")])
def test_link_outside_its_pair_raises_with_file_and_line(write, line, link):
    path = write("test.gold", f"6-6\n{line}\n")
    words = r"5 source and 3 target words"
    with pytest.raises(
        ValueError, match=rf"test\.gold, line 2: `links` must lie .* {words}\. Received the link {link}"
    ):
        read_gold_alignments(path, lengths=[(7, 7), (5, 3)])
    assert read_gold_alignments(path, lengths=[(7, 7), (7, 7)])


def test_position_before_the_first_raises(write):
    with pytest.raises(ValueError, match=r'line 1: words must be counted from 1 on\. Received the link "1-0"'):
        read_word_alignments(write("test.align", "1-0"), first=1)


@pytest.mark.parametrize("number", [1, 3])
def test_each_pair_needs_a_line(write, number):
    path = write("test.align", "0-0\n\n")
    with pytest.raises(
        ValueError, match=rf"for each sentence pair\. Received 2 lines and {number} lengths: line {min(3, number + 1)}"
    ):
        read_word_alignments(path, lengths=[(1, 1)] * number)


def test_lengths_must_be_pairs(write):
    with pytest.raises(ValueError, match=r"`lengths` must be pairs of integers, source before target\. Received 5"):
        read_word_alignments(write("test.align", "0-0"), lengths=[5])


def test_wrong_link_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "test.align"
    write_word_alignments(path, [{(0, 0)}])
    with pytest.raises(ValueError, match=r"Sentence pair 1: `alignments` must be positions from 0 on.*\(0, -1\)"):
        write_word_alignments(path, [{(1, 1)}, {(0, -1)}])
    with pytest.raises(ValueError, match=r"Received 1 sets of sure and 2 of possible links"):
        write_word_alignments(path, [{(1, 1)}], [set(), set()])
    assert [file.read_text() for file in tmp_path.iterdir()] == ["0-0\n"]
