"""Good rows are answered as if they were alone; bad ones have their reason in `error`."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attention.serving.rows import DIVERGED, LONGEST_SOURCE, answer_rows, level_limits, row_limits

CHECKS = [
    ("negative", lambda ids, **_: tf.reduce_any(ids < 0, axis=1)),
    ("has a nine", lambda ids, **_: tf.reduce_any(ids == 9, axis=1)),
]


def halves(inputs):
    ids = inputs["ids"]
    text = tf.strings.as_string(tf.reduce_sum(ids, axis=1))
    return {"ids": ids, "half": tf.cast(ids, tf.float32) / 2, "text": text, "version": tf.constant(7)}


def answers(function, **inputs):
    """The outputs as lists, of a graph whose sizes are all open."""
    tensors = {name: tf.constant(value) for name, value in inputs.items()}
    specs = {name: tf.TensorSpec([None] * len(tensor.shape), tensor.dtype) for name, tensor in tensors.items()}
    outputs = tf.function(function, input_signature=[specs])(tensors)
    return {name: output.numpy().tolist() for name, output in outputs.items()}


def test_a_bad_row_has_nothing_but_its_reason_and_the_others_are_untouched():
    outputs = answers(answer_rows(halves, CHECKS), ids=[[3, 5], [-7, 9], [9, 2], [0, 1]])
    assert outputs["error"] == [b"", b"negative", b"has a nine", b""]
    assert outputs["ids"] == [[3, 5], [0, 0], [0, 0], [0, 1]]
    assert outputs["text"] == [b"8", b"", b"", b"1"]
    assert outputs["version"] == 7
    np.testing.assert_array_equal(outputs["half"], [[1.5, 2.5], [np.nan] * 2, [np.nan] * 2, [0, 0.5]])


def test_a_bad_row_never_reaches_the_function():
    seen = []

    def look(inputs):
        seen.append(inputs["ids"])
        return halves(inputs)

    answer_rows(look, CHECKS)({"ids": tf.constant([[3, 5], [-7, 5]])})
    assert seen[0].numpy().tolist() == [[3, 5], [0, 0]]


def test_a_row_answered_by_nan_has_diverged():
    def roots(inputs):
        return {"root": tf.sqrt(inputs["number"]), "sign": tf.sign(inputs["number"])}

    outputs = answers(answer_rows(roots), number=[[4.0, 9.0], [4.0, -1.0]])
    assert outputs["error"] == [b"", DIVERGED.encode()]
    np.testing.assert_array_equal(outputs["root"], [[2, 3], [np.nan, np.nan]])
    np.testing.assert_array_equal(outputs["sign"], [[1, 1], [np.nan, np.nan]])


def test_the_reason_of_an_inner_signature_is_kept():
    inner = answer_rows(halves, CHECKS)
    outputs = answers(answer_rows(inner, [("first is five", lambda ids: ids[:, 0] == 5)]), ids=[[5, 9], [3, 9], [3, 3]])
    assert outputs["error"] == [b"first is five", b"has a nine", b""]


def test_rows_beyond_a_limit_are_refused_up_to_their_last_entry_and_padding_is_cut():
    outputs = answers(answer_rows(halves, limits={"ids": (3,)}), ids=[[1, 0, 2, 0, 0], [0, 0, 0, 2, 0], [0] * 5])
    reason = b"`ids` must have a length of at most 3, up to its last entry. Send a shorter one."
    assert outputs["error"] == [b"", reason, b""]
    assert outputs["ids"] == [[1, 0, 2], [0, 0, 0], [0, 0, 0]]


def test_each_axis_of_a_document_has_a_limit():
    ids = np.zeros((3, 3, 5), "int32")
    ids[0, 1, 2] = ids[1, 2, 0] = ids[2, 0, 3] = 7
    outputs = answers(answer_rows(lambda inputs: dict(inputs), limits={"ids": (2, 3)}), ids=ids)
    assert [reason[:45] for reason in outputs["error"]] == [
        b"",
        b"`ids` must have a length of at most 2 in axis",
        b"`ids` must have a length of at most 3 in axis",
    ]
    assert np.shape(outputs["ids"]) == (3, 2, 3)
    assert np.sum(outputs["ids"]) == 7


def test_points_are_as_many_as_their_lengths_say():
    points = np.full((3, 4, 1), np.nan, "float32")
    points[:, :2] = 0.0
    function = answer_rows(lambda inputs: {"lengths": inputs["lengths"]}, limits={"points": (2,)})
    outputs = answers(function, points=points, lengths=np.array([2, 3, 0], "int32"))
    assert outputs["lengths"] == [2, 0, 0]
    assert [bool(reason) for reason in outputs["error"]] == [False, True, False]


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 0)])
def test_no_rows_and_no_columns_are_answered(shape):
    outputs = answers(answer_rows(halves, CHECKS, {"ids": (2,)}), ids=np.zeros(shape, "int32"))
    assert outputs["error"] == [b""] * shape[0]
    assert outputs["ids"] == [[0] * min(shape[1], 2)] * shape[0]


def test_unequal_numbers_of_rows_are_an_error_of_the_whole_request():
    function = answer_rows(lambda inputs: {"sum": inputs["source"] + inputs["target"]})
    message = "`source` and `target` must have as many rows as each other"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        answers(function, source=[[1], [2]], target=[[3]])


# === Limits ===


class Model:
    max_source_length = 31

    def longest_answer(self, length):
        return 6 * length + 1


PAIRS = {"score": (None, {"points": tf.zeros((1, 1, 2)), "indices": tf.zeros((1, 1))})}


@pytest.mark.parametrize(
    ("model", "given", "expected"),
    [
        (object(), (None, None), (LONGEST_SOURCE, LONGEST_SOURCE)),
        (object(), (7, None), (7, 7)),
        (object(), (None, 5), (LONGEST_SOURCE, 5)),
        (Model(), (None, None), (31, 187)),
        (Model(), (7, 5), (7, 5)),
    ],
)
def test_limits_are_those_given_those_of_the_model_or_the_documented_ones(model, given, expected):
    points, indices = expected
    assert row_limits(model, PAIRS, *given) == {"points": (points,), "indices": (indices,)}


def test_documents_have_the_limits_of_their_tokenizer_or_the_documented_ones():
    class Tokenizer:
        levels = ("word", "sentence", "paragraph")
        max_words, max_sentences, max_paragraphs = 5, None, 3

    assert level_limits(3, Tokenizer()) == (3, 128, 5)
    assert level_limits(3) == (16, 128, 128)
    assert level_limits(1) == (128,)
    documents = {"classify": (None, {"ids": tf.zeros((1, 1, 1))}, [])}
    assert row_limits(object(), documents, None, None) == {"ids": (128, 128)}
