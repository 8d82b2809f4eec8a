import numpy as np
import pytest
import tensorflow as tf

from keras_attention.data import (
    DocumentTokenizer,
    WordTokenizer,
    evaluation_document_batches,
    training_document_batches,
)

WORDS = WordTokenizer(["bad", "good", "."])  # ids 4 to 6
DOCUMENTS = DocumentTokenizer(WORDS)
TEXTS, LABELS = ["Good. Not so bad.", "", "Bad"], [1, 0, 0]


def many_documents(count, seed=0):
    """Documents of 1 to 29 sentences of the word good, labelled by their number."""
    sentences = np.random.default_rng(seed).integers(1, 30, count)
    return ["good.\n" * number for number in sentences], np.arange(count)


def listed(batches):
    return [(ids.tolist(), labels.tolist()) for ids, labels in batches.as_numpy_iterator()]


def test_batches_are_padded_and_keep_the_order():
    first, second = listed(evaluation_document_batches(TEXTS, LABELS, DOCUMENTS, batch_size=2))
    assert first == ([[[5, 6, 0, 0], [3, 3, 4, 6]], [[0] * 4] * 2], [1, 0])
    assert second == ([[[4]]], [0])


def test_training_batch_holds_the_same_documents():
    ((ids, labels),) = listed(training_document_batches(TEXTS, LABELS, DOCUMENTS))
    assert sorted(zip(ids, labels, strict=True)) == [
        ([[0] * 4] * 2, 0),
        ([[4, 0, 0, 0], [0] * 4], 0),
        ([[5, 6, 0, 0], [3, 3, 4, 6]], 1),
    ]


@pytest.mark.parametrize("batches_of", [training_document_batches, evaluation_document_batches])
def test_elements_and_number_of_batches_are_known(batches_of):
    batches = batches_of(*many_documents(17), DOCUMENTS, batch_size=5)
    assert batches.element_spec == (tf.TensorSpec((None, None, None), tf.int32), tf.TensorSpec((None,), tf.int32))
    assert len(batches) == len(listed(batches)) == 4


@pytest.mark.parametrize(
    "labels, dtype, shape", [([[0.5], [1], [2]], "float32", (3, 1)), (np.array([True, False, True]), "int32", (3,))]
)
def test_labels_may_be_numbers_of_any_shape(labels, dtype, shape):
    ((_, batch),) = evaluation_document_batches(TEXTS, labels, DOCUMENTS).as_numpy_iterator()
    assert (batch.dtype, batch.shape) == (dtype, shape)
    np.testing.assert_array_equal(batch, labels)


def test_other_levels_and_plain_tokenizers_give_other_ranks():
    for tokenizer, shape in (
        (WORDS, (3, 6)),
        (DocumentTokenizer(WORDS, ("word", "sentence", "paragraph")), (3, 1, 2, 4)),
    ):
        ((ids, _),) = evaluation_document_batches(TEXTS, LABELS, tokenizer).as_numpy_iterator()
        assert ids.shape == shape


def test_texts_may_be_a_data_set():
    texts = tf.data.Dataset.from_tensor_slices(TEXTS)
    assert listed(evaluation_document_batches(texts, LABELS, DOCUMENTS)) == listed(
        evaluation_document_batches(TEXTS, LABELS, DOCUMENTS)
    )


def test_every_epoch_has_every_document_with_its_label_in_another_order():
    texts, labels = many_documents(101)
    batches = training_document_batches(texts, labels, DOCUMENTS, batch_size=7, seed=3)
    epochs = [listed(batches) for _ in range(2)]
    for epoch in epochs:
        rows = [(np.sum(np.array(ids)[:, :, 0] > 0, axis=1), numbers) for ids, numbers in epoch]
        found = {number: count for counts, numbers in rows for count, number in zip(counts, numbers, strict=True)}
        assert found == {number: text.count("\n") for number, text in enumerate(texts)}
    assert epochs[0] != epochs[1]
    again = training_document_batches(texts, labels, DOCUMENTS, batch_size=7, seed=3)
    assert [listed(again) for _ in range(2)] == epochs


def test_order_is_a_function_of_the_epoch_where_a_variable_holds_it():
    epoch, orders = tf.Variable(0), []
    batches = training_document_batches(*many_documents(101), DOCUMENTS, batch_size=7, seed=3, epoch=epoch)
    for number in (0, 1, 0):
        epoch.assign(number)
        orders.append(listed(batches))
    assert orders[0] == orders[2] != orders[1]


def test_documents_of_a_batch_have_similar_numbers_of_sentences():
    def padding(batches):
        return np.mean([np.mean(ids == 0) for ids, _ in batches.as_numpy_iterator()])

    documents = many_documents(640)
    bucketed = padding(training_document_batches(*documents, DOCUMENTS, batch_size=16, seed=0))
    assert bucketed < 0.1 < 0.3 < padding(evaluation_document_batches(*documents, DOCUMENTS, batch_size=16))


def test_documents_beyond_one_tokenised_chunk_are_read():
    assert len(evaluation_document_batches(["good"] * 1031, np.ones(1031), DOCUMENTS, batch_size=1)) == 1031


def test_labels_that_do_not_fit_raise():
    with pytest.raises(ValueError, match=r"Received 3 texts and labels of shape \(2,\)"):
        training_document_batches(TEXTS, [1, 0], DOCUMENTS)
    with pytest.raises(ValueError, match=r"Received 0 texts and labels of shape \(0,\)"):
        training_document_batches([], [], DOCUMENTS)
    with pytest.raises(ValueError, match=r"Integer labels become int32\. Received labels from 0 to 4294967296"):
        evaluation_document_batches(TEXTS, [0, 1, 2**32], DOCUMENTS)
    with pytest.raises(TypeError, match=r"`labels` must be numbers\. Received str"):
        training_document_batches(TEXTS, ["a", "b", "c"], DOCUMENTS)


def test_other_arguments_that_are_wrong_raise():
    with pytest.raises(TypeError, match="`tokenizer` must have the methods"):
        evaluation_document_batches(TEXTS, LABELS, str)
    with pytest.raises(ValueError, match="Received: 0"):
        evaluation_document_batches(TEXTS, LABELS, DOCUMENTS, batch_size=0)
    with pytest.raises(TypeError, match="`epoch` must be an integer"):
        training_document_batches(TEXTS, LABELS, DOCUMENTS, epoch=3)
