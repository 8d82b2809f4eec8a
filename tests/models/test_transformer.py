import inspect

import keras
import numpy as np
import pytest
from compiled import compiled
from keras import ops
from models.conftest import (
    LABELS,
    SOURCE,
    SOURCE_VOCABULARY,
    TARGET,
    TARGET_VOCABULARY,
    make_transformer,
    not_on_jax,
    padded,
)

from keras_attention.alignments import Monotonic, Sampled
from keras_attention.decoding import BeamSearch, Sample
from keras_attention.layers import LearnedPositionEmbedding, MultiHeadAttention
from keras_attention.models import Transformer
from keras_attention.tokens import END, PAD, START
from keras_attention.training import SmoothedCrossentropy, TokenAccuracy, WarmupInverseSquareRoot

INPUTS = {"source": SOURCE, "target": TARGET}


def numpy(tensor):
    return ops.convert_to_numpy(tensor)


def logits_of(model, source, target):
    return numpy(compiled(Transformer.__call__, model)({"source": source, "target": target}))


def logits_and_mask(model, inputs):
    logits = model(inputs)
    return logits, logits._keras_mask


def logits_step_by_step(model, steps, max_length):
    """Logits of the first `steps` tokens of TARGET, decoded one by one with caches for `max_length`: (B, steps, V)"""
    state = compiled(Transformer.initial_state, model, max_length=max_length)(ops.convert_to_tensor(SOURCE))
    logits = []
    for position in range(steps):
        tokens = ops.convert_to_tensor(TARGET[:, position])
        received, state = compiled(Transformer.decode_step, model)(tokens, state)
        logits.append(numpy(received))
    return np.stack(logits, axis=1)


def test_the_default_is_the_base_model_of_the_paper():
    defaults = {name: value.default for name, value in inspect.signature(Transformer).parameters.items()}
    paper = {"num_layers": 6, "num_heads": 8, "hidden_dim": 512, "intermediate_dim": 2048, "dropout": 0.1}
    assert {name: defaults[name] for name in paper} == paper
    assert defaults["normalize_first"] is False


def test_logits_are_float32_and_carry_the_mask_of_the_target(transformer):
    logits, mask = map(numpy, logits_and_mask(transformer, INPUTS))  # JAX keeps no mask of a compiled call
    assert logits.shape[:2] == (2, 5) and logits.dtype == "float32"
    assert mask.tolist() == (TARGET != PAD).tolist()


def test_other_rows_of_the_batch_change_nothing(transformer):
    alone = logits_of(transformer, SOURCE[1:, :4], TARGET[1:, :3])
    np.testing.assert_allclose(logits_of(transformer, SOURCE, TARGET)[1:, :3], alone, atol=1e-5)


def test_later_target_tokens_change_nothing_before_them(transformer):
    changed = TARGET.copy()
    changed[:, 3:] = 15
    np.testing.assert_allclose(
        logits_of(transformer, SOURCE, changed)[:, :3], logits_of(transformer, SOURCE, TARGET)[:, :3], atol=1e-5
    )


@pytest.mark.parametrize("kind", ["right", "left", "holes"])
def test_padding_may_stand_anywhere_in_source_and_target(kind, transformer):
    source, target = padded(SOURCE, kind), padded(TARGET, kind)
    logits = logits_of(transformer, source, target)
    np.testing.assert_allclose(logits[target != PAD], logits_of(transformer, SOURCE, TARGET)[TARGET != PAD], atol=1e-5)


@pytest.mark.parametrize("sampler", ["greedy", BeamSearch(3), Sample(seed=5)], ids=["greedy", "beam", "sample"])
def test_an_answer_does_not_depend_on_where_the_padding_of_its_source_stands(sampler, transformers):
    answers = []
    for source in (padded(SOURCE, kind) for kind in ("right", "left", "holes")):
        if isinstance(sampler, Sample):
            sampler.seed_generator.state.assign([5, 0])  # the same numbers again
        answers.append(transformers["as_in_the_paper"].generate(source, 7, sampler, return_scores=True))
    (ids, scores), *others = answers
    for other_ids, other_scores in others:
        assert other_ids.tolist() == ids.tolist()
        np.testing.assert_allclose(other_scores, scores, atol=1e-5)


