import pathlib

import pytest

from keras_attention.data.builders.parallel_text.file_names import find_files


def names(folder, source="en", target="de"):
    return {split: (s.name, t.name) for split, (s, t) in find_files(folder, source, target).items()}


@pytest.fixture
def folder_with(tmp_path):
    def make(*names):
        for name in names:
            (tmp_path / name).touch()
        return tmp_path

    return make


@pytest.mark.parametrize(
    "pair",
    [
        ("train.en", "train.de"),
        ("train.en.gz", "train.de.gz"),
        ("en.train.txt", "de.train.txt"),
        ("en.train.txt.gz", "de.train.txt.gz"),
        ("train.en.gz", "train.de"),
        ("train.en", "de.train.txt.gz"),
    ],
)
def test_every_way_of_naming_is_found_and_the_sides_may_differ(folder_with, pair):
    assert names(folder_with(*pair)) == {"train": pair}


def test_source_and_target_are_what_the_caller_says(folder_with):
    assert names(folder_with("train.en", "train.de"), "de", "en") == {"train": ("train.de", "train.en")}


def test_every_split_of_the_folder_is_found_and_sorted_by_name(folder_with):
    folder = folder_with("val.en", "val.de", "en.test_2016_flickr.txt", "de.test_2016_flickr.txt")
    assert list(names(folder)) == ["test_2016_flickr", "val"]


def test_path_of_the_folder_may_be_a_string(folder_with):
    assert names(str(folder_with("train.en", "train.de"))) == {"train": ("train.en", "train.de")}


def test_tilde_is_the_home_of_the_user(folder_with, monkeypatch):
    monkeypatch.setenv("HOME", str(folder_with("train.en", "train.de")))
    assert names(pathlib.Path("~")) == {"train": ("train.en", "train.de")}


def test_other_files_folders_and_hidden_files_are_left_alone(folder_with):
    folder = folder_with("train.en", "train.de", "train.fr", "README.md", "train.en~", ".val.en", "_train.en.bak", "en")
    (folder / "test.en").mkdir()
    assert names(folder) == {"train": ("train.en", "train.de")}


def test_language_codes_with_region_and_script_are_found(folder_with):
    folder = folder_with("train.pt-BR", "train.zh_Hant")
    assert names(folder, "pt-BR", "zh_Hant") == {"train": ("train.pt-BR", "train.zh_Hant")}


def test_split_that_is_named_like_a_language_is_found(folder_with):
    assert names(folder_with("en.en", "en.de")) == {"en": ("en.en", "en.de")}


@pytest.mark.parametrize(
    ("name", "split"),
    [("dev-2016", "dev-2016"), ("Europarl.de-en", "Europarl_de-en"), ("a+b [1]", "a_b__1_"), ("prüfung", "prüfung")],
)
def test_characters_that_tfds_refuses_in_a_split_become_underscores(folder_with, name, split):
    assert list(names(folder_with(f"{name}.en", f"{name}.de"))) == [split]


@pytest.mark.parametrize(
    ("first", "second"),
    [("train.en", "train.en.gz"), ("train.en", "en.train.txt"), ("news.v2.en", "news_v2.en")],
)
def test_two_files_for_one_side_of_a_split_raise(folder_with, first, second):
    folder = folder_with("train.de", "news_v2.de", first, second)
    with pytest.raises(ValueError, match=r"one file for each language.*both for `en` of split") as raised:
        find_files(folder, "en", "de")
    assert str(folder / first) in str(raised.value)
    assert str(folder / second) in str(raised.value)


@pytest.mark.parametrize(
    ("present", "wanted"),
    [
        ("news.v2.en", r"There is no news.v2.de or de.news.v2.txt for .*news.v2.en"),
        ("de.val.txt.gz", r"There is no val.en or en.val.txt for .*de.val.txt.gz"),
    ],
)
def test_missing_side_raises_with_the_names_it_could_have(folder_with, present, wanted):
    with pytest.raises(FileNotFoundError, match=wanted):
        find_files(folder_with("train.en", "train.de", present), "en", "de")


def test_empty_folder_raises_with_the_names_that_are_looked_for(tmp_path):
    looked_for = "Looked for train.en or en.train.txt, with train.de or de.train.txt, each also with .gz, .* train.tsv"
    with pytest.raises(FileNotFoundError, match=f"{looked_for}.*Found no file."):
        find_files(tmp_path, "en", "de")


def test_folder_of_other_languages_raises_with_what_is_there(folder_with):
    with pytest.raises(FileNotFoundError, match=r"no text of `en` and `de`.*Found train.cs, train.fr\."):
        find_files(folder_with("train.cs", "train.fr"), "en", "de")


def test_long_list_of_other_files_is_cut(folder_with):
    folder = folder_with(*(f"{number:02}.txt" for number in range(13)))
    with pytest.raises(FileNotFoundError, match=r"Found 00.txt, 01.txt, .*, 09.txt and 3 more\."):
        find_files(folder, "en", "de")


def test_folder_that_does_not_exist_raises(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*missing. Pass the path"):
        find_files(tmp_path / "missing", "en", "de")


def test_a_file_in_place_of_the_folder_is_one_of_pairs(folder_with):
    path = folder_with("deu.txt") / "deu.txt"
    assert find_files(path, "en", "de") == {"train": (path,)}


def test_files_of_pairs_are_taken_where_no_side_has_a_file_of_its_own(folder_with):
    folder = folder_with("val.tsv.gz", "news.v2.tsv")
    assert find_files(folder, "en", "de") == {"news_v2": (folder / "news.v2.tsv",), "val": (folder / "val.tsv.gz",)}
    assert names(folder_with("train.en", "train.de")) == {"train": ("train.en", "train.de")}


def test_a_split_of_pairs_that_is_there_twice_raises(folder_with):
    with pytest.raises(ValueError, match=r"one file of pairs.* Received .*train\.tsv\.gz"):
        find_files(folder_with("train.tsv", "train.tsv.gz"), "en", "de")


def test_split_that_is_named_all_raises(folder_with):
    with pytest.raises(ValueError, match=r"cannot be named `all`.*all\.de"):
        find_files(folder_with("all.en", "all.de"), "en", "de")


def test_equal_languages_raise(tmp_path):
    with pytest.raises(ValueError, match=r"must be two languages. Received 'en' for both"):
        find_files(tmp_path, "en", "en")


@pytest.mark.parametrize("language", ["", "*.en", "../en", None])
def test_language_that_is_no_code_raises(tmp_path, language):
    with pytest.raises(ValueError, match=r"`target` must be a language code.*Received target="):
        find_files(tmp_path, "en", language)
