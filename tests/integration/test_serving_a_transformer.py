"""From text to served text: a Transformer with subwords, exported with beam search and read back, answers as in Python."""

import json
import subprocess
import sys

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("SavedModels are written under the TensorFlow backend", allow_module_level=True)

import tensorflow as tf

from keras_attention import serving
from keras_attention.data import CharacterTokenizer, SubwordTokenizer
from keras_attention.decoding import BeamSearch
from keras_attention.models import Transformer
from keras_attention.serving.rows import DIVERGED, answer_rows
from keras_attention.tokens import END, PAD

MAX_LENGTH, MAX_SOURCE_LENGTH, NUM_RESULTS = 7, 31, 3
SAMPLER = BeamSearch(beam_width=5, num_results=NUM_RESULTS)
WORDS = ["a", "the", "low", "lower", "lowest", "tower", "town", "of", "two", "new", "newest", "wide", "and"]
LONG = " ".join(WORDS[index % 13] for index in range(200))
SHORT = ["", "🙂 ñ", "the tower"]


def sentences(count):
    """Sentences of 1 to 9 words, an empty one, one with an emoji and one of 200 words among them."""
    rng = np.random.default_rng(3)
    made = [" ".join(rng.choice(WORDS, rng.integers(1, 10))) for _ in range(count - len(SHORT) - 1)]
    return [*made[:11], *SHORT, LONG, *made[11:]]


@pytest.fixture(scope="module")
def tokenizer():
    return SubwordTokenizer.train(sentences(100), vocabulary_size=287, verbose=0)


@pytest.fixture(scope="module")
def target_tokenizer():
    """Other pieces under as many ids: whatever took one tokeniser for the other would be seen."""
    return SubwordTokenizer.train(sentences(100), vocabulary_size=287, algorithm="bpe", verbose=0)


@pytest.fixture(scope="module")
def model(tokenizer):
    keras.utils.set_random_seed(11)
    sizes = {"num_layers": 2, "num_heads": 2, "hidden_dim": 6, "intermediate_dim": 13}
    return Transformer(tokenizer.vocabulary_size, **sizes)


@pytest.fixture(scope="module")
def version(model, tokenizer, target_tokenizer, tmp_path_factory):
    return serving.export(
        model,
        tmp_path_factory.mktemp("served"),
        tokenizer,
        target_tokenizer,
        max_length=MAX_LENGTH,
        sampler=SAMPLER,
        max_source_length=MAX_SOURCE_LENGTH,
    )


@pytest.fixture(scope="module")
def served(version):
    """`served(name, argument=value)` -> `{output: array}`"""
    loaded = tf.saved_model.load(version)

    def call(name, **inputs):
        dtypes = {
            argument: spec.dtype for argument, spec in loaded.signatures[name].structured_input_signature[1].items()
        }
        outputs = loaded.signatures[name](**{key: tf.constant(inputs[key], dtype) for key, dtype in dtypes.items()})
        return {output: value.numpy() for output, value in outputs.items()}

    call.signatures = loaded.signatures
    return call


def ids_of(tokenizer, texts, limit=MAX_SOURCE_LENGTH):
    return tokenizer.tokenize(texts)[:, :limit].to_tensor(PAD).numpy()


def targets_of(tokenizer, texts):
    rows = [[*row, END] for row in tokenizer.tokenize(texts).to_list()]
    return keras.utils.pad_sequences(rows, padding="post")


@pytest.fixture(scope="module")
def hundred(served):
    return served("serving_default", text=sentences(100))


def test_a_hundred_served_answers_equal_those_of_python(model, tokenizer, target_tokenizer, hundred):
    tokens = model.generate(ids_of(tokenizer, sentences(100)), MAX_LENGTH, SAMPLER)  # (B, n, L)
    expected = target_tokenizer.detokenize(tokens.reshape(-1, MAX_LENGTH)).numpy().reshape(100, NUM_RESULTS)
    assert hundred["text"].tolist() == expected.tolist()
    assert len(set(hundred["text"].ravel().tolist())) > 10