def test_attention_weights_do_not_depend_on_where_the_padding_stands(transformers):
    model, inputs = (
        transformers["as_in_the_paper"],
        {"source": padded(SOURCE, "holes"), "target": padded(TARGET, "left")},
    )
    expected, received = model.attention_weights(INPUTS), model.attention_weights(inputs)
    sides = {
        "encoder": ("source", "source"),
        "decoder_self": ("target", "target"),
        "decoder_cross": ("target", "source"),
    }
    for name, (queries, keys) in sides.items():
        for row in range(2):
            real, right = ([each[side][row] != PAD for side in (queries, keys)] for each in (inputs, INPUTS))
            last, wanted = numpy(received[name][-1])[row], numpy(expected[name][-1])[row]
            np.testing.assert_allclose(last[:, real[0]][..., real[1]], wanted[:, right[0]][..., right[1]], atol=1e-5)


def test_every_source_token_changes_the_logits(transformer):
    logits = logits_of(transformer, SOURCE, TARGET)
    for position in range(SOURCE.shape[1]):
        changed = SOURCE.copy()
        changed[0, position] = 18
        assert np.abs(logits_of(transformer, changed, TARGET)[0] - logits[0]).max() > 1e-4


def test_decoding_with_the_cache_equals_the_full_forward_at_every_step(transformer):
    full = logits_of(transformer, SOURCE, TARGET)[:, :3]  # the second target has three real tokens
    np.testing.assert_allclose(logits_step_by_step(transformer, 3, max_length=7), full, atol=1e-5)


def test_generate_equals_choosing_the_best_token_of_the_full_forward_again_and_again(transformer):
    max_length = 11
    target, finished = np.zeros((2, 1 + max_length), "int32"), np.zeros(2, bool)
    target[:, 0] = START
    for position in range(max_length):
        logits = logits_of(transformer, SOURCE, target)[:, position]
        logits[:, PAD] = -np.inf
        target[:, position + 1] = np.where(finished, PAD, logits.argmax(-1))
        finished |= target[:, position + 1] == END
    assert transformer.generate(SOURCE, max_length=max_length).tolist() == target[:, 1:].tolist()


def test_generate_takes_the_dictionary_of_the_model_too(transformers):
    model = transformers["as_in_the_paper"]
    assert model.generate({"source": SOURCE}, 11).tolist() == model.generate(SOURCE, 11).tolist()


def test_each_source_of_a_batch_gets_the_answer_it_gets_alone(transformers):
    model = transformers["as_in_the_paper"]
    together = model.generate(SOURCE, max_length=11)
    assert model.generate(SOURCE[1:, :4], max_length=11).tolist() == together[1:].tolist()


def test_attention_weights_sum_to_one_are_causal_and_leave_padding_out(transformer):
    weights = transformer.attention_weights(INPUTS)
    assert {name: len(layers) for name, layers in weights.items()} == {
        "encoder": 2,
        "decoder_self": 2,
        "decoder_cross": 2,
    }
    cross = numpy(weights["decoder_cross"][1])
    assert cross.shape == (2, 2, 5, 7)
    np.testing.assert_allclose(cross[0].sum(-1), 1.0, atol=1e-5)
    assert (cross[1, :, :, 4:] == 0).all() and (cross[1, :, 3:] == 0).all()
    self_weights = numpy(weights["decoder_self"][0])
    assert (np.triu(self_weights, k=1) == 0).all()
    np.testing.assert_allclose(self_weights[0, :, 0], [[1, 0, 0, 0, 0]] * 2, atol=1e-6)
    assert numpy(weights["encoder"][0]).shape == (2, 2, 7, 7)


def test_tied_embeddings_share_one_table(transformers):
    model = transformers["tied_and_additive"]
    tables = [weight for weight in model.trainable_weights if tuple(weight.shape) == (SOURCE_VOCABULARY, 6)]
    assert len(tables) == 1
    assert model.output_shape == (None, None, SOURCE_VOCABULARY)


def test_scores_with_weights_are_not_shared_between_attentions(transformers):
    model = transformers["tied_and_additive"]
    vectors = [weight for weight in model.trainable_weights if weight.path.endswith("vector")]
    assert len(vectors) == 2 + 2 * 2  # one for each encoder block, two for each decoder block


def test_alignments_inside_of_alignments_are_not_shared_after_loading(tmp_path):
    model = make_transformer(num_layers=1, alignment=Sampled(Monotonic(initial_offset=0.0)))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(*(logits_of(each, SOURCE, TARGET) for each in (loaded, model)))


