"""Every example that reads and classifies runs from beginning to end with `--smoke`, into a folder of its own."""

import os
import re

import keras
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("the examples read and export with TensorFlow", allow_module_level=True)

import classify_documents
import glimpse_digits
import hard_attention
import memory_questions
import positions
import structured_attention
from integration.example_runs import refusal, run


def test_glimpse_digits_goes_from_images_to_paths_and_a_served_answer(tmp_path):
    printed = run(glimpse_digits.main, "--smoke", "--translated", "--output", tmp_path)
    assert os.listdir(tmp_path) == ["smoke"]
    assert re.search(r"^Test error: [\d.]+ % of 256 images", printed, flags=re.MULTILINE)
    assert "gives 8 of 8 answers as the model does" in printed
    for file in ("model.keras", "paths.png", "served/saved_model.pb"):
        assert (tmp_path / "smoke" / file).is_file(), file


def test_hard_attention_compares_alignments_and_shows_what_they_attend(tmp_path):
    printed = run(hard_attention.main, "--smoke", "--output", tmp_path)
    assert os.listdir(tmp_path) == ["smoke"]
    for name in ("softmax", "sparsemax", "REINFORCE", "straight-through"):
        assert re.search(rf"^{name} +\d+\.\d\d% ", printed, flags=re.MULTILINE)
    assert "gives 70 of 70 digits as the model does" in printed
    assert (tmp_path / "smoke" / "attended.png").is_file()


def test_classify_documents_goes_from_raw_text_to_coloured_documents_and_served_classes(tmp_path):
    printed = run(classify_documents.main, "--smoke", "--word-encoder", "convolution", "--output", tmp_path)
    assert os.listdir(tmp_path) == ["smoke"]
    assert re.search(r"^Test accuracy: [\d.]+% of 24 documents", printed, flags=re.MULTILINE)
    assert "gives 24 of 24 classes as the model does" in printed
    for file in ("model.keras", "words.json", "document_3.png", "served/1/saved_model.pb"):
        assert (tmp_path / "smoke" / file).is_file(), file

    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for path, text in zip(paths, ("The plot was weak.", "The music was superb!\nWe saw it in Rome."), strict=True):
        path.write_text(text, encoding="utf-8")
    printed = run(classify_documents.main, "--smoke", "--output", tmp_path, "--classify", *paths)
    assert re.fullmatch(r"(.*[ab]\.txt: (positive|negative) \(\d+%\), attended words in .*[ab]\.png\n){2}", printed)
    assert (tmp_path / "smoke" / "b.png").is_file()


def test_classify_documents_reads_folds_of_class_folders(tmp_path):
    for fold in range(9):
        for name in ("neg", "pos"):
            for number in range(5):
                path = tmp_path / "reviews" / name / f"cv{fold}{number:02}_7.txt"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"it is {name} .\nit ends .\n")
    options = ["--line-sentences", "--word-encoder", "none", "--sentence-encoder", "none", "--unit-dropout", "0.1"]
    printed = run(
        classify_documents.main, "--smoke", "--data", tmp_path / "reviews", *options, "--output", tmp_path / "out"
    )
    assert os.listdir(tmp_path / "out") == ["smoke"]
    assert "Documents: 80 to train on, 10 to test; 10 words; classes neg, pos" in printed
    assert "gives 10 of 10 classes as the model does" in printed
    words = refusal(classify_documents.main, "--data", tmp_path / "reviews", "--test-fold", 10, "--output", tmp_path)
    assert "--test-fold must leave documents on both sides. Received 10" in words


def test_structured_attention_compares_alignments_and_shows_what_they_attend(tmp_path):
    printed = run(structured_attention.main, "--smoke", "--output", tmp_path)
    assert os.listdir(tmp_path) == ["smoke"]
    for name in ("softmax", "sigmoid", "linear chain"):
        assert re.search(rf"^{name} +\d\.\d\d\d +\d+\.\d%", printed, flags=re.MULTILINE)
    difference = re.search(r"answers as the model does, within (\S+)\.$", printed, flags=re.MULTILINE)
    assert float(difference.group(1)) < 1e-5
    assert (tmp_path / "smoke" / "attended.png").is_file()


def test_positions_compares_schemes_by_the_length_of_the_text(tmp_path):
    printed = run(positions.main, "--smoke", "--schemes", "t5", "--output", tmp_path)
    assert os.listdir(tmp_path) == ["smoke"]
    assert re.search(r"^t5( +\d+\.\d%){6} +\d+\.\d$", printed, flags=re.MULTILINE)
    assert float(re.search(r"answers as the model does, within (\S+)\.$", printed, flags=re.MULTILINE).group(1)) < 1e-5
    assert (tmp_path / "smoke" / "lengths.png").is_file()


def test_memory_questions_answers_and_shows_the_attended_facts(tmp_path):
    printed = run(
        memory_questions.main, "--smoke", "--hops", "3", "--output", tmp_path, "--precision", "mixed_bfloat16"
    )
    assert os.listdir(tmp_path) == ["smoke"]
    for count in (1, 2):
        assert re.search(rf"^{count} needed: [\d.]+% of 35 questions right", printed, flags=re.MULTILINE)
    assert re.search(r"^where is the \w+\? \w+\n(    [\d.]+ \w+ \w+.*\n){3}", printed, flags=re.MULTILINE)
    assert "gives 70 of 70 answers as before" in printed
    for file in ("model.keras", "attended.png", "served/saved_model.pb"):
        assert (tmp_path / "smoke" / file).is_file(), file
