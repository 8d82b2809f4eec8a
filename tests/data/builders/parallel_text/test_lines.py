import pytest

from keras_attention.data.builders.parallel_text.lines import fingerprint


def test_fingerprint_depends_on_lines_and_not_on_how_they_are_stored(write):
    plain = fingerprint({"train": (write("train.en", "a\nb\n"), write("train.de", "c\nd\n"))})
    stored_otherwise = (write("en.train.txt.gz", "\ufeffa\r\nb"), write("de.train.txt", "c\r\nd\r\n"))
    assert fingerprint({"train": stored_otherwise}) == plain


def test_fingerprint_of_pairs_in_one_file_is_that_of_two_files(write):
    two = fingerprint({"train": (write("train.en", "a\nb\n"), write("train.de", "c\nd\n"))})
    assert fingerprint({"train": (write("deu.txt", "\ufeffa\tc\r\nb\td\tCC-BY 2.0\r\n"),)}) == two


@pytest.mark.parametrize("line, tabs", [("no tab", 0), ("1\tA dog\t2\tEin Hund", 3)])
def test_a_line_that_is_no_pair_raises_with_its_number(write, line, tabs):
    with pytest.raises(ValueError, match=rf"deu\.txt, line 2: there must be a tab .* Received {tabs} tabs"):
        fingerprint({"train": (write("deu.txt", f"a\tb\n{line}\n"),)})


def test_a_file_of_pairs_without_a_line_raises(write):
    with pytest.raises(ValueError, match=r"must have a line\. .*deu\.txt is empty"):
        fingerprint({"train": (write("deu.txt", ""),)})


def test_fingerprint_changes_with_every_part(write):
    en, de, other = write("train.en", "a\nb\n"), write("train.de", "c\nd\n"), write("other.en", "a \nb\n")
    parts = [
        {"train": (en, de)},
        {"train": (de, en)},
        {"train": (other, de)},
        {"train": (en, other)},
        {"val": (en, de)},
        {"train": (en, de), "val": (en, de)},
    ]
    assert len({fingerprint(files) for files in parts}) == len(parts)


def test_fingerprint_is_that_of_every_other_machine(write):
    files = {"train": (write("train.en", "a\n"), write("train.de", "ä\n"))}
    assert fingerprint(files) == "246ced2fb3bdba2c2321edecba89ad3d3eccb49dff3ec539f7e1bbf3d1759798"


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (
            "a\nb\n",
            "c\nd\ne\n",
            r"train.en with 2 and .*train.de with 3: line 3 of train.de has no partner in train.en",
        ),
        ("a\nb\n\n", "c", r"train.en with 3 and .*train.de with 1: line 2 of train.en has no partner in train.de"),
        ("a\n", "", r"train.en with 1 and .*train.de with 0: line 1 of train.en has no partner in train.de"),
    ],
)
def test_unequal_line_counts_raise_with_both_files_and_counts(write, source, target, message):
    with pytest.raises(ValueError, match=message):
        fingerprint({"train": (write("train.en", source), write("train.de", target))})


def test_split_without_lines_raises(write):
    with pytest.raises(ValueError, match=r"must have a line. .*train.en and .*train.de are empty"):
        fingerprint({"train": (write("train.en", ""), write("train.de", ""))})
