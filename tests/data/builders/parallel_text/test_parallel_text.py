import gzip
import pickle
import socket

import pytest
import tensorflow as tf
import tensorflow_datasets as tfds

from keras_attention.data import CharacterTokenizer, evaluation_batches
from keras_attention.data.builders.parallel_text import ParallelText, load_parallel_text

COUNT = 1013


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "train.en").write_text("A dog runs.\n\nYes.\u2028Well.\n", encoding="utf-8")
    (folder / "train.de").write_text("Ein Hund rennt.\r\nJa.\r\nJä 🐕", encoding="utf-8", newline="")
    (folder / "en.val.txt.gz").write_bytes(gzip.compress("".join(f"s{i}\n" for i in range(COUNT)).encode()))
    (folder / "de.val.txt.gz").write_bytes(gzip.compress("".join(f"t{i}\n" for i in range(COUNT)).encode()))
    return folder


@pytest.fixture
def data_dir(tmp_path):
    return tmp_path / "tfds"


def texts(pairs):
    return [(source.decode(), target.decode()) for source, target in pairs.as_numpy_iterator()]


TRAIN = [("A dog runs.", "Ein Hund rennt."), ("", "Ja."), ("Yes.\u2028Well.", "Jä 🐕")]


def test_pairs_are_the_lines_of_both_files(folder, data_dir):
    splits = load_parallel_text(folder, "en", "de", data_dir=data_dir)
    assert list(splits) == ["train", "val"]
    assert texts(splits["train"]) == TRAIN


def test_pairs_come_from_one_file_with_tabs_too(tmp_path, data_dir):
    path = tmp_path / "deu.txt"
    path.write_text("A dog runs.\tEin Hund rennt.\tCC-BY 2.0\n\tJa.\n\nNo.\tNein.", encoding="utf-8")
    (pairs,) = load_parallel_text(path, "en", "de", data_dir=data_dir).values()
    assert texts(pairs) == [("A dog runs.", "Ein Hund rennt."), ("", "Ja."), ("", ""), ("No.", "Nein.")]


def test_order_is_that_of_the_file(folder, data_dir):
    pairs = load_parallel_text(folder, "en", "de", data_dir=data_dir)["val"]
    assert texts(pairs) == texts(pairs) == [(f"s{i}", f"t{i}") for i in range(COUNT)]


def test_order_is_that_of_the_file_in_several_shards_too(folder, data_dir):
    builder = ParallelText(folder, "en", "de", data_dir=data_dir)
    builder.download_and_prepare(download_config=tfds.download.DownloadConfig(num_shards=3))
    assert builder.info.splits["val"].num_shards == 3
    assert texts(builder.as_dataset(split="val", as_supervised=True)) == [(f"s{i}", f"t{i}") for i in range(COUNT)]


def test_pairs_are_scalar_strings_and_their_number_is_known(folder, data_dir):
    splits = load_parallel_text(folder, "en", "de", data_dir=data_dir)
    assert {split: len(pairs) for split, pairs in splits.items()} == {"train": 3, "val": COUNT}
    assert splits["train"].element_spec == (tf.TensorSpec((), tf.string), tf.TensorSpec((), tf.string))


def test_the_other_direction_gives_the_pairs_the_other_way_round(folder, data_dir):
    load_parallel_text(folder, "en", "de", data_dir=data_dir)
    pairs = load_parallel_text(folder, "de", "en", data_dir=data_dir)["train"]
    assert texts(pairs) == [(target, source) for source, target in TRAIN]


def test_builder_names_the_features_by_language(folder, data_dir):
    builder = ParallelText(folder, source="en", target="de", data_dir=data_dir)
    builder.download_and_prepare()
    first = next(iter(builder.as_dataset(split="train").as_numpy_iterator()))
    assert first == {"en": b"A dog runs.", "de": b"Ein Hund rennt."}
    assert texts(builder.as_dataset(split="val[5:7]", as_supervised=True)) == [("s5", "t5"), ("s6", "t6")]


def test_batches_leave_out_the_pair_with_an_empty_side(folder, data_dir):
    pairs = load_parallel_text(folder, "en", "de", data_dir=data_dir)["train"]
    tokenizer = CharacterTokenizer.train(text for pair in TRAIN for text in pair)
    [(inputs, _)] = evaluation_batches(pairs, tokenizer, tokenizer)
    assert tokenizer.detokenize(inputs["source"]).numpy().tolist() == [b"A dog runs.", "Yes.\u2028Well.".encode()]


