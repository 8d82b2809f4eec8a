"""The pointer network in training: its logits, its masks, its parts. Decoding is tested in test_pointer_network_decoding."""

import keras
import numpy as np
import pytest
from compiled import compiled
from keras import ops
from models.conftest import not_on_jax
from models.pointer_networks import (
    EACH_VARIANT,
    INPUTS,
    LABELS,
    LENGTHS,
    MASK,
    POINTS,
    REAL,
    SOURCE,
    TARGET,
    VARIANTS,
    B,
    F,
    S,
    T,
    alignment,
    log_probability,
    logits_of,
    make_pointer_network,
    shared,
    tensors,
)
from reference import pointer_network
from reference.arrays import normal, to_numpy
from reference.gradients import gradient
from tolerances import EXACT, FLOAT32

from keras_attention.decoding import Constraint
from keras_attention.layers import MultiHeadAttention, Pointer, SoftAttention, TransformerEncoderBlock
from keras_attention.models import PointerNetwork
from keras_attention.ops.softmax import LOWEST
from keras_attention.training import SequenceAccuracy, SmoothedCrossentropy, TokenAccuracy

BACKEND = keras.backend.backend()
RECURRENT = {"return_sequences": True, "return_state": True}


@pytest.fixture(params=EACH_VARIANT)
def model(request):
    return shared(request.param)


def steps_of(model, steps, state):
    """The logits after each of the first `steps` indices of TARGET."""
    for step in range(steps):
        received, state = compiled(PointerNetwork.decode_step, model)(ops.convert_to_tensor(TARGET[:, step]), state)
        yield to_numpy(received)


def close(received, expected, atol=FLOAT32):
    np.testing.assert_allclose(received, expected, rtol=1e-5, atol=atol)


# === The formula ===


def anything(n):
    return lambda chosen: range(n + 1)


def what_is_left(n):
    return lambda chosen: [index for index in range(1, n + 1) if index not in chosen] or [0]


@pytest.mark.parametrize(("variant", "allowed"), [("lstm", anything), ("permutation", what_is_left)])
def test_logits_equal_a_loop_over_sources_and_steps(variant, allowed):
    model = shared(variant)
    weights = {layer.name: layer.get_weights() for layer in model.layers}
    logits = logits_of(model)
    for row, n in enumerate(LENGTHS):
        expected = pointer_network.pointer_network(POINTS[row, :n], TARGET[row, : n + 1], weights, LOWEST, allowed(n))
        close(logits[row, : n + 1, : n + 1], expected)
        assert (logits[row, : n + 1, n + 1 :] == np.float32(LOWEST)).all()  # padding


def test_step_by_step_equals_all_at_once(model):
    logits = logits_of(model)
    assert logits.dtype == "float32" and logits.shape == (B, T, S + 1)
    state = compiled(PointerNetwork.initial_state, model)(tensors(SOURCE))
    for step, received in enumerate(steps_of(model, 5, state)):
        close(received, logits[:, step])


def test_a_memory_prepared_once_gives_the_same_steps(model):
    logits = logits_of(model)
    state = compiled(PointerNetwork.initial_state, model, max_length=S + 1)(tensors(SOURCE))
    assert "prepared" in state and "memory" not in state
    for step, received in enumerate(steps_of(model, 5, state)):
        close(received, logits[:, step])


def test_the_memory_starts_with_the_end(model):
    assert tuple(compiled(PointerNetwork.encode, model)(SOURCE).shape) == (B, S + 1, model.config["hidden_dim"])


