import gzip

import numpy as np
import pytest
import tensorflow as tf

from keras_attention.data.files.point_files import read_points, write_points

HULLS = "0 0 0.5 0.25 1 0 0.5 1 output 1 3 4 1 \n0.1 0.2 0.3 0.4 0.6 0.5 output 3 1 2 3 \n"


@pytest.fixture
def write(tmp_path):
    def write_file(content, name="hulls.txt"):
        path = tmp_path / name
        content = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return write_file


def assert_same(examples, others):
    assert len(examples) == len(others)
    for example, other in zip(examples, others, strict=True):
        assert example.keys() == other.keys() == {"points", "indices"}
        for name, dtype in (("points", "float32"), ("indices", "int32")):
            assert example[name].dtype == other[name].dtype == dtype
            np.testing.assert_array_equal(example[name], other[name], strict=True)


def random_examples(width=2):
    """Points of every size that float32 has, signs included."""
    generator = np.random.default_rng(7)
    examples = []
    for n in (1, 2, 3, 5, 7, 211):
        points = generator.integers(0, 2**32, (n, width), dtype="uint32").view("float32")
        points = np.where(np.isfinite(points), points, generator.random((n, width), "float32"))
        examples.append({"points": points, "indices": generator.permutation(n).astype("int32") + 1})
    return examples


def test_example_has_points_and_the_answer_without_its_repeated_end(write):
    first, second = read_points(write(HULLS))
    np.testing.assert_array_equal(first["points"], [[0, 0], [0.5, 0.25], [1, 0], [0.5, 1]])
    np.testing.assert_array_equal(first["indices"], [1, 3, 4])
    np.testing.assert_array_equal(second["points"], np.float32([[0.1, 0.2], [0.3, 0.4], [0.6, 0.5]]))
    np.testing.assert_array_equal(second["indices"], [3, 1, 2])
    assert {first["points"].dtype, first["indices"].dtype} == {np.dtype("float32"), np.dtype("int32")}


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(" \n", "\n"),
        lambda text: text.replace(" ", "  ").replace("\n", "   \n"),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace(" ", "\t"),
        lambda text: text[:-2],
        lambda text: text + "\n \n",
        lambda text: "\ufeff" + text,
    ],
    ids=["no_last_space", "many_spaces", "windows", "tabs", "no_last_line_end", "empty_lines", "byte_order_mark"],
)
def test_spaces_line_ends_and_empty_lines_do_no_harm(write, change):
    assert_same(read_points(write(change(HULLS))), read_points(write(HULLS, "plain.txt")))


def test_gzip_is_read_by_its_suffix(write):
    assert_same(read_points(write(HULLS, "hulls.txt.gz")), read_points(write(HULLS)))


def test_path_may_be_a_string(write):
    assert len(read_points(str(write(HULLS)))) == 2


def test_open_answers_are_taken_as_they_are(write):
    (example,) = read_points(write("0 0 1 0 1 1 0 1 output 1 2 3 1 3 4"), closed=False)
    np.testing.assert_array_equal(example["indices"], [1, 2, 3, 1, 3, 4])


@pytest.mark.parametrize(("width", "shape"), [(1, (6, 1)), (2, (3, 2)), (3, (2, 3))])
def test_width_divides_the_numbers_into_points(write, width, shape):
    (example,) = read_points(write("0.5 0.25 1 2 3 -4e-1 output 2 1"), closed=False, width=width)
    assert example["points"].shape == shape
    np.testing.assert_array_equal(example["points"].ravel(), np.float32([0.5, 0.25, 1, 2, 3, -0.4]))


def test_hull_of_one_point_is_that_point_twice(write):
    (example,) = read_points(write("0.5 0.25 output 1 1 "))
    np.testing.assert_array_equal(example["indices"], [1])


def test_empty_file_has_no_example(write):
    assert read_points(write("")) == []


def test_line_is_written_as_it_was_published(tmp_path):
    write_points(tmp_path / "a.txt", [{"points": [[0.5, 0], [1, -0.25]], "indices": [2, 1]}])
    assert (tmp_path / "a.txt").read_bytes() == b"0.5 0 1 -0.25 output 2 1 2 \n"