@pytest.mark.parametrize("texts", [["the tower"], SHORT, ["", ""], [], [LONG]], ids=len)
def test_every_batch_and_length_is_answered_as_among_the_hundred(served, hundred, texts):
    outputs = served("serving_default", text=texts)
    rows = [sentences(100).index(text) for text in texts]
    assert outputs["text"].tolist() == hundred["text"][rows].tolist()
    np.testing.assert_allclose(outputs["scores"], hundred["scores"][rows], atol=1e-5)


def test_the_score_of_a_beam_is_its_log_probability_over_the_length_penalty(served, tokenizer):
    source = ids_of(tokenizer, sentences(23))
    answers = served("translate_ids", source=source)
    tokens = answers["tokens"].reshape(-1, MAX_LENGTH)
    sums = served("score_ids", source=np.repeat(source, NUM_RESULTS, axis=0), target=tokens)["scores"]
    divisors = ((5 + (tokens != PAD).sum(axis=1)) / 6) ** SAMPLER.length_penalty
    np.testing.assert_allclose(answers["scores"], (sums / divisors).reshape(-1, NUM_RESULTS), atol=1e-5)


def test_ids_are_answered_scored_and_aligned_alike_wherever_their_padding_stands(served, tokenizer):
    source, target = ids_of(tokenizer, sentences(5)), targets_of(tokenizer, ["a", "the two", "two", "of", "a"])
    first = [np.stack([np.roll(row, (row == PAD).sum()) for row in ids]) for ids in (source, target)]
    assert (first[0][:, 0] == PAD).any() and (first[1][:, 0] == PAD).any()
    last, left = ({"source": source, "target": target} for source, target in ((source, target), first))
    for name in ("tokens", "scores"):
        answers = [served("translate_ids", source=pairs["source"])[name] for pairs in (last, left)]
        np.testing.assert_allclose(answers[0], answers[1], atol=1e-5)
    scores = [served("score_ids", **pairs)["scores"] for pairs in (last, left)]
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-5)
    weights = [served("align_ids", **pairs)["weights"] for pairs in (last, left)]
    for row in range(5):
        shown = [
            each[row][pairs["target"][row] != PAD][:, pairs["source"][row] != PAD]
            for each, pairs in zip(weights, (last, left), strict=True)
        ]
        np.testing.assert_allclose(shown[0], shown[1], atol=1e-5)


def test_score_ids_of_a_greedy_answer_is_the_score_of_greedy_search(model, tokenizer, served):
    source = ids_of(tokenizer, sentences(23))
    tokens, scores = model.search(tf.constant(source), MAX_LENGTH, "greedy")
    np.testing.assert_allclose(served("score_ids", source=source, target=tokens)["scores"], scores, atol=1e-5)


@pytest.mark.parametrize("texts", [(["the tower"], ["a new town"]), (SHORT, ["", "zwei", "🙂"]), (["", ""], ["", ""])])
def test_texts_are_scored_and_aligned_as_their_ids_in_python(model, tokenizer, target_tokenizer, served, texts):
    source, target = texts
    pairs = {"source": ids_of(tokenizer, source), "target": targets_of(target_tokenizer, target)}
    scores = served("score", source=source, target=target)["scores"]
    np.testing.assert_allclose(scores, model.log_probability(pairs), atol=1e-5)
    np.testing.assert_allclose(served("score_ids", **pairs)["scores"], scores, atol=1e-5)
    aligned = served("align", source=source, target=target)
    np.testing.assert_allclose(aligned["weights"], model.alignment(pairs), atol=1e-5)
    np.testing.assert_allclose(served("align_ids", **pairs)["weights"], aligned["weights"], atol=1e-6)
    for side, ids in pairs.items():
        vocabulary = {"source": tokenizer, "target": target_tokenizer}[side].vocabulary
        expected = [[vocabulary[token].encode() if token != PAD else b"" for token in row] for row in ids.tolist()]
        assert aligned[f"{side}_tokens"].tolist() == expected


def test_the_encoder_is_served_for_any_batch_and_length(model, tokenizer, served):
    for texts in (sentences(23), ["the tower"], ["", ""]):
        source = ids_of(tokenizer, texts)
        np.testing.assert_allclose(served("encode", source=source)["encoded"], model.encode(source), atol=1e-5)