def test_the_pointer_reads_the_memory_under_the_constraint():
    model = shared("permutation")
    state = compiled(PointerNetwork.initial_state, model)(tensors(SOURCE))
    logits, _, after = compiled(PointerNetwork.decode, model)(ops.convert_to_tensor(TARGET), state)
    counts = to_numpy(after["counts"])
    np.testing.assert_array_equal(counts, [np.bincount(row, minlength=S + 1)[1:] for row in TARGET])
    inputs = np.stack([to_numpy(state["elements"])[row, TARGET[row]] for row in range(B)])
    hidden, _ = model.decoder(ops.convert_to_tensor(inputs), state["recurrent"])
    free = to_numpy(Pointer.call(model.pointer, hidden, state["memory"]))
    allowed = to_numpy(logits) > LOWEST
    close(to_numpy(logits)[allowed], free[allowed])
    for row, n in enumerate(LENGTHS):
        for step in range(n):
            left = set(range(1, n + 1)) - set(TARGET[row, : step + 1].tolist())
            assert set(np.flatnonzero(allowed[row, step])) == left
        assert np.flatnonzero(allowed[row, n]).tolist() == [0]


# === Padding ===


def padded():
    """The source with NaN before, between and after its positions, 11 in all; and where each index went."""
    places = np.array([1, 2, 4, 5, 6, 8, 9])
    points, mask = np.full((B, 11, F), np.nan, "float32"), np.zeros((B, 11), bool)
    points[:, places] = np.where(MASK[..., None], POINTS, np.nan)
    mask[:, places] = MASK
    return {"source": points, "source_mask": mask}, np.array([0, *(places + 1)])


def test_padding_changes_nothing_wherever_it_stands_and_whatever_it_holds(model):
    source, moved = padded()
    logits = logits_of(model, {**source, "target": moved[TARGET].astype("int32")})
    close(logits[..., moved], logits_of(model))
    others = np.setdiff1d(np.arange(12), moved)
    assert (logits[..., others] == np.float32(LOWEST)).all()


def test_an_encoder_without_a_mask_reads_what_is_real_side_by_side_and_then_zeros():
    model = PointerNetwork(F, encoder=keras.layers.Conv1D(8, 3, padding="same"), hidden_dim=8, seed=1)
    model.embedding.bias.assign(ops.ones(8))
    source, moved = padded()
    close(logits_of(model, {**source, "target": moved[TARGET].astype("int32")})[..., moved], logits_of(model))


def test_other_rows_of_the_batch_change_nothing(model):
    logits = logits_of(model)
    permuted = logits_of(model, {name: array[[2, 0, 1]] for name, array in INPUTS.items()})
    close(permuted, logits[[2, 0, 1]])
    alone = logits_of(model, {"source": POINTS[1:2, :4], "source_mask": MASK[1:2, :4], "target": TARGET[1:2, :5]})
    close(alone[0], logits[1, :5, :5])


def test_padding_gets_no_gradient(model):
    points = np.where(MASK[..., None], POINTS, np.float32(np.nan))
    factors = np.where(logits_of(model) > LOWEST, normal(B, T, S + 1), 0.0).astype("float32")
    others = {name: ops.convert_to_tensor(INPUTS[name]) for name in ("source_mask", "target")}
    found = gradient(lambda tensor: ops.sum(ops.multiply(model({"source": tensor, **others}), factors)), points)
    assert np.isfinite(found).all()
    assert not found[~MASK].any() and found[MASK].any(axis=-1).all()


def test_without_positions_the_order_of_the_source_is_no_information():
    model, order = shared("transformer"), np.array([3, 0, 6, 4, 2, 1, 5])
    place = np.array([0, *(np.argsort(order) + 1)])  # index -> index in the new order
    permuted = {"source": POINTS[:, order], "source_mask": MASK[:, order], "target": place[TARGET].astype("int32")}
    close(logits_of(model, permuted)[..., place], logits_of(model))


@pytest.mark.parametrize(
    "sizes",
    [(B, 0, T), (B, S, 0), *(pytest.param(sizes, marks=not_on_jax) for sizes in ((1, S, 0), (1, 0, T), (0, 0, T)))],
)
def test_sources_and_targets_may_be_empty(sizes, model):
    B, S, T = sizes
    inputs = {"source": POINTS[:B, :S], "source_mask": MASK[:B, :S], "target": TARGET[:B, :T] * (S > 0)}
    logits = logits_of(model, inputs)
    assert logits.shape == (B, T, S + 1) and np.isfinite(logits).all()


