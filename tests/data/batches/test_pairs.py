import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attention.data import CharacterTokenizer, evaluation_batches, training_batches
from keras_attention.training import SeedEachEpoch

DIGITS = CharacterTokenizer("xyz")


def pairs_of(*pairs):
    sources, targets = zip(*pairs, strict=True)
    return tf.data.Dataset.from_tensor_slices((list(sources), list(targets)))


def many_pairs(count, seed=0):
    """Sources of 1 to 59 random letters, each with a target that follows from the length of the source."""
    generator = np.random.default_rng(seed)
    sources = ["".join(generator.choice(list("abcdefg"), size=generator.integers(1, 60))) for _ in range(count)]
    return pairs_of(*[(source, "xyz"[len(source) % 3] * (1 + len(source) % 5)) for source in sources])


def listed(batches):
    return [
        (inputs["source"].tolist(), inputs["target"].tolist(), labels.tolist())
        for inputs, labels in batches.as_numpy_iterator()
    ]


def test_batch_has_padded_source_shifted_target_and_labels(letters):
    batches = evaluation_batches(pairs_of(("abc", "xy"), ("a", "z")), letters, DIGITS, batch_size=2)
    assert listed(batches) == [([[4, 5, 6], [4, 0, 0]], [[1, 4, 5], [1, 6, 0]], [[4, 5, 2], [6, 2, 0]])]


def test_training_batch_holds_the_same_pairs(letters):
    batches = training_batches(pairs_of(("abc", "xy"), ("a", "z")), letters, DIGITS, batch_size=2)
    ((source, target, labels),) = listed(batches)
    assert sorted(zip(source, target, labels, strict=True)) == [
        ([4, 0, 0], [1, 6, 0], [6, 2, 0]),
        ([4, 5, 6], [1, 4, 5], [4, 5, 2]),
    ]


@pytest.mark.parametrize("batches_of", [training_batches, evaluation_batches])
def test_elements_are_int32_of_any_length(letters, batches_of):
    batches = batches_of(many_pairs(7), letters, DIGITS, batch_size=3)
    ids = tf.TensorSpec((None, None), tf.int32)
    assert batches.element_spec == ({"source": ids, "target": ids}, ids)


@pytest.mark.parametrize("batches_of", [training_batches, evaluation_batches])
def test_length_is_the_number_of_batches(letters, batches_of):
    batches = batches_of(many_pairs(17), letters, DIGITS, batch_size=5)
    assert len(batches) == len(list(batches)) == 4


def test_evaluation_keeps_the_order(letters):
    batches = evaluation_batches(pairs_of(("g", "x"), ("abcdef", "y"), ("c", "z")), letters, DIGITS, batch_size=1)
    assert [source for source, _, _ in listed(batches)] == [[[10]], [[4, 5, 6, 7, 8, 9]], [[6]]]


@pytest.mark.parametrize("batches_of", [training_batches, evaluation_batches])
def test_empty_and_long_pairs_are_left_out(letters, batches_of):
    pairs = pairs_of(("", "x"), ("a", ""), ("abcd", "x"), ("b", "xyz"), ("abc", "xy"), ("", ""))
    batches = batches_of(pairs, letters, DIGITS, max_source_length=3, max_target_length=2)
    assert listed(batches) == [([[4, 5, 6]], [[1, 4, 5]], [[4, 5, 2]])]


def test_every_epoch_has_every_pair_once_in_another_order(letters):
    pairs = many_pairs(301)
    batches = training_batches(pairs, letters, DIGITS, batch_size=7, seed=1)
    epochs = [[tuple(filter(None, row)) for source, _, _ in listed(batches) for row in source] for _ in range(2)]
    expected = sorted(tuple(row) for row in letters.tokenize([s for s, _ in pairs.as_numpy_iterator()]).to_list())
    assert sorted(epochs[0]) == sorted(epochs[1]) == expected
    assert epochs[0] != epochs[1]