def test_a_text_beyond_the_limit_is_cut_in_every_signature(tokenizer, target_tokenizer, served):
    beginning, rest = (
        tokenizer.tokenize([LONG])[0, :MAX_SOURCE_LENGTH],
        tokenizer.tokenize([LONG])[0, MAX_SOURCE_LENGTH:],
    )
    assert len(rest) > 100
    whole, cut = (
        served("align", source=[LONG], target=["two"]),
        served("align_ids", source=[beginning.numpy()], target=targets_of(target_tokenizer, ["two"])),
    )
    assert whole["source_tokens"].shape == (1, MAX_SOURCE_LENGTH)
    np.testing.assert_allclose(whole["weights"], cut["weights"], atol=1e-6)
    np.testing.assert_allclose(
        served("serving_default", text=[LONG])["scores"], served("translate_ids", source=[beginning.numpy()])["scores"]
    )


V = 287
OUTSIDE = "`{}` has an id outside the vocabulary [0, 287). Tokenise with the tokeniser that the model was trained with."
TOO_LONG = "`{}` must have a length of at most {}, up to its last entry. Send a shorter one."
GOOD, LONGER, NINE = [5] * 3 + [0] * 29, [5] * 32, [5] * 9 + [0] * 23
SOURCES = [GOOD, [-5, *GOOD[1:]], [V, *GOOD[1:]], LONGER, [*GOOD[:31], -1], GOOD]
REASONS = [
    "",
    OUTSIDE.format("source"),
    OUTSIDE.format("source"),
    TOO_LONG.format("source", 31),
    OUTSIDE.format("source"),
    "",
]


@pytest.mark.parametrize("name", ["translate_ids", "encode", "score_ids", "align_ids"])
def test_a_bad_source_has_its_reason_and_the_good_ones_their_answer(served, name):
    target = {"target": [[7, 2]] * 6} if name in ("score_ids", "align_ids") else {}
    outputs = served(name, source=SOURCES, **target)
    assert outputs.pop("error").tolist() == [reason.encode() for reason in REASONS]
    alone = served(name, source=[GOOD], **{key: value[:1] for key, value in target.items()})
    for output, values in outputs.items():
        for row in (0, 5):
            np.testing.assert_allclose(values[row], alone[output][0], atol=1e-5)
        nothing = 0 if values.dtype == "int32" else np.nan
        assert np.array_equal(values[1:5], np.full_like(values[1:5], nothing), equal_nan=values.dtype != "int32")


@pytest.mark.parametrize("name", ["score_ids", "align_ids"])
def test_a_bad_target_has_its_reason(served, name):
    outputs = served(name, source=[GOOD] * 4, target=[GOOD, [-2, *GOOD[1:]], [V, *GOOD[1:]], NINE])
    expected = ["", OUTSIDE.format("target"), OUTSIDE.format("target"), TOO_LONG.format("target", 7)]
    assert outputs["error"].tolist() == [reason.encode() for reason in expected]


def test_a_target_text_beyond_the_limit_has_its_reason(served):
    targets = ["two", "the lowest tower of the newest town", "two" * 1_001]
    for name in ("score", "align"):
        outputs = served(name, source=["two"] * 3, target=targets)
        too_many = b"`target` must have at most 224 characters. Send a shorter one."
        assert outputs["error"].tolist() == [b"", TOO_LONG.format("target", 7).encode(), too_many]
    assert (outputs["target_tokens"][1:] == b"").all()
    alone = served("align", source=["two"], target=["two"])["weights"][0]
    np.testing.assert_allclose(outputs["weights"][0, : len(alone)], alone, atol=1e-6)


@pytest.mark.parametrize("name", ["score", "align", "score_ids", "align_ids"])
def test_unequal_numbers_of_sources_and_targets_are_an_error(served, name):
    source, target = (["two", "new"], ["two"]) if name in ("score", "align") else ([[5], [6]], [[5]])
    message = "`source` and `target` must have as many rows as each other"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        served(name, source=source, target=target)


