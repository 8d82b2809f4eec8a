"""Every example that writes or orders runs from beginning to end with `--smoke`, and refuses bad arguments in words."""

import os
import re

import keras
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("the examples read and export with TensorFlow", allow_module_level=True)

from integration.example_runs import run


def test_translate_dates_goes_from_raw_dates_to_a_served_answer(tmp_path):
    result = run("translate_dates.py", "--smoke", "--output", tmp_path / "dates", "--precision", "mixed_bfloat16")
    assert result.returncode == 0, result.stderr
    assert "precision: mixed_bfloat16" in result.stderr
    assert "Exact match on held-out dates:" in result.stdout
    assert "'mardi 3 mars 2015'" in result.stdout.split("without Keras:")[1]
    for file in ("model.keras", "alignment.png", "source_tokenizer.json", "served/1/saved_model.pb"):
        assert (tmp_path / "dates" / file).is_file(), file


def test_translate_text_goes_from_two_text_files_to_a_served_translation(tmp_path):
    output = tmp_path / "smoke"
    result = run("translate_text.py", "--smoke", "--output", tmp_path)
    assert result.returncode == 0, result.stderr
    assert "val_bleu" in result.stdout
    for split, texts in (("test", 7), ("val", 13)):
        for sampler in ("greedy", "beam 5"):
            assert re.search(rf"^{split}, {sampler}: BLEU .*; {texts} texts$", result.stdout, flags=re.MULTILINE)
    assert "gives 15 of 15 translations as the model does" in result.stdout
    for file in ("model.keras", "subwords.model", "alignment.png", "served/1/saved_model.pb"):
        assert (output / file).is_file(), file

    lines = tmp_path / "lines.txt"
    lines.write_text("A dog sees a cat.\n\nA man 🐕 knows water!", encoding="utf-8")
    result = run("translate_text.py", "--output", output, "--translate", lines)
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) == 3


def test_pointer_geometry_goes_from_points_to_served_answers_and_reads_files(tmp_path):
    output = tmp_path / "delaunay" / "smoke"
    result = run("pointer_geometry.py", "--smoke", "--task", "delaunay", "--points", "3-5", "--output", tmp_path)
    assert result.returncode == 0, result.stderr
    for search in ("greedy", "beam 5"):
        line = rf"^3 to 5 points, {search}: accuracy .*, triangle_coverage .*; 128 examples$"
        assert re.search(line, result.stdout, flags=re.MULTILINE)
    shared = re.search(r"gives (\d+) of (\d+) answers as the model does", result.stdout)
    assert shared.group(1) == shared.group(2)
    for file in ("model.keras", "answers.png", "pointer.png", "served/1/saved_model.pb"):
        assert (output / file).is_file(), file

    path = tmp_path / "points.txt"
    path.write_text("0.5 0.5 0.1 0.2 0.9 0.3 output 1 2 3 \n0.9 0.9 0.1 0.2 0.9 0.3 output 1 2 3 \n")
    result = run("pointer_geometry.py", "--smoke", "--task", "delaunay", "--output", tmp_path, "--evaluate", path)
    assert result.returncode == 0, result.stderr
    # Of three points there is one triangle.
    assert "points.txt, greedy: accuracy" in result.stdout and "2 examples" in result.stdout


def test_tsp_reinforce_goes_from_points_without_labels_to_served_tours(tmp_path):
    result = run("tsp_reinforce.py", "--smoke", "--points", "5", "--output", tmp_path)
    assert result.returncode == 0, result.stderr
    for search in ("greedy", "beam 5"):
        assert re.search(rf"^{search}: tour_length .*, valid 1.0000$", result.stdout, flags=re.MULTILINE)
    assert "gives 17 of 17 tours as the network does" in result.stdout
    for file in ("model.keras", "tours.png", "served/1/saved_model.pb"):
        assert (tmp_path / "5" / file).is_file(), file


@pytest.mark.parametrize(
    "arguments, environment, message",
    [
        (["--epochs", "0"], {}, "must be a positive integer. Received: 0"),
        (["--precision", "float12"], {}, "invalid choice: 'float12'"),
        (["--output", os.devnull], {}, "choose another --output"),
        (
            [],
            {"KERAS_BACKEND": "nonsense"},
            "Unknown Keras backend: 'nonsense'. keras_attention runs on",
        ),
        ([], {"KERAS_BACKEND": "jax"}, "run it with KERAS_BACKEND=tensorflow"),
    ],
)
def test_translate_dates_refuses_bad_arguments_in_words(arguments, environment, message):
    result = run("translate_dates.py", *arguments, **environment)
    assert result.returncode != 0
    assert message in result.stderr
