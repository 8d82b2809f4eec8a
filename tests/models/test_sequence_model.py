import keras
import numpy as np
import pytest
from compiled import compiled
from keras import ops
from models.conftest import LABELS, SOURCE, TARGET, make_transformer
from tolerances import FLOAT32

from keras_attention import layers
from keras_attention.decoding import BeamSearch, Sample
from keras_attention.models import Transformer
from keras_attention.models.sequence_model import SequenceModel
from keras_attention.scores import AdditiveScore, Score
from keras_attention.tokens import PAD, START
from keras_attention.training import SmoothedCrossentropy

INPUTS = {"source": SOURCE, "target": TARGET}


def logits_of(model, source=SOURCE, target=TARGET):
    return ops.convert_to_numpy(compiled(type(model).__call__, model)({"source": source, "target": target}))


class Unregistered(Score):
    def call(self, query, key):
        query, key = self.upcast(query, key)
        return -ops.sum(ops.square(query[..., :, None, :] - key[..., None, :, :]), axis=-1)


# === Labels ===


@pytest.fixture(scope="module")
def trained():
    model = make_transformer(num_layers=1)
    model.compile(keras.optimizers.SGD(0.0), SmoothedCrossentropy())
    return model


@pytest.mark.parametrize("label", [23, -1])
def test_a_label_outside_the_vocabulary_is_named_before_the_first_step(trained, label):
    labels = LABELS.copy()
    labels[1, 2] = label
    message = rf"ids in \[0, 23\).*Received {label} at \(1, 2\) of labels of shape \(2, 5\)"
    for arguments in (
        (INPUTS, labels),
        (INPUTS, labels.tolist()),
        (INPUTS, LABELS, 1, 1, 0, None, 0.0, (INPUTS, labels)),
    ):
        with pytest.raises(ValueError, match=message):
            trained.fit(*arguments)
    for call in (trained.evaluate, trained.train_on_batch, trained.test_on_batch):
        with pytest.raises(ValueError, match=message):
            call(INPUTS, labels)


def test_labels_of_another_shape_are_named_before_the_first_step(trained):
    for labels in (LABELS[..., None], LABELS[:, 0], LABELS[:, :2]):
        with pytest.raises(
            ValueError, match=r"Labels must be ids of the shape of the target, \(B, T\), here \(\d, 5\)"
        ):
            trained.fit(INPUTS, labels, verbose=0)


def test_weights_of_another_shape_are_named_before_the_first_step(trained):
    with pytest.raises(ValueError, match=r"one weight for each example, shape .*Received shape \(5,\)"):
        trained.fit(INPUTS, LABELS, sample_weight=np.ones(5), verbose=0)


def test_labels_of_padding_and_of_weight_zero_may_be_any(trained):
    labels, weights = LABELS.copy(), np.ones(LABELS.shape)
    labels[1, 3:], labels[0, 1], weights[0, 1] = -1, 99, 0.0
    expected, value = (trained.evaluate(INPUTS, each, sample_weight=weights, verbose=0) for each in (LABELS, labels))
    assert value == pytest.approx(expected, rel=1e-6) and 0.0 < value < 9.0


def test_class_weight_is_refused_with_the_way_to_weigh_tokens(trained):
    with pytest.raises(ValueError, match=r"sample_weight=np.take\(weights, labels\)"):
        trained.fit(INPUTS, LABELS, class_weight={1: 0.0})


# === Decoding ===


def test_generate_uses_the_weights_of_the_moment():
    model = make_transformer(num_layers=1)
    before = model.generate(SOURCE, 5)
    model.set_weights(
        [weight + 0.5 * np.cos(np.arange(weight.size)).reshape(weight.shape) for weight in model.get_weights()]
    )
    after = model.generate(SOURCE, 5)
    assert before.tolist() != after.tolist()
    assert after.tolist() == make_copy(model).generate(SOURCE, 5).tolist()


def test_generate_ends_at_each_of_several_ids(transformers):
    model = transformers["as_in_the_paper"]
    whole = model.generate(SOURCE, 7, end=[12])
    ends = sorted({int(whole[0, 2]), int(whole[1, 1])})
    for row, answer in zip(whole, model.generate(SOURCE, 7, end=ends), strict=True):
        length = next(index for index, token in enumerate([*row, *ends]) if token in ends) + 1
        assert answer.tolist() == [*row[:length], *[PAD] * 7][:7]
    with pytest.raises(ValueError, match=r"`end` must be an id of 0 or more, .* Received: '3' of type str"):
        model.generate(SOURCE, 7, end=["3"])