def test_tfds_loads_the_registered_name_with_the_arguments(folder, data_dir):
    arguments = {"folder": folder, "source": "en", "target": "de"}
    pairs = tfds.load("parallel_text", split="train", as_supervised=True, data_dir=data_dir, builder_kwargs=arguments)
    assert texts(pairs) == TRAIN


def test_prepared_pairs_need_no_folder_any_more(folder, data_dir):
    builder = ParallelText(folder, "en", "de", data_dir=data_dir)
    builder.download_and_prepare()
    for path in folder.iterdir():
        path.unlink()
    prepared = tfds.builder_from_directory(builder.data_dir)
    assert texts(prepared.as_dataset(split="train", as_supervised=True)) == TRAIN
    name = f"parallel_text/{builder.builder_config.name}"
    assert texts(tfds.load(name, split="train", as_supervised=True, data_dir=data_dir)) == TRAIN


def test_second_call_prepares_nothing(folder, data_dir, monkeypatch):
    load_parallel_text(folder, "en", "de", data_dir=data_dir)
    monkeypatch.setattr(ParallelText, "_split_generators", None)
    assert texts(load_parallel_text(folder, "en", "de", data_dir=data_dir)["train"]) == TRAIN


def test_edited_file_gives_its_new_pairs_and_then_the_old_ones_again(folder, data_dir):
    path = folder / "train.en"
    old = path.read_text(encoding="utf-8")
    load_parallel_text(folder, "en", "de", data_dir=data_dir)
    path.write_text(old.replace("dog", "cat"), encoding="utf-8")
    edited = load_parallel_text(folder, "en", "de", data_dir=data_dir)["train"]
    assert texts(edited) == [("A cat runs.", "Ein Hund rennt."), *TRAIN[1:]]
    path.write_text(old, encoding="utf-8")
    assert texts(load_parallel_text(folder, "en", "de", data_dir=data_dir)["train"]) == TRAIN


def test_two_folders_in_one_data_dir_keep_their_own_pairs(folder, data_dir, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "train.en").write_text("One.\n")
    (other / "train.de").write_text("Eins.\n")
    load_parallel_text(folder, "en", "de", data_dir=data_dir)
    assert {
        split: texts(pairs) for split, pairs in load_parallel_text(other, "en", "de", data_dir=data_dir).items()
    } == {"train": [("One.", "Eins.")]}
    assert texts(load_parallel_text(folder, "en", "de", data_dir=data_dir)["train"]) == TRAIN


def test_language_codes_that_join_to_the_same_text_are_told_apart(tmp_path, data_dir):
    for language, text in {"a_b": "1", "c": "2", "a": "1", "b_c": "2"}.items():
        (tmp_path / f"train.{language}").write_text(text)
    first = ParallelText(tmp_path, "a_b", "c", data_dir=data_dir)
    second = ParallelText(tmp_path, "a", "b_c", data_dir=data_dir)
    assert first.data_dir != second.data_dir


@pytest.mark.parametrize("damage", [b"one line too many\n" * 7, b"\xff\n\n\n"])
def test_wrong_files_raise_before_anything_is_written(folder, data_dir, damage):
    (folder / "train.de").write_bytes(damage)
    with pytest.raises(ValueError, match=r"train.de with 7|train.de, line 1"):
        load_parallel_text(folder, "en", "de", data_dir=data_dir)
    assert not data_dir.exists()


def test_file_that_changes_before_it_is_prepared_raises_and_leaves_no_pairs(folder, data_dir):
    builder = ParallelText(folder, "en", "de", data_dir=data_dir)
    (folder / "train.en").write_text("1\n2\n3\n")
    with pytest.raises(ValueError, match=r"have changed since this builder was made. Make a new one"):
        builder.download_and_prepare()
    assert not [path for path in data_dir.rglob("*") if path.is_file()]


def test_pickled_builder_reads_the_same_pairs(folder, data_dir):
    builder = ParallelText(folder, "en", "de", data_dir=data_dir)
    builder.download_and_prepare()
    copy = pickle.loads(pickle.dumps(builder))
    assert texts(copy.as_dataset(split="train", as_supervised=True)) == TRAIN


def test_no_network_is_touched(folder, data_dir, monkeypatch):
    def refuse(*arguments):
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert texts(load_parallel_text(folder, "en", "de", data_dir=data_dir)["train"]) == TRAIN