def test_the_keras_file_gives_the_same_model_back(transformer, tmp_path):
    transformer.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == transformer.get_config()
    np.testing.assert_array_equal(logits_of(loaded, SOURCE, TARGET), logits_of(transformer, SOURCE, TARGET))


def test_training_goes_on_after_reloading(tmp_path):
    model = make_transformer(num_layers=1, dropout=0.0)
    model.compile(
        keras.optimizers.Adam(WarmupInverseSquareRoot(6, 7)), SmoothedCrossentropy(0.1), metrics=[TokenAccuracy()]
    )
    model.fit(INPUTS, LABELS, epochs=2, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    histories = [each.fit(INPUTS, LABELS, epochs=2, verbose=0).history for each in (model, loaded)]
    np.testing.assert_allclose(histories[0]["loss"], histories[1]["loss"], rtol=1e-5)


def test_padding_does_not_change_the_loss_or_the_metric():
    model = make_transformer(num_layers=1)
    model.compile(loss=SmoothedCrossentropy(0.1), metrics=[TokenAccuracy()])
    short = model.evaluate(INPUTS, LABELS, verbose=0)
    for kind in ("right", "left", "holes"):
        batch = {name: padded(ids, kind) for name, ids in INPUTS.items()}, padded(LABELS, kind)
        np.testing.assert_allclose(model.evaluate(*batch, verbose=0), short, rtol=1e-5)


def test_an_overfitted_model_answers_what_it_was_taught():
    model = make_transformer(num_layers=1, hidden_dim=16, dropout=0.0, normalize_first=True)
    model.compile(keras.optimizers.Adam(0.01), SmoothedCrossentropy(0.0))
    for _ in range(60):
        model.train_on_batch(INPUTS, LABELS)
    assert model.generate(SOURCE, max_length=5).tolist() == LABELS.tolist()


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="JAX compiles each operation of an eager step, torch.compile takes minutes",
)
def test_a_compiled_step_equals_an_ordinary_one():
    losses = []
    for jit_compile in (False, True):
        model = make_transformer(num_layers=1, dropout=0.0)
        model.compile(keras.optimizers.SGD(0.1), SmoothedCrossentropy(0.1), jit_compile=jit_compile)
        losses.append(model.fit(INPUTS, LABELS, epochs=3, verbose=0).history["loss"])
    np.testing.assert_allclose(losses[0], losses[1], atol=1e-4)


@pytest.mark.parametrize("policy", [pytest.param("mixed_bfloat16", marks=not_on_jax), "mixed_float16"])
def test_half_precision_trains_and_gives_float32_logits(policy):
    model = make_transformer(num_layers=1, dtype=policy)
    model.compile("adam", SmoothedCrossentropy(0.0))
    assert np.isfinite(model.fit(INPUTS, LABELS, epochs=2, verbose=0).history["loss"]).all()
    logits = logits_of(model, SOURCE, TARGET)
    assert logits.dtype == "float32"
    assert model.generate(SOURCE, 3).shape == (2, 3)
    reference = make_transformer(num_layers=1)
    reference.set_weights(model.get_weights())
    np.testing.assert_allclose(logits, logits_of(reference, SOURCE, TARGET), atol=0.1)
    assert Transformer.from_config(model.get_config()).encoder_blocks[0].compute_dtype == policy.removeprefix("mixed_")


def test_a_state_keeps_its_types_in_half_precision():
    model = make_transformer(num_layers=1, dtype="mixed_bfloat16", score="bilinear", alignment="monotonic")
    before = compiled(Transformer.initial_state, model, max_length=3)(ops.convert_to_tensor(SOURCE))
    _, after = compiled(Transformer.decode_step, model)(ops.convert_to_tensor(TARGET[:, 0]), before)
    types = [
        [keras.backend.standardize_dtype(leaf.dtype) for leaf in keras.tree.flatten(each)] for each in (before, after)
    ]
    assert types[0] == types[1]