def test_open_answer_is_written_as_it_is(tmp_path):
    write_points(tmp_path / "a.txt", [{"points": [[0.5], [1.0]], "indices": [2, 1]}], closed=False)
    assert (tmp_path / "a.txt").read_bytes() == b"0.5 1 output 2 1 \n"


@pytest.mark.parametrize("name", ["points.txt", "points.txt.gz"])
@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_what_was_written_is_read_again_to_the_last_bit(tmp_path, name, closed, width):
    examples = random_examples(width)
    write_points(tmp_path / name, examples, closed=closed)
    assert_same(read_points(tmp_path / name, closed=closed, width=width), examples)


@pytest.mark.parametrize("number", [3.4028234663852886e38, 1e-45, 7.038531e-26, -0.0, 0.1])
def test_numbers_that_are_hard_to_write_come_back(tmp_path, number):
    examples = [{"points": np.float32([[number]]), "indices": np.int32([1])}]
    write_points(tmp_path / "a.txt", examples)
    (example,) = read_points(tmp_path / "a.txt", width=1)
    assert example["points"].tobytes() == examples[0]["points"].tobytes()


def test_same_examples_make_the_same_compressed_bytes(tmp_path):
    for name in ("a.gz", "b.gz"):
        write_points(tmp_path / name, random_examples())
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_data_set_is_written(tmp_path):
    examples = {"points": tf.constant([[[0.5, 0.25], [1.0, 0.0]]]), "indices": tf.constant([[2, 1]])}
    write_points(tmp_path / "folder" / "a.txt", tf.data.Dataset.from_tensor_slices(examples))
    assert (tmp_path / "folder" / "a.txt").read_text() == "0.5 0.25 1 0 output 2 1 2 \n"


def test_failed_writing_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    good, bad = {"points": [[0.5]], "indices": [1]}, {"points": [[0.5]], "indices": [2]}
    with pytest.raises(ValueError, match="Example 1"):
        write_points(path, [good, bad])
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]
    assert path.read_text() == "old"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0 0 1 1 1 2 1", r'the word "output" must stand .* Received 7 fields without it, the last one "1"'),
        ("0 0 1 output 1 1", r"point or more of 2 coordinates each\. Received 3 coordinates\. Complete the line"),
        ("output 1 1", r"one point or more .* Received 0 coordinates"),
        ("0 0 1 x output 1 1", r"a coordinate must be a number; .*'x'"),
        ("0 0 1 nan output 1 1", r"must be finite in float32\. Received points\[1\] = \[1\.0, nan\]"),
        ("0 -inf output 1 1", r"must be finite in float32\. Received points\[0\] = \[0\.0, -inf\]"),
        ("0 1e39 output 1 1", r"must be finite in float32\. Received points\[0\] = \[0\.0, 1e\+39\]"),
        (
            "5000000.1 0 5000009.7 1 output 1 1",
            r"in this example they extend over 9\.6, and up to 0\.\d+ would be lost",
        ),
        ("0 0 1 1 output 1 3 1", r"from 1 to 2, the number of points\. Received 3 among \[1, 3\]"),
        ("0 0 1 1 output 0 1 0", r"from 1 to 2, .* Received 0 among \[0, 1\]\. .*add 1"),
        ("0 0 1 1 output 1 -1 1", r"from 1 to 2, .* Received -1 among \[1, -1\]"),
        ("0 0 1 1 output 1 2.0 1", r"an index must be a whole number; .*'2\.0'"),
        ("0 0 output 1 1 output 1", r"an index must be a whole number; .*'output'"),
        ("0 0 1 1 output", r"must end with the index it starts with\. Received the indices \[\]"),
        ("0 0 1 1 output 1", r"must end with the index it starts with\. Received the indices \[1\]\. .*closed=False"),
        ("0 0 1 1 output 1 2", r"must end with the index it starts with\. Received the indices \[1, 2\]"),
    ],
)
def test_malformed_line_raises_with_file_line_and_what_is_wrong(write, line, message):
    path = write(HULLS + "\n" + line + "\n" + HULLS)
    with pytest.raises(ValueError, match=message) as raised:
        read_points(path)
    assert str(raised.value).startswith(f"{path}, line 4: ")