def test_source_and_target_stay_together(letters):
    for source, target, labels in listed(training_batches(many_pairs(101), letters, DIGITS, batch_size=11)):
        for source_row, target_row, label_row in zip(source, target, labels, strict=True):
            length = np.count_nonzero(source_row)
            tokens = [4 + length % 3] * (1 + length % 5)
            assert [token for token in target_row if token] == [1, *tokens]
            assert [token for token in label_row if token] == [*tokens, 2]


def test_same_seed_gives_the_same_epochs(letters):
    def epochs(seed):
        batches = training_batches(many_pairs(101), letters, DIGITS, batch_size=7, seed=seed)
        return [listed(batches), listed(batches)]

    assert epochs(3) == epochs(3)
    assert epochs(3) != epochs(5)


def test_order_is_a_function_of_the_epoch_where_a_variable_holds_it(letters):
    epoch = tf.Variable(0)
    batches = training_batches(many_pairs(101), letters, DIGITS, batch_size=7, seed=3, epoch=epoch)
    orders = []
    for number in (0, 1, 0, 1):
        epoch.assign(number)
        orders.append(listed(batches))
    assert orders[0] == orders[2] != orders[1] == orders[3]
    again = training_batches(many_pairs(101), letters, DIGITS, batch_size=7, seed=3, epoch=tf.Variable(1))
    assert listed(again) == orders[1]
    other = training_batches(many_pairs(101), letters, DIGITS, batch_size=7, seed=5, epoch=tf.Variable(1))
    assert listed(other) != orders[1]


def test_fit_reads_the_order_of_the_epoch_at_which_it_begins(letters):
    read = []

    class Recorder(keras.Model):
        def train_step(self, data):
            read.append(data[0]["source"].numpy().tolist())
            return {"loss": tf.constant(0.0)}

    def sources(first, last):
        read.clear()
        epoch = tf.Variable(0)
        batches = training_batches(many_pairs(53), letters, DIGITS, batch_size=7, seed=3, epoch=epoch)
        model = Recorder()
        model.compile(run_eagerly=True)
        callbacks = [SeedEachEpoch(epoch)]
        model.fit(batches, epochs=last, initial_epoch=first, callbacks=callbacks, verbose=0, shuffle=False)
        return list(read)

    whole = sources(0, 3)
    assert len(whole) == 24
    assert sources(2, 3) == whole[16:] != whole[8:16]


def test_pairs_of_a_batch_have_similar_lengths(letters):
    def padding(batches):
        return np.mean([np.mean(np.array(source) == 0) for source, _, _ in listed(batches)])

    pairs = many_pairs(640)
    bucketed = padding(training_batches(pairs, letters, DIGITS, batch_size=16, seed=0))
    assert bucketed < 0.1 < 0.3 < padding(evaluation_batches(pairs, letters, DIGITS, batch_size=16))


def test_batches_do_not_come_in_the_order_of_length(letters):
    widths = [len(source[0]) for source, _, _ in listed(training_batches(many_pairs(320), letters, DIGITS, 16, seed=0))]
    assert widths != sorted(widths)


def test_all_batches_but_one_are_full(letters):
    batches = training_batches(many_pairs(100), letters, DIGITS, batch_size=7)
    sizes = sorted(len(source) for source, _, _ in listed(batches))
    assert sizes == [2] + [7] * 14


def test_pairs_beyond_one_tokenised_batch_are_read(letters):
    count = 2 * 1024 + 3
    pairs = tf.data.Dataset.from_tensors(("abc", "x")).repeat(count)
    assert sum(len(source) for source, _, _ in listed(evaluation_batches(pairs, letters, DIGITS))) == count