def test_a_model_that_has_diverged_answers_with_its_reason(tokenizer):
    sizes = {"num_layers": 1, "num_heads": 1, "hidden_dim": 2, "intermediate_dim": 2}
    diverged = Transformer(tokenizer.vocabulary_size, **sizes)
    diverged.set_weights([np.full_like(weight, np.nan) for weight in diverged.get_weights()])
    for name, (function, inputs, checks) in diverged.serving_signatures(max_length=3, sampler=SAMPLER).items():
        outputs = answer_rows(lambda tensors, function=function: function(**tensors), checks)(
            {argument: tf.constant([[5, 6], [7, 0]]) for argument in inputs}
        )
        assert outputs.pop("error").numpy().tolist() == [DIVERGED.encode()] * 2, name
        for values in outputs.values():
            assert not values.numpy().any() if values.dtype == tf.int32 else np.isnan(values).all()


def test_signatures_have_the_documented_names_types_and_open_sizes(served):
    def described(specs):
        return {name: (spec.dtype.name, spec.shape.as_list()) for name, spec in specs.items()}

    text, ids, scores = ("string", [None]), ("int32", [None, None]), ("float32", [None])
    strings, weights = ("string", [None, None]), ("float32", [None, None, None])
    texts, best = ("string", [None, NUM_RESULTS]), ("float32", [None, NUM_RESULTS])
    pairs = {"source": ids, "target": ids}
    tokens = {"source_tokens": strings, "target_tokens": strings}
    assert all(described(each.structured_outputs)["error"] == text for each in served.signatures.values())
    assert {
        name: (
            described(signature.structured_input_signature[1]),
            {output: spec for output, spec in described(signature.structured_outputs).items() if output != "error"},
        )
        for name, signature in served.signatures.items()
    } == {
        "serving_default": ({"text": text}, {"text": texts, "scores": best}),
        "translate_ids": ({"source": ids}, {"tokens": ("int32", [None, NUM_RESULTS, MAX_LENGTH]), "scores": best}),
        "encode": ({"source": ids}, {"encoded": ("float32", [None, None, 6])}),
        "score_ids": (pairs, {"scores": scores}),
        "align_ids": (pairs, {"weights": weights}),
        "score": ({"source": text, "target": text}, {"scores": scores}),
        "align": ({"source": text, "target": text}, {"weights": weights, **tokens}),
    }


def test_it_loads_where_neither_keras_nor_this_package_is(version, hundred):
    # `import tensorflow_text` asks for Keras. Its ops do not: TF Serving has them linked, and here they are read alone.
    program = """
import importlib.util, json, pathlib, sys
sys.modules.update({"keras": None, "keras_attention": None})
import tensorflow as tf
(folder,) = importlib.util.find_spec("tensorflow_text").submodule_search_locations
tf.load_op_library(str(pathlib.Path(folder) / "python" / "ops" / "_sentencepiece_tokenizer.so"))
signatures = tf.saved_model.load(sys.argv[1]).signatures
texts = json.loads(sys.argv[2])
outputs = signatures["serving_default"](text=tf.constant(texts))
tokens = signatures["align"](source=tf.constant(texts[-1:]), target=tf.constant(["two"]))["target_tokens"]
shown = [[text.decode() for text in row] for row in outputs["text"].numpy()]
print(json.dumps([shown, outputs["scores"].numpy().tolist(), tokens.numpy()[0, -1].decode()]))
"""
    command = [sys.executable, "-c", program, version, json.dumps(SHORT)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    texts, scores, last = json.loads(result.stdout.splitlines()[-1])
    assert texts == [[text.decode() for text in row] for row in hundred["text"][11:14].tolist()]
    np.testing.assert_allclose(scores, hundred["scores"][11:14], atol=1e-5)
    assert last == "[END]"


def test_tokenisers_of_another_vocabulary_are_refused(model, tokenizer, tmp_path):
    with pytest.raises(ValueError, match=r"`target_tokenizer` must .* Received 5 ids, and the model has 287"):
        serving.export(model, tmp_path / "served", tokenizer, CharacterTokenizer("0"))
    assert not (tmp_path / "served").exists()
