import pytest

from keras_attention.files import whole_file, write_whole


def test_a_file_is_there_when_its_writer_is_done(tmp_path):
    path = tmp_path / "new folder" / "weights.h5"
    with whole_file(path) as partial:
        partial.write_text("new")
        assert partial.suffix == ".h5"
        assert not path.exists()
    assert path.read_text() == "new"
    assert list(path.parent.iterdir()) == [path]


def test_after_an_error_the_earlier_file_stays_alone(tmp_path):
    path = tmp_path / "points.txt"
    write_whole(path, b"old")
    with pytest.raises(OSError, match="disk full"), whole_file(str(path)) as partial:
        partial.write_text("ne")
        raise OSError("disk full")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
