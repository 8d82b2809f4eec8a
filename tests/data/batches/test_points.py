import numpy as np
import pytest
import tensorflow as tf

from keras_attention.data.batches.points import point_batches, point_dataset

SPEC = {"points": tf.TensorSpec((None, 2), tf.float32), "indices": tf.TensorSpec((None,), tf.int32)}
INPUTS = ("source", "source_mask", "target")
THREE = {"points": [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], "indices": [3, 1, 2]}
ONE = {"points": [[0.7, 0.8]], "indices": [1]}


def random_examples(count, largest=11, width=2):
    """Examples of 1 to `largest` points, each with an answer of another length."""
    generator = np.random.default_rng(7)
    examples = []
    for n in generator.integers(1, largest + 1, count):
        indices = generator.permutation(n)[: generator.integers(1, n + 1)] + 1
        examples.append({"points": generator.random((n, width), "float32"), "indices": indices.astype("int32")})
    return examples


def data_set(examples):
    return tf.data.Dataset.from_generator(lambda: examples, output_signature=SPEC)


def listed(batches):
    return list(batches.as_numpy_iterator())


def test_batch_has_padded_points_their_mask_the_shifted_target_and_labels():
    ((inputs, labels),) = listed(point_batches([THREE, ONE], batch_size=2))
    expected = [[[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], [[0.7, 0.8], [0, 0], [0, 0]]]
    np.testing.assert_array_equal(inputs["source"], np.float32(expected))
    np.testing.assert_array_equal(inputs["source_mask"], [[True, True, True], [True, False, False]])
    np.testing.assert_array_equal(inputs["target"], [[0, 3, 1, 2], [0, 1, 0, 0]])
    np.testing.assert_array_equal(labels, [[3, 1, 2, 0], [1, 0, 0, 0]])


def test_data_set_and_list_give_the_same_batches():
    examples = random_examples(17)
    for (inputs, labels), (others, other_labels) in zip(
        listed(point_batches(examples, 5)), listed(point_batches(data_set(examples), 5)), strict=True
    ):
        np.testing.assert_equal(inputs, others)
        np.testing.assert_array_equal(labels, other_labels)


@pytest.mark.parametrize(("max_points", "max_length"), [(None, None), (13, None), (None, 17), (11, 12)])
def test_every_example_can_be_read_back_from_its_row(max_points, max_length):
    examples = iter(random_examples(101))
    batches = point_batches(random_examples(101), 7, max_points=max_points, max_length=max_length)
    for inputs, labels in batches.as_numpy_iterator():
        for source, mask, target, row_labels in zip(*(inputs[name] for name in INPUTS), labels, strict=True):
            example = next(examples)
            n, m = len(example["points"]), len(example["indices"])
            np.testing.assert_array_equal(source[:n], example["points"])
            np.testing.assert_array_equal(source[n:], 0)
            np.testing.assert_array_equal(mask, np.arange(len(mask)) < n)
            np.testing.assert_array_equal(row_labels[:m], example["indices"])
            np.testing.assert_array_equal(row_labels[m:], 0)
            np.testing.assert_array_equal(target, [0, *row_labels[:-1]])
        assert (max_points or 1) <= inputs["source"].shape[1] == inputs["source_mask"].shape[1]
        assert (max_length or 1) <= labels.shape[1] == inputs["target"].shape[1]
    assert next(examples, None) is None


def test_elements_have_the_types_a_pointer_network_reads():
    inputs, labels = point_batches(data_set([THREE])).element_spec
    assert inputs == {
        "source": tf.TensorSpec((None, None, 2), tf.float32),
        "source_mask": tf.TensorSpec((None, None), tf.bool),
        "target": tf.TensorSpec((None, None), tf.int32),
    }
    assert labels == tf.TensorSpec((None, None), tf.int32)


def test_fixed_sizes_give_batches_of_one_static_shape():
    batches = point_batches(random_examples(17), 5, max_points=13, max_length=19, drop_remainder=True)
    inputs, labels = batches.element_spec
    assert (inputs["source"].shape, inputs["source_mask"].shape) == ((5, 13, 2), (5, 13))
    assert inputs["target"].shape == labels.shape == (5, 19)
    assert len(batches) == len(listed(batches)) == 3


def test_length_is_the_number_of_batches():
    batches = point_batches(random_examples(17), 5)
    assert len(batches) == len(listed(batches)) == 4
    assert len(point_batches(point_dataset(random_examples(17)).shuffle(17).repeat(3), 5)) == 11


@pytest.mark.parametrize("width", [1, 3, 5])
def test_points_have_any_width(width):
    ((inputs, _),) = listed(point_batches(random_examples(7, width=width), 7))
    assert inputs["source"].shape[-1] == width


def test_points_at_the_origin_are_points():
    ((inputs, _),) = listed(point_batches([THREE, {"points": [[0.0, 0.0], [0.0, 0.0]], "indices": [2, 1]}], 2))
    np.testing.assert_array_equal(inputs["source_mask"], [[True, True, True], [True, True, False]])


def test_other_types_are_cast_and_other_columns_left_out():
    spec = {
        "points": tf.TensorSpec((None, 2), tf.float64),
        "indices": tf.TensorSpec((None,), tf.int64),
        "length": tf.TensorSpec((), tf.float32),
        "name": tf.TensorSpec((), tf.string),
    }
    examples = [{**THREE, "length": 1.5, "name": "a"}, {**ONE, "length": 0.0, "name": "b"}]
    dataset = tf.data.Dataset.from_generator(lambda: examples, output_signature=spec)
    assert point_batches(dataset).element_spec == point_batches(data_set(examples)).element_spec
    ((inputs, labels),) = listed(point_batches(dataset))
    ((others, other_labels),) = listed(point_batches(examples))
    np.testing.assert_equal(inputs, others)
    np.testing.assert_array_equal(labels, other_labels)


def test_examples_of_one_fixed_size_are_batched_too():
    examples = {"points": np.random.default_rng(7).random((7, 5, 2), "float32"), "indices": np.full((7, 3), 5, "int32")}
    inputs, labels = next(iter(point_batches(tf.data.Dataset.from_tensor_slices(examples), 7)))
    np.testing.assert_array_equal(inputs["source"], examples["points"])
    np.testing.assert_array_equal(labels, [[5, 5, 5, 0]] * 7)


def test_empty_answer_is_the_end_alone():
    ((inputs, labels),) = listed(point_batches([{"points": [[0.5, 0.5]], "indices": np.zeros(0, "int32")}]))
    assert (inputs["target"].tolist(), labels.tolist()) == ([[0]], [[0]])


def test_data_set_of_a_list_has_its_examples_and_length():
    examples = random_examples(13)
    dataset = point_dataset(examples)
    assert dataset.element_spec == SPEC
    assert len(dataset) == 13
    for element, example in zip(dataset.as_numpy_iterator(), examples, strict=True):
        np.testing.assert_equal(element, example)


def test_data_set_of_a_list_can_be_cached_and_shuffled():
    examples = random_examples(13)
    shuffled = listed(point_dataset(examples).cache().shuffle(13, seed=1))
    by_points = sorted(shuffled, key=lambda example: example["points"].tolist())
    expected = sorted(examples, key=lambda example: example["points"].tolist())
    for element, example in zip(by_points, expected, strict=True):
        np.testing.assert_equal(element, example)
    assert [len(each["points"]) for each in shuffled] != [len(each["points"]) for each in examples]


@pytest.mark.parametrize(
    ("example", "sizes", "message"),
    [
        (THREE, {"max_points": 2}, r"must fit into `max_points`=2\. .* Received one of:\] \[3\]"),
        (THREE, {"max_length": 3}, r"must fit into `max_length`=3\. .* Received one of:\] \[4\]"),
        ({**THREE, "indices": [3, 4]}, {}, r"Indices must be positions of points, .* Received:\] \[\[3 4\]\]"),
        ({**THREE, "indices": [0, 1, 2]}, {}, r"Add 1 to those that count from 0\. Received:\] \[\[0 1 2\]\]"),
        ({**THREE, "indices": [1, 2, 0]}, {}, r"Received:\] \[\[1 2 0\]\]"),
        ({**THREE, "indices": [2, -1, 1]}, {}, r"Received:\] \[\[2 -1 1\]\]"),
        (
            {**ONE, "points": [[0.5, np.nan]]},
            {},
            r"must be finite in float32\. .* Received points:\] \[\[0.5 nan\]\]",
        ),
        ({**ONE, "points": [[0.5, np.inf]]}, {}, r"Received points:\] \[\[0.5 inf\]\]"),
    ],
)
def test_wrong_example_stops_the_reading(example, sizes, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        listed(point_batches(data_set([example]), **sizes))


@pytest.mark.parametrize("points", [[[np.inf, np.inf], [0.0, 1.0]], [[0.0, 1.0], [-np.inf, -np.inf]]])
def test_an_infinite_point_is_no_padding(points):
    with pytest.raises(tf.errors.InvalidArgumentError, match="Coordinates must be finite in float32"):
        listed(point_batches(data_set([THREE, {"points": points, "indices": [1]}]), 2))


UTM = [[5e6 + 0.1, 3.2], [5e6 + 9.7, 4.4]]  # metres; float32 knows only halves there


def test_points_that_float32_cannot_tell_apart_stop_the_reading():
    lost = {"points": UTM, "indices": [1]}
    with pytest.raises(
        ValueError, match=r"Example 1: .*in this example they extend over 9\.6, and up to 0\.2 would be lost\. Subtract"
    ):
        point_batches([THREE, lost])
    spec = {"points": tf.TensorSpec((None, 2), tf.float64), "indices": tf.TensorSpec((None,), tf.int32)}

    def batches(examples):
        return listed(point_batches(tf.data.Dataset.from_generator(lambda: iter(examples), output_signature=spec), 2))

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Subtract their mean .*\[\[9\.6\d* 0\.\d*\]\]"):
        batches([THREE, lost])
    ((inputs, _),) = batches(
        [{"points": [[5e6 + 0.1, 3.2]], "indices": [1]}, {"points": [[0.1, 0.2]] * 2, "indices": [2]}]
    )
    assert inputs["source_mask"].tolist() == [[True, False], [True, True]]


def test_index_must_be_of_a_point_of_its_own_example():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Received:\] \[\[2 -2147483648 -2147483648\]\]"):
        listed(point_batches(data_set([THREE, {**ONE, "indices": [2]}]), 2))


@pytest.mark.parametrize(
    "dataset",
    [
        tf.data.Dataset.range(3),
        tf.data.Dataset.from_tensors({"points": [[0.5, 0.5]]}),
        tf.data.Dataset.from_tensors({"points": [[1, 2]], "indices": [1]}),
        tf.data.Dataset.from_tensors({"points": [[0.5, 0.5]], "indices": [1.0]}),
        tf.data.Dataset.from_tensors({"points": [[0.5, 0.5]], "indices": np.array([1], "uint8")}),
        tf.data.Dataset.from_tensors({"points": [[0.5, 0.5]], "indices": [1]}).batch(2),
    ],
    ids=["no_dictionary", "no_indices", "integer_points", "float_indices", "unsigned_indices", "batched"],
)
def test_data_set_of_other_elements_raises(dataset):
    with pytest.raises(TypeError, match=r'`examples` must have "points", floats of shape \(n, F\).* Received elements'):
        point_batches(dataset)


@pytest.mark.parametrize(
    ("example", "message"),
    [
        (
            {**ONE, "points": [0.5, 0.5]},
            r"float64 points of shape \(2,\) and int64 indices of shape \(1,\) in example 1",
        ),
        ({**ONE, "points": [["a", "b"]]}, r"points of shape \(1, 2\)"),
        ({**ONE, "indices": [1.0]}, r"float64 indices of shape \(1,\)"),
        ({**ONE, "indices": [[1]]}, r"int64 indices of shape \(1, 1\)"),
    ],
)
def test_list_of_other_examples_raises(example, message):
    with pytest.raises(TypeError, match=message):
        point_batches([THREE, example])


@pytest.mark.parametrize(
    ("example", "message"),
    [
        (
            {**ONE, "points": [[0.5, 1e39]]},
            r"Example 1: .* finite in float32\. Received points\[0\] = \[0\.5, 1e\+39\]",
        ),
        ({**ONE, "indices": [2**32 + 1]}, r"Example 1: .*from 1 to 1, .* Received 4294967297 among"),
        ({**ONE, "indices": [0]}, r"Received 0 among \[0\]\. .* add 1 to indices that count from 0"),
    ],
)
def test_list_with_an_impossible_point_or_index_raises(example, message):
    with pytest.raises(ValueError, match=message):
        point_batches([THREE, example])


def test_points_of_another_width_raise():
    with pytest.raises(ValueError, match=r"example 0: 2\. Received points of shape \(1, 3\) in example 1"):
        point_dataset([THREE, {**ONE, "points": [[0.5, 0.5, 0.5]]}])


def test_no_example_raises():
    with pytest.raises(ValueError, match=r"There must be an example\. Received none"):
        point_batches([])


@pytest.mark.parametrize("name", ["batch_size", "max_points", "max_length"])
@pytest.mark.parametrize("size", [0, -1, 2.0, True])
def test_sizes_must_be_positive(name, size):
    with pytest.raises(ValueError, match=rf"`{name}` must be a positive integer\. Received: {size}"):
        point_batches([THREE], **{name: size})