@pytest.mark.parametrize(
    "line", ["1" * 9999, "0 0 output 1 " + "1" * 9999, "0 " + "x" * 9999 + " output 1 1", "0 0 output " + "y" * 9999]
)
def test_a_long_field_is_shortened_in_the_message(write, line):
    with pytest.raises(ValueError, match=r"line 1: ") as raised:
        read_points(write(line))
    assert len(str(raised.value)) < 600


def test_long_answer_is_shortened_in_the_message(write):
    with pytest.raises(ValueError, match=r"indices \[1, 1, 1, .* \.\.\. .*, 1, 2\]\. ") as raised:
        read_points(write("0 0 output" + " 1" * 500 + " 2"))
    assert len(str(raised.value)) < 400


def test_bytes_that_are_not_utf8_raise_with_the_line(write):
    with pytest.raises(ValueError, match=r"hulls.txt, line 3: byte 1 of the line, 0xff, is not UTF-8"):
        read_points(write(HULLS.encode() + b"\xff 0 output 1 1"))


def test_damaged_gzip_raises_with_the_line(tmp_path):
    path = tmp_path / "hulls.txt.gz"
    path.write_bytes(gzip.compress(HULLS.encode())[:-9])
    with pytest.raises(ValueError, match=r"hulls.txt.gz is not a whole gzip file: it can be read up to line \d only"):
        read_points(path)


def test_the_triangulation_of_a_line_is_empty(tmp_path):
    write_points(tmp_path / "line.txt", [{"points": [[0.0, 0.0], [1.0, 1.0]], "indices": []}], closed=False)
    (example,) = read_points(tmp_path / "line.txt", closed=False)
    assert example["points"].tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert example["indices"].shape == (0,) and example["indices"].dtype == "int32"


def test_missing_file_raises(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"hulls\.txt"):
        read_points(tmp_path / "hulls.txt")


def test_width_must_be_positive(write):
    with pytest.raises(ValueError, match=r"`width` must be a positive integer\. Received: 0"):
        read_points(write(HULLS), width=0)


@pytest.mark.parametrize(
    ("example", "message"),
    [
        (
            {"points": [[0.5, np.nan]], "indices": [1]},
            r"must be finite in float32\. Received points\[0\] = \[0\.5, nan\]",
        ),
        (
            {"points": [[0.5, 1e39]], "indices": [1]},
            r"must be finite in float32\. Received points\[0\] = \[0\.5, 1e\+39\]",
        ),
        ({"points": [[5e6 + 0.1], [5e6 + 9.7]], "indices": [1]}, r"up to 0\.2 would be lost\. Subtract their mean"),
        ({"points": [[0.5, 0.5]], "indices": [0]}, r"from 1 to 1, the number of points\. Received 0 among \[0\]"),
        ({"points": [[0.5, 0.5]], "indices": np.zeros(0, int)}, r"must have an index\. Received none"),
        (
            {"points": [0.5, 0.5], "indices": [1]},
            r"shape \(n, F\) .* Received points of shape \(2,\) and int64 indices",
        ),
        ({"points": np.zeros((0, 2)), "indices": [1]}, r"one point or more, .* Received points of shape \(0, 2\)"),
        ({"points": [[0.5, 0.5]], "indices": [1.0]}, r"integers of shape \(m,\)\. .* float64 indices of shape \(1,\)"),
        ({"points": [[0.5, 0.5]], "indices": [[1]]}, r"int64 indices of shape \(1, 1\)"),
    ],
)
def test_examples_that_could_not_be_read_are_not_written(tmp_path, example, message):
    with pytest.raises(ValueError, match=r"Example 0: .*" + message):
        write_points(tmp_path / "a.txt", [example])
    assert list(tmp_path.iterdir()) == []