def test_the_encoder_may_attend_by_dependency_trees(tmp_path):
    model = make_transformer(num_layers=1, encoder_alignment="dependency_tree")
    weights = {name: numpy(each) for name, (each,) in model.attention_weights(INPUTS).items()}
    trees, is_word = weights["encoder"], (SOURCE != PAD).astype("float32")
    np.testing.assert_allclose(trees.sum(-1), np.stack([is_word, is_word], axis=1), atol=1e-5)  # one head for a word
    np.testing.assert_allclose(np.trace(trees, axis1=-2, axis2=-1), 1.0, atol=1e-5)  # one root for a sentence
    assert not trees[1, :, :, 4:].any()
    np.testing.assert_allclose(weights["decoder_cross"][0].sum(-1), 1.0, atol=1e-5)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(logits_of(loaded, SOURCE, TARGET), logits_of(model, SOURCE, TARGET))


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="takes minutes to compile")
def test_an_encoder_of_dependency_trees_trains_and_generates():
    model = make_transformer(num_layers=1, encoder_alignment="dependency_tree")
    model.compile("sgd", SmoothedCrossentropy(0.0), run_eagerly=True)
    before = model.encoder_blocks[0].get_weights()
    model.fit(INPUTS, LABELS, verbose=0)
    after = model.encoder_blocks[0].get_weights()
    assert np.isfinite(np.concatenate([weight.ravel() for weight in after])).all()
    assert (before[0] != after[0]).any()
    assert model.generate(SOURCE, 3).shape == (2, 3)


def test_an_attention_as_a_template_gives_what_its_shorthands_give():
    shorthand = make_transformer(score="additive", attention_dropout=0.1, encoder_alignment="sparsemax")
    template = MultiHeadAttention(2, 3, score="additive", dropout=0.1)
    model = make_transformer(num_heads=8, attention=template, encoder_alignment="sparsemax")
    assert [weight.shape for weight in model.weights] == [weight.shape for weight in shorthand.weights]
    model.set_weights(shorthand.get_weights())
    np.testing.assert_allclose(*(logits_of(each, SOURCE, TARGET) for each in (model, shorthand)), atol=1e-6)


@pytest.mark.parametrize(
    "positions",
    [pytest.param("learned", marks=not_on_jax), pytest.param(None, marks=not_on_jax), LearnedPositionEmbedding(17)],
    ids=["learned", "none", "a layer"],
)
def test_a_template_and_positions_decode_step_by_step_and_come_back_from_a_file(positions, tmp_path):
    model = make_transformer(
        num_layers=1, num_heads=8, attention=MultiHeadAttention(3, 5, use_gate=True), position_encoding=positions
    )
    tables = [weight for weight in model.weights if weight.path.endswith("position_encoding/embeddings")]
    assert len(tables) == (0 if positions is None else 2)
    full = logits_of(model, SOURCE, TARGET)
    np.testing.assert_allclose(logits_step_by_step(model, 3, max_length=3), full[:, :3], atol=1e-5)
    for kind in ("left", "holes"):
        source, target = padded(SOURCE, kind), padded(TARGET, kind)
        np.testing.assert_allclose(logits_of(model, source, target)[target != PAD], full[TARGET != PAD], atol=1e-5)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert Transformer.from_config(model.get_config()).get_config() == model.get_config()
    np.testing.assert_array_equal(logits_of(loaded, SOURCE, TARGET), full)


def test_a_monotonic_alignment_decodes_with_a_cache_and_its_beams_keep_their_walks():
    model = make_transformer(num_layers=1, alignment=Monotonic(initial_offset=0.5), hidden_dim=12)
    full = logits_of(model, SOURCE, TARGET)
    np.testing.assert_allclose(logits_step_by_step(model, 3, max_length=3), full[:, :3], atol=1e-5)
    search = BeamSearch(5, length_penalty=0.0, num_results=3)
    ids, scores = model.generate(SOURCE, 5, search, return_scores=True)
    for beam in range(3):
        expected = model.log_probability({"source": SOURCE, "target": ids[:, beam]})
        np.testing.assert_allclose(scores[:, beam], expected, atol=1e-4)


def test_a_state_with_caches_takes_several_tokens_at_once(transformer):
    full = logits_of(transformer, SOURCE, TARGET)
    state = compiled(Transformer.initial_state, transformer, max_length=7)(ops.convert_to_tensor(SOURCE))
    decode = compiled(Transformer.decode, transformer)
    first, weights, state = decode(ops.convert_to_tensor(TARGET[:, :2]), state)
    second, _, state = decode(ops.convert_to_tensor(TARGET[:, 2:3]), state)
    assert weights is None and int(state["index"]) == 3
    np.testing.assert_allclose(np.concatenate([numpy(first), numpy(second)], axis=1), full[:, :3], atol=1e-5)


