"""Every example runs from beginning to end with `--smoke`, and refuses bad arguments in words."""

import os
import pathlib
import re
import subprocess
import sys

import keras
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("the examples read and export with TensorFlow", allow_module_level=True)

EXAMPLES = pathlib.Path(__file__).parent.parent.parent / "examples"


def run(name, *arguments, **environment):
    return subprocess.run(
        [sys.executable, EXAMPLES / name, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **environment},
        check=False,
    )


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


def test_glimpse_digits_goes_from_images_to_paths_and_a_served_answer(tmp_path):
    result = run("glimpse_digits.py", "--smoke", "--translated", "--output", tmp_path)
    assert result.returncode == 0, result.stderr
    assert re.search(r"^Test error: [\d.]+ % of 256 images", result.stdout, flags=re.MULTILINE)
    assert "gives 8 of 8 answers as the model does" in result.stdout
    for file in ("model.keras", "paths.png", "served/saved_model.pb"):
        assert (tmp_path / file).is_file(), file


def test_tsp_reinforce_goes_from_points_without_labels_to_served_tours(tmp_path):
    result = run("tsp_reinforce.py", "--smoke", "--points", "5", "--output", tmp_path)
    assert result.returncode == 0, result.stderr
    for search in ("greedy", "beam 5"):
        assert re.search(rf"^{search}: tour_length .*, valid 1.0000$", result.stdout, flags=re.MULTILINE)
    assert "gives 17 of 17 tours as the network does" in result.stdout
    for file in ("model.keras", "tours.png", "served/1/saved_model.pb"):
        assert (tmp_path / "5" / file).is_file(), file


def test_hard_attention_compares_alignments_and_shows_what_they_attend(tmp_path):
    result = run("hard_attention.py", "--smoke", "--output", tmp_path)
    assert result.returncode == 0, result.stderr
    for name in ("softmax", "sparsemax", "REINFORCE", "straight-through"):
        assert re.search(rf"^{name} +\d+\.\d\d% ", result.stdout, flags=re.MULTILINE)
    assert "gives 70 of 70 digits as the model does" in result.stdout
    assert (tmp_path / "attended.png").is_file()


def test_classify_documents_goes_from_raw_text_to_coloured_documents_and_served_classes(tmp_path):
    result = run("classify_documents.py", "--smoke", "--word-encoder", "convolution", "--output", tmp_path)
    assert result.returncode == 0, result.stderr
    assert re.search(r"^Test accuracy: [\d.]+% of 24 documents", result.stdout, flags=re.MULTILINE)
    assert "gives 24 of 24 classes as the model does" in result.stdout
    for file in ("model.keras", "words.json", "document_3.png", "served/1/saved_model.pb"):
        assert (tmp_path / file).is_file(), file


def test_classify_documents_reads_folds_of_class_folders(tmp_path):
    for fold in range(9):
        for name in ("neg", "pos"):
            for number in range(5):
                path = tmp_path / "reviews" / name / f"cv{fold}{number:02}_7.txt"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"it is {name} .\nit ends .\n")
    options = ("--line-sentences", "--word-encoder", "none", "--sentence-encoder", "none", "--unit-dropout", "0.1")
    result = run(
        "classify_documents.py", "--smoke", "--data", tmp_path / "reviews", *options, "--output", tmp_path / "out"
    )
    assert result.returncode == 0, result.stderr
    assert "Documents: 80 to train on, 10 to test; 10 words; classes neg, pos" in result.stdout
    assert "gives 10 of 10 classes as the model does" in result.stdout


def test_structured_attention_compares_alignments_and_shows_what_they_attend(tmp_path):
    result = run("structured_attention.py", "--smoke", "--output", tmp_path)
    assert result.returncode == 0, result.stderr
    for name in ("softmax", "sigmoid", "linear chain"):
        assert re.search(rf"^{name} +\d\.\d\d\d +\d+\.\d%", result.stdout, flags=re.MULTILINE)
    difference = re.search(r"answers as the model does, within (\S+)\.$", result.stdout, flags=re.MULTILINE)
    assert float(difference.group(1)) < 1e-5
    assert (tmp_path / "attended.png").is_file()


def test_memory_questions_answers_and_shows_the_attended_facts(tmp_path):
    result = run("memory_questions.py", "--smoke", "--hops", "3", "--output", tmp_path, "--precision", "mixed_bfloat16")
    assert result.returncode == 0, result.stderr
    for count in (1, 2):
        assert re.search(rf"^{count} needed: [\d.]+% of 35 questions right", result.stdout, flags=re.MULTILINE)
    assert re.search(r"^where is the \w+\? \w+\n(    [\d.]+ \w+ \w+.*\n){3}", result.stdout, flags=re.MULTILINE)
    assert "gives 70 of 70 answers as before" in result.stdout
    for file in ("model.keras", "attended.png", "served/saved_model.pb"):
        assert (tmp_path / file).is_file(), file


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