# === Training ===


def loss_of(logits, labels):
    """Mean over the indices and the end, without the padding."""
    terms = [
        np.log(np.exp(logits[row, step]).sum()) - logits[row, step, labels[row, step]]
        for row, n in enumerate(LENGTHS)
        for step in range(n + 1)
    ]
    return np.mean(terms)


def test_loss_and_accuracies_count_the_end_and_leave_out_the_padding():
    model = make_pointer_network(**VARIANTS["permutation"])
    labels = LABELS.copy()
    labels[1] = model.generate(SOURCE, T)[1]  # its own answer is right
    inputs = {**SOURCE, "target": np.pad(labels[:, :-1], ((0, 0), (1, 0)))}
    logits = logits_of(model, inputs).astype("float64")
    right = logits.argmax(-1) == labels
    whole = (right | ~REAL).all(axis=-1)
    assert whole[1] and not whole.all()
    expected = {
        "loss": loss_of(logits, labels),
        "token_accuracy": right[REAL].mean(),
        "sequence_accuracy": whole.mean(),
    }
    model.compile(keras.optimizers.SGD(0.0), SmoothedCrossentropy(0.0), metrics=[TokenAccuracy(), SequenceAccuracy()])
    fitted = model.fit(inputs, labels, verbose=0).history
    behind_the_end = np.where(REAL, labels, 3)
    evaluated = model.evaluate(inputs, behind_the_end, verbose=0, return_dict=True)
    for name, value in expected.items():
        assert evaluated[name] == pytest.approx(value, rel=1e-4)
        assert fitted[name][0] == pytest.approx(value, rel=1e-4)


def test_a_label_beyond_the_last_position_is_named_before_the_first_step():
    model = make_pointer_network(**VARIANTS["permutation"])
    model.compile("sgd", SmoothedCrossentropy(0.0))
    labels = LABELS.copy()
    labels[0, 1] = S + 1
    with pytest.raises(ValueError, match=rf"ids in \[0, {S + 1}\).*Received {S + 1} at \(0, 1\)"):
        model.fit(INPUTS, labels, verbose=0)


def fitted_losses(**options):
    """The losses of two steps, on sources of seven and of four positions."""
    # Without an LSTM as encoder, which the contract tests compile, XLA is done in half the time.
    encoder = keras.layers.Dense(5, kernel_initializer="ones")
    model = make_pointer_network(encoder=encoder, hidden_dim=5, constraint="permutation")
    model.compile(keras.optimizers.SGD(0.1), SmoothedCrossentropy(0.0), **options)
    shorter = {"source": POINTS[1:, :4], "source_mask": MASK[1:, :4], "target": TARGET[1:, :5]}
    return [
        model.fit(inputs, labels, verbose=0).history["loss"][0]
        for inputs, labels in ((INPUTS, LABELS), (shorter, LABELS[1:, :5]))
    ]


@pytest.mark.skipif(
    BACKEND != "tensorflow", reason="JAX compiles each operation of eager steps, torch.compile needs a C++ compiler"
)
def test_compiled_training_on_changing_lengths_has_the_losses_of_plain_training():  # D14
    compiled, plain = fitted_losses(jit_compile=True), fitted_losses(jit_compile=False, run_eagerly=True)
    np.testing.assert_allclose(compiled, plain, rtol=1e-4)
    assert plain[0] != pytest.approx(plain[1], rel=1e-3)


def test_dropout_is_for_training_alone():
    model = make_pointer_network(dropout=0.5)
    call = compiled(PointerNetwork.__call__, model, training=True)
    first, second = (to_numpy(call(tensors(INPUTS))) for _ in range(2))
    assert (first != second).any()
    np.testing.assert_array_equal(logits_of(model), logits_of(model))


