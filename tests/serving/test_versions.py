import os

import pytest

from keras_attention.serving.versions import existing_versions, free_version, new_version


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


def write(path, version=None, content="whole"):
    """A version of one file."""
    with new_version(str(path), version) as (folder, move):
        os.mkdir(folder)
        with open(os.path.join(folder, "saved_model.pb"), "w") as file:
            file.write(content)
        return move()


def test_new_version_appears_only_when_it_is_whole(tmp_path):
    path = tmp_path / "models"
    with new_version(str(path)) as (folder, move):
        os.mkdir(folder)
        assert existing_versions(path) == []
        assert move() == str(path / "1")
    assert os.listdir(path) == ["1"]


def test_new_version_can_be_read_by_the_same_users_as_any_other(tmp_path):
    os.mkdir(tmp_path / "other")
    assert os.stat(write(tmp_path)).st_mode == os.stat(tmp_path / "other").st_mode


def test_two_exports_at_once_take_two_numbers(tmp_path):
    with new_version(str(tmp_path)) as (folder, move):
        os.mkdir(folder)
        assert write(tmp_path, content="first") == str(tmp_path / "1")
        assert move() == str(tmp_path / "2")
    assert sorted(os.listdir(tmp_path)) == ["1", "2"]
    assert (tmp_path / "1" / "saved_model.pb").read_text() == "first"


def test_a_number_that_another_export_has_taken_meanwhile_is_never_replaced(tmp_path):
    with (
        pytest.raises(ValueError, match=r"version=1, and .* already holds the versions \[1\]"),
        new_version(str(tmp_path), 1) as (folder, move),
    ):
        os.mkdir(folder)
        write(tmp_path, content="first")
        move()
    assert os.listdir(tmp_path) == ["1"]
    assert (tmp_path / "1" / "saved_model.pb").read_text() == "first"


def test_what_a_killed_export_has_left_is_cleared_and_what_is_at_work_stays(tmp_path):
    left = tmp_path / ".export-killed" / "version"
    left.mkdir(parents=True)
    (left / "saved_model.pb").write_text("half")
    with new_version(str(tmp_path)) as (folder, move):
        assert not left.parent.exists()
        os.mkdir(folder)
        write(tmp_path)
        assert os.path.isdir(folder)
        move()
    assert sorted(os.listdir(tmp_path)) == ["1", "2"]


def test_a_hidden_file_and_a_folder_of_another_user_stop_no_export(tmp_path, monkeypatch):
    (tmp_path / ".export-file").write_text("of whoever")
    write(tmp_path)
    os.mkdir(tmp_path / ".export-of-another")
    open_any = os.open

    def open_own(path, *arguments, **options):
        if str(path).endswith("another"):
            raise PermissionError(13, "Permission denied")
        return open_any(path, *arguments, **options)

    monkeypatch.setattr(os, "open", open_own)
    write(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".export-file", ".export-of-another", "1", "2"]


def test_after_an_error_nothing_is_left(tmp_path):
    with pytest.raises(RuntimeError, match="no such letter"), new_version(str(tmp_path / "new")) as (folder, _):
        os.mkdir(folder)
        raise RuntimeError("no such letter")
    assert os.listdir(tmp_path) == []
