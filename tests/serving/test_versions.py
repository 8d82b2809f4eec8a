import os

import pytest

from keras_attention.serving.versions import existing_versions, free_version, new_folder


def test_only_numbers_are_versions(tmp_path):
    for name in ("10", "9", "notes", ".export-3", "1.5", "²"):
        (tmp_path / name).mkdir()
    assert existing_versions(tmp_path) == [9, 10]


def test_folder_that_does_not_exist_has_no_versions(tmp_path):
    assert existing_versions(tmp_path / "models") == []
    assert free_version(tmp_path / "models") == 1


def test_next_version_follows_the_last_one(tmp_path):
    (tmp_path / "2").mkdir()
    assert free_version(tmp_path) == 3
    assert free_version(tmp_path, 1) == 1


@pytest.mark.parametrize("version, error", [(-1, ValueError), (0, ValueError), ("2", TypeError), (True, TypeError)])
def test_version_must_be_a_positive_integer(tmp_path, version, error):
    with pytest.raises(error, match=rf"`version` must be .* Received version={version!r}"):
        free_version(tmp_path, version)


def test_new_folder_appears_only_when_it_is_whole(tmp_path):
    target = tmp_path / "models" / "1"
    with new_folder(str(target)) as folder:
        os.mkdir(folder)
        assert not target.exists()
    assert os.listdir(target.parent) == ["1"]


def test_new_folder_can_be_read_by_the_same_users_as_any_other(tmp_path):
    os.mkdir(tmp_path / "other")
    with new_folder(str(tmp_path / "1")) as folder:
        os.mkdir(folder)
    assert os.stat(tmp_path / "1").st_mode == os.stat(tmp_path / "other").st_mode


def test_new_folder_never_replaces_another(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").write_text("first")
    with pytest.raises(OSError, match="Directory not empty"), new_folder(str(tmp_path / "1")) as folder:
        os.mkdir(folder)
    assert os.listdir(tmp_path) == ["1"]
    assert (tmp_path / "1" / "saved_model.pb").read_text() == "first"
