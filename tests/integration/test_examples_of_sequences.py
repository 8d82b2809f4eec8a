"""Every example that writes or orders runs from beginning to end with `--smoke`, into a folder of its own."""

import os
import re

import keras
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("the examples read and export with TensorFlow", allow_module_level=True)

import pointer_geometry
import translate_dates
import translate_text
import tsp_reinforce
from integration.example_runs import run


def test_translate_dates_goes_from_raw_dates_to_a_served_answer(tmp_path):
    printed = run(translate_dates.main, "--smoke", "--output", tmp_path / "dates", "--precision", "mixed_bfloat16")
    assert os.listdir(tmp_path / "dates") == ["smoke"]
    assert "Exact match on held-out dates:" in printed
    assert "'mardi 3 mars 2015'" in printed.split("without Keras:")[1]
    for file in ("model.keras", "alignment.png", "source_tokenizer.json", "served/1/saved_model.pb"):
        assert (tmp_path / "dates" / "smoke" / file).is_file(), file


def test_translate_text_goes_from_two_text_files_to_a_served_translation(tmp_path):
    output = tmp_path / "smoke"
    printed = run(translate_text.main, "--smoke", "--output", tmp_path)
    assert os.listdir(tmp_path) == ["smoke"]
    assert "val_bleu" in printed
    for split, texts in (("test", 7), ("val", 13)):
        for sampler in ("greedy", "beam 5"):
            assert re.search(rf"^{split}, {sampler}: BLEU .*; {texts} texts$", printed, flags=re.MULTILINE)
    assert "gives 15 of 15 translations as the model does" in printed
    for file in ("model.keras", "subwords.model", "alignment.png", "served/1/saved_model.pb"):
        assert (output / file).is_file(), file

    lines = tmp_path / "lines.txt"
    lines.write_text("A dog sees a cat.\n\nA man 🐕 knows water!", encoding="utf-8")
    printed = run(translate_text.main, "--output", output, "--translate", lines)
    assert len(printed.splitlines()) == 3


def test_pointer_geometry_goes_from_points_to_served_answers_and_reads_files(tmp_path):
    output = tmp_path / "smoke" / "delaunay"
    printed = run(pointer_geometry.main, "--smoke", "--task", "delaunay", "--points", "3-5", "--output", tmp_path)
    assert os.listdir(tmp_path) == ["smoke"]
    for search in ("greedy", "beam 5"):
        line = rf"^3 to 5 points, {search}: accuracy .*, triangle_coverage .*; 128 examples$"
        assert re.search(line, printed, flags=re.MULTILINE)
    shared = re.search(r"gives (\d+) of (\d+) answers as the model does", printed)
    assert shared.group(1) == shared.group(2)
    for file in ("model.keras", "answers.png", "pointer.png", "served/1/saved_model.pb"):
        assert (output / file).is_file(), file

    path = tmp_path / "points.txt"
    path.write_text("0.5 0.5 0.1 0.2 0.9 0.3 output 1 2 3 \n0.9 0.9 0.1 0.2 0.9 0.3 output 1 2 3 \n")
    printed = run(pointer_geometry.main, "--smoke", "--task", "delaunay", "--output", tmp_path, "--evaluate", path)
    # Of three points there is one triangle.
    assert "points.txt, greedy: accuracy" in printed and "2 examples" in printed


def test_pointer_geometry_learns_from_a_file(tmp_path):
    path = tmp_path / "numbers.txt"
    path.write_text("0.3 0.1 0.2 output 2 3 1 \n" * 10, encoding="utf-8")
    options = ("--encoder", "transformer", "--hidden-dim", 8, "--batch-size", 8, "--output", tmp_path)
    printed = run(pointer_geometry.main, "--task", "sort", "--data", path, *options)
    assert "8 examples, 1 steps" in printed
    assert re.search(r"^3 points, beam 5: accuracy .*; 1 examples$", printed, flags=re.MULTILINE)
    assert (tmp_path / "sort" / "model.keras").is_file()


def test_tsp_reinforce_goes_from_points_without_labels_to_served_tours(tmp_path):
    printed = run(tsp_reinforce.main, "--smoke", "--points", "5", "--output", tmp_path)
    assert os.listdir(tmp_path) == ["smoke"]
    for search in ("greedy", "beam 5"):
        assert re.search(rf"^{search}: tour_length .*, valid 1.0000$", printed, flags=re.MULTILINE)
    assert "gives 17 of 17 tours as the network does" in printed
    for file in ("model.keras", "tours.png", "served/1/saved_model.pb"):
        assert (tmp_path / "smoke" / "5" / file).is_file(), file