# === Parts ===


def sequential():
    return keras.Sequential([TransformerEncoderBlock(2, 13), TransformerEncoderBlock(2, 13)])


def stacked_cells():
    return keras.layers.RNN([keras.layers.LSTMCell(5), keras.layers.GRUCell(7)], **RECURRENT)


PARTS = {
    "bidirectional": {
        "encoder": lambda: keras.layers.Bidirectional(keras.layers.LSTM(5, return_sequences=True)),
        "decoder": lambda: keras.layers.GRU(7, **RECURRENT),
    },
    "block": {
        "encoder": lambda: TransformerEncoderBlock(2, 13),
        "decoder": lambda: keras.layers.RNN(keras.layers.LSTMCell(7), **RECURRENT),
        "glimpse": lambda: MultiHeadAttention(2, 3),
    },
    "dense": {
        "encoder": lambda: keras.layers.Dense(7),
        "decoder": stacked_cells,
        "constraint": Constraint,
    },
    "sequential": {"encoder": sequential, "decoder": lambda: "gru", "constraint": lambda: "triangles"},
}


@pytest.fixture(params=[pytest.param(name, marks=[not_on_jax] * (name != "block")) for name in PARTS])
def assembled(request):
    return make_pointer_network(hidden_dim=8, **{name: make() for name, make in PARTS[request.param].items()})


def test_encoders_and_decoders_may_be_any_layers(assembled, tmp_path):
    # Saved and read back.
    logits = logits_of(assembled)
    assembled.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(logits_of(loaded), logits, atol=EXACT)
    assert loaded.get_config() == assembled.get_config()
    assert PointerNetwork.from_config(assembled.get_config()).get_config() == loaded.get_config()
    assert assembled.get_config() == loaded.get_config()  # still, though Keras took one apart
    # Padding changes nothing.
    source, moved = padded()
    close(logits_of(loaded, {**source, "target": moved[TARGET].astype("int32")})[..., moved], logits)
    # Step by step equals all at once.
    state = compiled(PointerNetwork.initial_state, loaded)(tensors(SOURCE))
    for step, received in enumerate(steps_of(loaded, 2, state)):
        close(received, logits[:, step])


def test_half_precision_gives_float32_logits_near_the_full_ones():
    model = make_pointer_network(**VARIANTS["permutation"], dtype="mixed_bfloat16")
    logits, expected = logits_of(model), logits_of(shared("permutation"))
    assert logits.dtype == "float32"
    np.testing.assert_array_equal(logits == np.float32(LOWEST), expected == np.float32(LOWEST))
    np.testing.assert_allclose(logits, expected, atol=0.2)


def test_parts_keep_the_precision_that_they_were_made_with():
    parts = {"encoder": keras.layers.Dense(5), "decoder": keras.layers.GRU(7, **RECURRENT)}
    model = make_pointer_network(**parts, dtype="mixed_bfloat16")
    state = compiled(PointerNetwork.initial_state, model)(tensors(SOURCE))
    _, after = compiled(PointerNetwork.decode_step, model)(ops.zeros(B, "int32"), state)
    assert keras.backend.standardize_dtype(state["recurrent"][0].dtype) == "float32"
    assert keras.backend.standardize_dtype(after["recurrent"][0].dtype) == "float32"


def test_the_mean_of_a_memory_does_not_overflow_in_float16():
    encoder = keras.layers.Dense(5, kernel_initializer="ones", dtype="mixed_float16")
    model = PointerNetwork(feature_dim=F, hidden_dim=8, encoder=encoder, dtype="mixed_float16")
    points = np.full((1, 211, F), 500.0, "float32")
    source = tensors({"source": points, "source_mask": np.ones((1, 211), bool)})
    state = compiled(PointerNetwork.initial_state, model)(source)
    assert all(np.isfinite(to_numpy(tensor)).all() for tensor in state["recurrent"])