def test_localized_dates_become_batches(tiny_dates):
    pairs = pairs_of(*[(example["text"], example["date"]) for example in tiny_dates["test"]])
    source_tokenizer = CharacterTokenizer.train(example["text"] for example in tiny_dates["train"])
    target_tokenizer = CharacterTokenizer.train(example["date"] for example in tiny_dates["train"])
    ((inputs, labels),) = evaluation_batches(pairs, source_tokenizer, target_tokenizer)
    assert target_tokenizer.vocabulary_size == 15
    assert labels.shape == (100, 11)
    assert target_tokenizer.detokenize(labels).numpy()[0].decode() == tiny_dates["test"][0]["date"]
    assert source_tokenizer.detokenize(inputs["source"]).numpy()[0].decode() == tiny_dates["test"][0]["text"]


def test_data_set_of_dictionaries_raises(letters):
    pairs = tf.data.Dataset.from_tensors({"text": "a", "date": "x"})
    with pytest.raises(TypeError, match=r"Received .* with elements \{'text': .*Map it first"):
        training_batches(pairs, letters, DIGITS)


def test_endless_pairs_raise(letters):
    with pytest.raises(ValueError, match="`pairs` must end"):
        training_batches(many_pairs(3).repeat(), letters, DIGITS)


def test_batched_pairs_raise(letters):
    with pytest.raises(TypeError, match=r"TensorSpec\(shape=\(None,\).*Map it first"):
        training_batches(many_pairs(3).batch(2), letters, DIGITS)


@pytest.mark.parametrize("batches_of", [training_batches, evaluation_batches])
@pytest.mark.parametrize("kind", [list, iter, np.array, lambda pairs: [list(pair) for pair in pairs]])
def test_pairs_in_memory_are_those_of_a_data_set(letters, batches_of, kind):
    pairs = [("abc", "xy"), ("a", "z"), ("bb\ud800", "\ud83d")]
    whole = pairs_of(*pairs[:2], ("bb�", "�"))
    expected = listed(
        batches_of(whole, letters, DIGITS, batch_size=2, **{"seed": 7} if batches_of is training_batches else {})
    )
    received = batches_of(
        kind(pairs), letters, DIGITS, batch_size=2, **{"seed": 7} if batches_of is training_batches else {}
    )
    assert listed(received) == expected


@pytest.mark.parametrize("pairs", [[("a", "x"), ("a", "x", "y")], [("a", "x"), "ax"], [("a", "x"), ("a", 1)]])
def test_what_is_no_pair_is_named_with_its_place(letters, pairs):
    with pytest.raises(TypeError, match=r"Received .* at position 1\. Of two lists pass `zip\(sources, targets\)`"):
        training_batches(pairs, letters, DIGITS)


def test_object_that_is_no_tokenizer_raises(letters):
    with pytest.raises(TypeError, match=r"`target_tokenizer` must have the methods .* Received str"):
        training_batches(many_pairs(3), letters, "characters")


@pytest.mark.parametrize("name", ["batch_size", "max_source_length", "max_target_length"])
@pytest.mark.parametrize("size", [0, -1, 2.5, "7"])
def test_size_that_is_not_a_positive_integer_raises(letters, name, size):
    with pytest.raises(ValueError, match=f"`{name}` must be a positive integer. Received: {size!r}"):
        evaluation_batches(many_pairs(3), letters, DIGITS, **{name: size})


@pytest.mark.parametrize("batches_of", [training_batches, evaluation_batches])
def test_no_pair_left_raises(letters, batches_of):
    with pytest.raises(ValueError, match=r"No pair is left.*max_source_length=2"):
        batches_of(pairs_of(("abc", "x")), letters, DIGITS, max_source_length=2)
    with pytest.raises(ValueError, match="No pair is left"):
        batches_of(many_pairs(3).take(0), letters, DIGITS)


@pytest.mark.parametrize("epoch", [3, tf.constant(3), tf.Variable(3.0)], ids=["integer", "tensor", "float"])
def test_an_epoch_that_is_not_an_integer_variable_raises(letters, epoch):
    with pytest.raises(TypeError, match=r"`epoch` must be an integer `tf\.Variable` or None\. Received: .*3"):
        training_batches(many_pairs(7), letters, DIGITS, epoch=epoch)