def make_copy(model):
    copy = Transformer.from_config(model.get_config())
    copy.set_weights(model.get_weights())
    return copy


def test_generate_uses_the_low_rank_weights_that_come_later():
    model = make_transformer(num_layers=1)
    before = model.generate(SOURCE, 5)
    projection = model.decoder_blocks[0].cross_attention.output_dense
    projection.enable_lora(2)
    for weight in (projection.lora_kernel_a, projection.lora_kernel_b):
        weight.assign(keras.random.normal(weight.shape, stddev=5.0, seed=1))
    assert model.generate(SOURCE, 5).tolist() != before.tolist()


def test_a_score_of_the_user_needs_no_registration_to_be_used():
    model = make_transformer(num_layers=1, score=Unregistered())
    assert type(model.encoder_blocks[0].self_attention.score) is Unregistered
    assert np.isfinite(logits_of(model)).all()


def test_a_score_object_is_copied_for_every_attention():
    score = AdditiveScore(units=3)
    model = make_transformer(num_layers=1, score=score)
    used = [model.encoder_blocks[0].self_attention.score, model.decoder_blocks[0].cross_attention.score]
    assert len({id(score), *map(id, used)}) == 3
    assert all(each.units == 3 for each in used)


@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize` method")  # of every layer without weights
def test_the_whole_model_quantizes_to_int8():
    model = make_transformer(num_layers=1)
    expected = logits_of(model)
    model.quantize("int8")
    np.testing.assert_allclose(logits_of(model), expected, atol=0.1)


def test_float16_by_argument_scales_the_loss():
    model = make_transformer(num_layers=1, dtype="mixed_float16")
    model.compile("adam", SmoothedCrossentropy(0.0))
    assert isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)


def test_sizes_may_come_from_numpy():
    model = make_transformer(num_layers=np.int64(1), hidden_dim=np.int32(6))
    assert model.generate(SOURCE, np.int64(3)).shape == (2, 3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda model: model.generate({"src": SOURCE}), ValueError, r'dictionary with "source". Received: \[\'src\'\]'),
        (
            lambda model: model.generate([[4, 5], [6]]),
            ValueError,
            r"`source` must be of one length. Received rows of \[2, 1\]",
        ),
        (lambda model: model.generate(SOURCE, sampler=BeamSearch), TypeError, r"not a class.* Write `BeamSearch\(\)`"),
        (lambda model: model.generate(SOURCE, sampler=["beam"]), ValueError, r"Unknown sampler: \['beam'\]"),
        (lambda model: model.attention_weights([SOURCE]), ValueError, 'dictionary with "source". Received: list'),
        (lambda model: make_transformer(dropuot=0.3), TypeError, "unexpected keyword argument 'dropuot'"),
        (
            lambda model: make_transformer(seed=-1),
            ValueError,
            "`seed` must be an integer of 0 or more.* Received: -1",
        ),
    ],
)
def test_mistakes_are_named(transformers, call, error, message):
    with pytest.raises(error, match=message):
        call(transformers["as_in_the_paper"])


def test_training_moves_every_weight():
    model = make_transformer(num_layers=1, dropout=0.0)
    before = model.get_weights()
    model.compile(keras.optimizers.Adam(0.1), SmoothedCrossentropy(0.1))
    model.train_on_batch(INPUTS, LABELS)
    names = [weight.path for weight in model.weights]
    still = [
        name for name, old, new in zip(names, before, model.get_weights(), strict=True) if np.array_equal(old, new)
    ]
    assert all(name.endswith("key/bias") for name in still)  # a softmax does not see a constant added to all its scores


# === Samplers ===


def log_probability(model, source, tokens):
    """Sum of log p over `tokens` up to the end symbol, for each row, by the full forward."""
    target = np.concatenate([np.full((len(tokens), 1), START), tokens[:, :-1]], axis=1)
    logits = logits_of(model, source, target).astype("float64")
    log_probabilities = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    of_tokens = np.take_along_axis(log_probabilities, tokens[..., None], axis=-1)[..., 0]
    return np.sum(np.where(tokens != PAD, of_tokens, 0.0), axis=-1)


def test_beam_search_gives_the_log_probabilities_of_the_full_forward(transformer):
    search = BeamSearch(beam_width=5, length_penalty=0.0, num_results=5)
    tokens, scores = transformer.generate(SOURCE, 7, search, return_scores=True)
    assert tokens.shape == (2, 5, 7)
    assert (np.diff(scores, axis=1) <= 0).all()
    for beam in range(5):
        np.testing.assert_allclose(
            scores[:, beam], log_probability(transformer, SOURCE, tokens[:, beam]), rtol=1e-4, atol=1e-4
        )
    greedy = transformer.generate(SOURCE, 7)
    assert (scores[:, 0] >= log_probability(transformer, SOURCE, greedy) - 1e-4).all()


def test_generate_writes_the_best_or_the_n_best(transformers):
    model = transformers["as_in_the_paper"]
    expected = model.generate(SOURCE, 7, BeamSearch(num_results=4))
    np.testing.assert_array_equal(model.generate(SOURCE, 7, sampler="beam"), expected[:, 0])
    np.testing.assert_array_equal(model.generate(SOURCE, 7, sampler=BeamSearch(num_results=3)), expected[:, :3])


def test_an_empty_batch_has_the_shape_of_any_other(transformers):
    empty = np.zeros((0, 7), "int32")
    assert transformers["as_in_the_paper"].generate(empty, 7, sampler=BeamSearch(num_results=3)).shape == (0, 3, 7)


def test_the_coverage_is_the_cross_attention_of_the_last_block(transformers):
    model = transformers["as_in_the_paper"]
    state = compiled(Transformer.initial_state, model, max_length=3)(ops.convert_to_tensor(SOURCE))
    for position in range(3):
        _, state = compiled(Transformer.decode_step, model)(ops.convert_to_tensor(TARGET[:, position]), state)
    weights = ops.convert_to_numpy(model.attention_weights(INPUTS)["decoder_cross"][-1])  # (B, N, T, S)
    expected = np.where(SOURCE == PAD, 1.0, weights[:, :, :3].mean(axis=1).sum(axis=1))
    np.testing.assert_allclose(ops.convert_to_numpy(state["coverage"]), expected, atol=1e-5)


def test_the_coverage_penalty_is_paid_by_every_result(transformers):
    model = transformers["as_in_the_paper"]
    search = BeamSearch(beam_width=3, length_penalty=0.0, coverage_penalty=0.5, num_results=3)
    tokens, scores = model.generate(SOURCE, 5, search, return_scores=True)
    for beam in range(3):
        target = np.concatenate([np.full((2, 1), START), tokens[:, beam, :-1]], axis=1)
        cross = ops.convert_to_numpy(model.attention_weights({"source": SOURCE, "target": target})["decoder_cross"][-1])
        is_step = tokens[:, beam] != PAD
        received = np.sum(cross.mean(axis=1) * is_step[..., None], axis=1)
        penalty = np.log(np.where(SOURCE == PAD, 1.0, np.clip(received, 1e-6, 1.0))).sum(axis=-1)
        expected = log_probability(model, SOURCE, tokens[:, beam]) + 0.5 * penalty
        np.testing.assert_allclose(scores[:, beam], expected, rtol=1e-4)


def test_a_compiled_sampler_draws_anew_in_every_call(transformers):
    model, sampler = transformers["as_in_the_paper"], Sample(seed=3)
    first, second = (model.generate(SOURCE, 7, sampler).tolist() for _ in range(2))
    assert first != second
    assert model.generate(SOURCE, 7, Sample(seed=3)).tolist() == first
    assert model.generate(SOURCE, 7, "sample").tolist() != model.generate(SOURCE, 7, "sample").tolist()


def test_generate_returns_the_scores_of_the_sampler(transformers):
    model = next(iter(transformers.values()))
    ids, scores = model.generate(SOURCE, max_length=5, return_scores=True)
    np.testing.assert_array_equal(ids, model.generate(SOURCE, max_length=5))
    expected = model.log_probability({"source": SOURCE, "target": ids})
    np.testing.assert_allclose(scores, expected, atol=FLOAT32)


# === Models of users ===


@keras.saving.register_keras_serializable(package="tests")
class Recurrent(SequenceModel):
    """A recurrent decoder that attends to the embedded source: the three methods of the contract, and nothing else."""

    def __init__(self, vocabulary_size, hidden_dim, name=None, trainable=True):
        self.config = {"vocabulary_size": vocabulary_size, "hidden_dim": hidden_dim}
        self.vocabulary_sizes = {"source": vocabulary_size, "target": vocabulary_size}
        self.embedding = layers.TokenEmbedding(vocabulary_size, hidden_dim)
        self.gru = keras.layers.GRU(hidden_dim, return_sequences=True, return_state=True)
        self.attention = layers.SoftAttention()
        self.logits = keras.layers.Dense(vocabulary_size)
        source = keras.Input((None,), dtype="int32", name="source")
        super().__init__(**self.training_graph(source), name=name, trainable=trainable)

    def encode(self, source):
        return self.embedding(source)

    def initial_state(self, source, max_length=None):
        encoded, mask = self.encode(source), ops.not_equal(source, PAD)
        coverage = 1 - ops.cast(mask, "float32")
        return {"encoded": encoded, "mask": mask, "hidden": ops.mean(encoded, axis=1), "coverage": coverage}

    def decode(self, target, state, return_attention_scores=False):
        outputs, hidden = self.gru(self.embedding(target), initial_state=state["hidden"])
        options = {"value_mask": state["mask"], "return_attention_scores": return_attention_scores}
        attended = self.attention(outputs, state["encoded"], **options)
        context, weights = attended if return_attention_scores else (attended, None)
        return self.logits(ops.concatenate([outputs, context], axis=-1)), weights, {**state, "hidden": hidden}


class Earlier(SequenceModel):
    """As users wrote models of version 0.1: with a graph, steps, weights, checks and a config of their own."""

    def __init__(self, vocabulary_size, **kwargs):
        self.embedding = keras.layers.Embedding(vocabulary_size, vocabulary_size)
        inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in ("source", "target")}
        mean = ops.mean(self.encode(inputs["source"]), axis=1, keepdims=True)
        super().__init__(inputs=inputs, outputs=self.embedding(inputs["target"]) + mean, **kwargs)
        self.vocabulary_size = vocabulary_size

    def encode(self, source):
        return self.embedding(source)

    def initial_state(self, source, max_length):
        return ops.mean(self.encode(source), axis=1)

    def decode_step(self, tokens, state):
        return self.embedding(tokens) + state, state

    def align(self, source, target):
        return ops.ones((*ops.shape(target), ops.shape(source)[1])) / ops.shape(source)[1]

    def check_source(self, inputs):
        return np.asarray(inputs["source"] if isinstance(inputs, dict) else inputs)

    def check_target(self, target, source):
        return np.asarray(target)

    def get_config(self):
        return {"vocabulary_size": self.vocabulary_size, "name": self.name}


@pytest.mark.parametrize("make", [lambda: Recurrent(23, 7), lambda: Earlier(23)], ids=["contract", "version_0_1"])
def test_a_model_of_a_user_decodes_scores_aligns_serves_and_comes_back_from_its_config(make):
    keras.utils.set_random_seed(3)
    model = make()
    logits = ops.convert_to_numpy(model(INPUTS))
    state = model.initial_state(ops.convert_to_tensor(SOURCE), 3)
    for position in range(3):
        received, state = model.decode_step(ops.convert_to_tensor(TARGET[:, position]), state)
        np.testing.assert_allclose(received, logits[:, position], atol=FLOAT32)
    ids, scores = model.generate(SOURCE, 5, return_scores=True)
    expected = model.log_probability({"source": SOURCE, "target": ids})
    np.testing.assert_allclose(scores, expected, atol=FLOAT32)
    np.testing.assert_allclose(model.alignment(INPUTS).sum(-1)[0], 1.0, atol=FLOAT32)
    assert set(model.serving_signatures(5)) == {"translate_ids", "encode", "score_ids", "align_ids"}
    copied = type(model).from_config(model.get_config())
    copied.set_weights(model.get_weights())
    np.testing.assert_array_equal(copied(INPUTS), logits)


def test_the_coverage_of_a_model_of_a_user_is_added_up():
    model = Recurrent(23, 7)
    state = model.initial_state(ops.convert_to_tensor(SOURCE), 3)
    _, weights, _ = model.decode(ops.convert_to_tensor(TARGET[:, :3]), state, return_attention_scores=True)
    expected = ops.convert_to_numpy(state["coverage"] + ops.sum(weights, axis=1))
    for position in range(3):
        _, state = model.decode_step(ops.convert_to_tensor(TARGET[:, position]), state)
    np.testing.assert_allclose(state["coverage"], expected, atol=FLOAT32)


def test_a_model_without_decode_is_told_what_it_lacks():
    with pytest.raises(NotImplementedError, match=r"Earlier must define `decode\(target, state, .* returns `\(logits"):
        Earlier(23).decode(TARGET, ())