@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize` method")  # of every layer without weights
def test_the_whole_model_quantizes_to_int8():
    model = make_pointer_network(**VARIANTS["lstm"])
    expected = logits_of(model)
    model.quantize("int8")
    np.testing.assert_allclose(logits_of(model), expected, atol=0.2)


def test_sizes_may_come_from_numpy():
    model = PointerNetwork(np.int64(F), hidden_dim=np.int32(8), tanh_clipping=np.float32(3))
    assert PointerNetwork.from_config(model.get_config()).get_config() == model.get_config()


# === Mistakes ===


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"feature_dim": 0}, ValueError, "`feature_dim` must be a positive integer. Received: 0"),
        ({"hidden_dim": 8.0}, ValueError, "`hidden_dim` must be a positive integer. Received: 8.0"),
        ({"num_layers": -1}, ValueError, "`num_layers` must be a positive integer. Received: -1"),
        (
            {"encoder": "transformer", "hidden_dim": 12},
            ValueError,
            "`hidden_dim` must be a multiple of 8.* Received: 12",
        ),
        ({"encoder": "gru"}, ValueError, 'Unknown encoder: "gru"'),
        ({"encoder": 3}, TypeError, "`encoder` must be .* Received: 3 of type int"),
        ({"encoder": keras.layers.LSTM(7)}, ValueError, r"`encoder` must make one vector for each.* shape \(None, 7\)"),
        ({"encoder": keras.layers.LSTM(7, **RECURRENT)}, ValueError, "`encoder` must make.* Received (list|tuple) of"),
        ({"decoder": "lstmm"}, ValueError, 'Unknown decoder: "lstmm".*Did you mean "lstm"'),
        (
            {"decoder": keras.layers.GRU(7)},
            ValueError,
            "`decoder` must be .* return_sequences=False, return_state=False",
        ),
        ({"score": "adittive"}, ValueError, 'Unknown score: "adittive"'),
        ({"glimpse": "additive"}, TypeError, "`glimpse` must be an attention layer"),
        ({"tanh_clipping": 0.0}, ValueError, "`tanh_clipping` must be a finite number above 0"),
        (
            {"constraint": "tour"},
            ValueError,
            'Unknown constraint: "tour". Known: "permutation", "polygon", "triangles"',
        ),
        ({"dropout": 1.0}, ValueError, r"`dropout` must be a number in \[0, 1\). Received: 1.0"),
        ({"seed": -1}, ValueError, "`seed` must be an integer of 0 or more"),
        ({"hiden_dim": 8}, TypeError, "unexpected keyword argument 'hiden_dim'"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        PointerNetwork(**arguments)


def test_a_glimpse_belongs_to_one_network():
    glimpse = SoftAttention("additive")
    PointerNetwork(hidden_dim=8, glimpse=glimpse)
    with pytest.raises(ValueError, match="which is built already"):
        PointerNetwork(hidden_dim=8, glimpse=glimpse)


def test_what_may_not_come_next_has_the_lowest_logit_in_half_precision_too():
    model = PointerNetwork(hidden_dim=4, dtype="mixed_float16")
    mask = np.array([[True, True, False]])
    inputs = {"source": np.zeros((1, 3, 2), "float32"), "source_mask": mask, "target": np.zeros((1, 1), "int32")}
    np.testing.assert_array_equal(logits_of(model, inputs)[0, 0] == np.float32(LOWEST), [False, False, False, True])


@pytest.mark.parametrize(("S", "T"), [(7, 3), (7, 0)])
def test_no_source_has_no_answers(S, T):
    source = {"source": np.zeros((0, S, F), "float32"), "source_mask": np.zeros((0, S), "bool")}
    inputs = {**source, "target": np.zeros((0, T), "int32")}
    model = shared("lstm")
    assert logits_of(model, inputs).shape == (0, T, S + 1)
    assert log_probability(model, inputs).shape == (0,)
    assert alignment(model, inputs).shape == (0, T, S + 1)