def test_nothing_to_translate_gives_nothing(transformers):
    model = transformers["as_in_the_paper"]
    assert model.generate(np.zeros((0, 4), "int32"), max_length=11).shape == (0, 11)


def test_empty_sources_are_answered_and_finite(transformers):
    model = transformers["as_in_the_paper"]
    empty, padding = np.zeros((2, 0), "int32"), np.zeros((2, 7), "int32")
    assert model.generate(empty, max_length=11).tolist() == model.generate(padding, max_length=11).tolist()
    assert np.isfinite(logits_of(model, padding, TARGET)).all()
    np.testing.assert_allclose(logits_of(model, empty, TARGET), logits_of(model, padding, TARGET), atol=1e-6)


def test_a_fraction_is_no_id(transformers):
    model, source = transformers["as_in_the_paper"], SOURCE.astype("float32")
    np.testing.assert_allclose(logits_of(model, source, TARGET), logits_of(model, SOURCE, TARGET), atol=1e-6)
    source[0, 0] += 0.5
    with pytest.raises(ValueError, match=r"`source` must be whole numbers in \[0, 19\)"):
        model({"source": source, "target": TARGET})


@pytest.mark.skipif(keras.backend.backend() == "torch", reason="torch computes eagerly, where a fraction is an error")
def test_inside_a_graph_a_fraction_gets_nan(transformers):
    source = SOURCE.astype("float32")
    source[0, 0] += 0.5
    logits = transformers["as_in_the_paper"].predict({"source": source, "target": TARGET}, verbose=0)
    assert np.isnan(logits).all(axis=(1, 2)).tolist() == [True] + [False] * (len(SOURCE) - 1)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda model: model.generate(np.array([[4, 19]])),
            r"`source` has the id 19, outside the vocabulary \[0, 19\)",
        ),
        (lambda model: model.generate(np.array([[4, -1]])), "`source` has the id -1"),
        (lambda model: model.generate(np.array([4, 5])), r"Received shape \(2,\)"),
        (lambda model: model.generate(np.ones((2, 3), "float32")), "dtype float32"),
        (lambda model: model.generate(SOURCE, max_length=0), "`max_length` must be a positive integer. Received: 0"),
        (lambda model: model.generate(SOURCE, sampler="gredy"), "Unknown sampler: 'gredy'. Known: \"greedy\""),
        (
            lambda model: model.attention_weights({"source": SOURCE, "target": np.array([[1, 23]])}),
            "`target` has the id 23",
        ),
    ],
)
def test_bad_input_gets_a_clear_error(transformers, call, message):
    with pytest.raises(ValueError, match=message):
        call(transformers["as_in_the_paper"])


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"num_heads": 5}, ValueError, "`num_heads` must divide the width D"),
        ({"num_layers": 0}, ValueError, "`num_layers` must be a positive integer. Received: 0"),
        ({"hidden_dim": 6.0}, ValueError, "`hidden_dim` must be a positive integer. Received: 6.0"),
        (
            {"target_vocabulary_size": -1},
            ValueError,
            "`target_vocabulary_size` must be a positive integer. Received: -1",
        ),
        ({"dropout": 1.0}, ValueError, "`dropout` must be a number in"),
        ({"score": "adittive"}, ValueError, 'Did you mean "additive"'),
        ({"alignment": 3}, TypeError, "Received: 3 of type int"),
        ({"alignment": "dependency_tree"}, ValueError, "DependencyTree needs all queries at once"),
        ({"encoder_alignment": "tree"}, ValueError, 'Unknown alignment: "tree"'),
        ({"position_encoding": "rotary"}, ValueError, 'Unknown position_encoding: "rotary"'),
        ({"attention": MultiHeadAttention(3, 2)}, ValueError, "`num_heads` must be left out beside `attention`"),
    ],
)
def test_bad_arguments_get_a_clear_error(arguments, error, message):
    with pytest.raises(error, match=message):
        make_transformer(**arguments)


def test_target_vocabulary_is_the_source_vocabulary_unless_given(transformers):
    assert transformers["tied_and_additive"].output_shape == (None, None, SOURCE_VOCABULARY)
    assert transformers["normalize_first"].output_shape == (None, None, TARGET_VOCABULARY)
