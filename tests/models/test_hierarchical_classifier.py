import functools

import keras
import numpy as np
import pytest
from compiled import compiled
from keras import ops
from reference.arrays import to_numpy
from reference.hierarchical_attention import hierarchical_attention
from tolerances import EXACT, FLOAT32

from keras_attention.alignments import Sparsemax
from keras_attention.models import HierarchicalClassifier

B, L, W, D, V, CLASSES, HIDDEN = 5, 3, 7, 11, 29, 13, 8
PADDING = 1e-6  # how far padding may move a result

LENGTHS = np.array([[7, 5, 2], [4, 0, 7], [3, 0, 0], [0, 0, 0], [0, 1, 0]])
IDS = np.random.default_rng(3).integers(1, V, (B, L, W)).astype("int32")
IDS[np.arange(W) >= LENGTHS[..., None]] = 0
LABELS = np.array([0, 3, 5, 7, 11], "int32")

ENCODERS = {
    "gru": "gru",
    "lstm": "lstm",
    "transformer": "transformer",
    "convolution": "convolution",
    "none": None,
    "by_level": {"word": "convolution", "sentence": "gru"},
}


def make(encoder="convolution", **options):
    keras.utils.set_random_seed(3)
    settings = {"embedding_dim": D, "hidden_dim": HIDDEN, "encoder": encoder, **options}
    model = HierarchicalClassifier(V, CLASSES, **settings)
    table = model.embedding.get_weights()[0]
    model.embedding.set_weights([20 * table])  # as after some training: else all documents are nearly the same
    return model


@functools.cache
def shared(name):
    """A model that no test changes."""
    return make(ENCODERS[name])


# JAX compiles every encoder anew in every test: there two have to do.
each_encoder = pytest.mark.parametrize(
    "name", ENCODERS if keras.backend.backend() == "tensorflow" else ["by_level", "transformer"]
)


def trainable(model):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.03), loss, metrics=["accuracy"])
    return model


def logits_of(model, ids=IDS):
    return to_numpy(compiled(HierarchicalClassifier.__call__, model)(ops.convert_to_tensor(ids)))


def weights_of(model, ids=IDS):
    """`model.attention_weights(ids)`, on JAX by one compiled call."""
    _, weights = compiled(HierarchicalClassifier.classify, model)(ops.convert_to_tensor(ids))
    return {level: to_numpy(each) for level, each in weights.items()}


def close(received, expected, atol=FLOAT32):
    np.testing.assert_allclose(to_numpy(received), expected, atol=atol)


# === Forward ===


def test_logits_and_weights_are_those_of_the_loop():
    model = shared("none")
    pools = [(None, model.attention.poolings[level].get_weights()) for level in ("word", "sentence")]
    documents, weights = hierarchical_attention(model.embedding.get_weights()[0][IDS], IDS != 0, pools)
    kernel, bias = model.output_layer.get_weights()
    close(logits_of(model), documents @ kernel + bias)
    received = model.attention_weights(IDS)
    close(received["word"], weights[0])
    close(received["sentence"], weights[1])


@each_encoder
def test_padding_words_and_sentences_change_nothing(name):
    model = shared(name)
    padded = np.pad(IDS, ((0, 0), (0, 2), (0, 4)))
    close(logits_of(model, padded), logits_of(model), atol=PADDING)
    weights, expected = weights_of(model, padded), weights_of(model)
    close(weights["word"][:, :L, :W], expected["word"], atol=PADDING)
    close(weights["sentence"][:, :L], expected["sentence"], atol=PADDING)


@each_encoder
def test_a_document_alone_has_the_logits_that_it_has_among_others(name):
    model = shared(name)
    close(logits_of(model, IDS[1:2])[0], logits_of(model)[1], atol=PADDING)


@each_encoder
def test_the_weights_are_those_of_what_is_there_and_belong_to_the_logits(name):
    model = shared(name)
    weights = weights_of(model)
    assert [each.dtype for each in weights.values()] == ["float32"] * 2
    close(weights["word"].sum(axis=-1), LENGTHS > 0)
    close(weights["sentence"].sum(axis=-1), LENGTHS.any(axis=-1))
    assert not weights["word"][IDS == 0].any() and not weights["sentence"][LENGTHS == 0].any()
    classify = compiled(HierarchicalClassifier.classify, model)
    close(classify(ops.convert_to_tensor(IDS))[0], logits_of(model), atol=PADDING)


def test_an_empty_document_has_the_logits_of_the_bias():
    model = make("gru")
    model.output_layer.set_weights([model.output_layer.get_weights()[0], np.arange(CLASSES)])
    close(logits_of(model)[3], np.arange(CLASSES))


@pytest.mark.parametrize("sizes", [(0, L, W), (B, 0, W), (B, L, 0)], ids=["documents", "sentences", "words"])
def test_nothing_at_all_is_classified_by_the_bias(sizes):
    model = shared("gru")
    close(logits_of(model, np.zeros(sizes, "int32")), np.zeros((sizes[0], CLASSES)), atol=EXACT)
    assert weights_of(model, np.zeros(sizes, "int32"))["word"].shape == sizes


@pytest.mark.parametrize("levels", [("token",), ("word", "sentence", "paragraph")], ids=["one", "three"])
def test_there_may_be_any_number_of_levels(levels):
    model = make(levels=levels)
    ids = IDS[:, 0] if len(levels) == 1 else np.stack([IDS, IDS[::-1]], axis=1)
    assert logits_of(model, ids).shape == (B, CLASSES)
    assert {level: each.ndim for level, each in weights_of(model, ids).items()} == {
        level: ids.ndim - index for index, level in enumerate(levels)
    }
    if len(levels) == 3:
        padded = np.pad(ids, ((0, 0), (0, 1), (0, 1), (0, 1)))
        close(logits_of(model, padded), logits_of(model, ids), atol=PADDING)


def test_the_order_of_the_words_matters_to_an_encoder_only():
    reversed_ids = np.concatenate([IDS[:1, :, ::-1], IDS[1:]])
    close(logits_of(shared("none"), reversed_ids), logits_of(shared("none")))
    for name in ("gru", "transformer"):
        assert np.abs(logits_of(shared(name), reversed_ids) - logits_of(shared(name)))[0].max() > 1e-4


# === Training ===


def test_it_trains_on_documents_that_may_be_empty():
    model = trainable(make("gru", dropout=0.1, seed=5, dtype="mixed_bfloat16"))
    before = model.get_weights()
    assert np.isfinite(model.fit(IDS, LABELS, verbose=0).history["loss"]).all()
    assert all(
        (old != new).any() and np.isfinite(new).all() for old, new in zip(before, model.get_weights(), strict=True)
    )
    assert model.predict_on_batch(IDS).dtype == "float32"


def test_it_finds_the_word_that_decides():
    rng = np.random.default_rng(7)
    ids = rng.integers(5, V, (211, L, W)).astype("int32")
    labels = rng.integers(0, 2, 211).astype("int32")
    sentences, words = rng.integers(0, L, 211), rng.integers(0, W, 211)
    ids[np.arange(211), sentences, words] = 3 + labels
    keras.utils.set_random_seed(3)
    model = trainable(HierarchicalClassifier(V, CLASSES, embedding_dim=D, hidden_dim=HIDDEN, encoder=None))
    model.fit(ids, labels, epochs=11, batch_size=37, verbose=0)
    assert model.evaluate(ids, labels, verbose=0)[1] == 1.0
    weights = model.attention_weights(ids)
    found = weights["word"].argmax(axis=-1)[np.arange(211), sentences]
    assert (found == words).mean() > 0.95 and (weights["sentence"].argmax(axis=-1) == sentences).mean() > 0.95


# === Saving ===


@pytest.mark.parametrize(
    "encoder",
    ["gru", "transformer", {"word": keras.layers.Conv1D(7, 3, padding="same"), "sentence": "lstm"}],
    ids=["gru", "transformer", "layer"],
)
def test_a_saved_model_comes_back(encoder, tmp_path):
    model = make(encoder, alignment="sparsemax", dropout=0.3, seed=5)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    close(logits_of(loaded), logits_of(model), atol=EXACT)
    assert isinstance(loaded.attention.poolings["sentence"].alignment, Sparsemax)


def test_one_encoder_stands_for_all_levels_and_a_list_for_each():
    assert make(["gru", None]).config["encoder"] == {"word": "gru", "sentence": None}
    both = make("gru").attention.encoders
    assert both["word"] is not both["sentence"] and both["word"].name == "word_encoder"
    only = make(keras.layers.Conv1D(7, 3, padding="same"), levels=("word",))
    assert only.attention.encoders["word"].filters == 7


# === Errors ===


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"encoder": "grue"}, ValueError, 'Unknown encoder: "grue".*Did you mean "gru"'),
        ({"encoder": ["gru"]}, ValueError, "`encoder` must have one value for each of the 2 levels.*Received 1"),
        ({"encoder": keras.layers.Dense(3)}, ValueError, "A layer can be the encoder of one level, and there are 2"),
        ({"encoder": "gru", "hidden_dim": 7}, ValueError, "`hidden_dim` must be even.*Received: 7"),
        (
            {"encoder": "transformer", "hidden_dim": 12},
            ValueError,
            "`hidden_dim` must be a multiple of 8.*Received: 12",
        ),
        ({"hidden_dim": 0}, ValueError, "`hidden_dim` must be a positive integer. Received: 0"),
        ({"embedding_dim": 1.5}, ValueError, "`embedding_dim` must be a positive integer. Received: 1.5"),
        ({"levels": ()}, ValueError, "`levels` must be one or more different names"),
        ({"dropout": 1.0}, ValueError, r"`dropout` must be a number in \[0, 1\). Received: 1.0"),
    ],
)
def test_bad_arguments(options, error, message):
    with pytest.raises(error, match=message):
        make(**{"encoder": "convolution", **options})


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (IDS[0], r"integer ids of shape \(B, sentences, words\).*Received shape \(3, 7\) and dtype int32"),
        (IDS.astype("float32"), r"Received shape \(5, 3, 7\) and dtype float32"),
        (np.full((1, 1, 1), V), r"have the id 29, outside the vocabulary \[0, 29\)"),
        (np.full((1, 1, 1), -1), r"have the id -1, outside the vocabulary \[0, 29\)"),
    ],
    ids=["axes", "floats", "too_large", "negative"],
)
def test_ids_that_are_no_documents(ids, message):
    with pytest.raises(ValueError, match=message):
        shared("none").attention_weights(ids)


def with_id(wrong, dtype="int32"):
    ids = IDS.astype(dtype)
    ids[1, 0, 2] = wrong
    return ids


@pytest.mark.parametrize(("wrong", "dtype"), [(-1, "int32"), (V, "int32"), (2.5, "float32")])
def test_known_ids_that_are_none_are_an_error_of_a_call_and_of_classify(wrong, dtype):
    ids = ops.convert_to_tensor(with_id(wrong, dtype))
    for call in (shared("none"), shared("none").classify):
        with pytest.raises(
            ValueError, match=rf"must be whole numbers in \[0, 29\).*Received {wrong} among {dtype} ids"
        ):
            call(ids)


@pytest.mark.skipif(keras.backend.backend() == "torch", reason="torch computes eagerly, where such ids are an error")
@pytest.mark.parametrize(("wrong", "dtype"), [(-1, "int32"), (V, "int32"), (2.5, "float32")])
def test_inside_a_graph_a_document_with_an_id_that_is_none_has_logits_of_nan_and_the_others_their_own(wrong, dtype):
    logits = shared("none").predict(with_id(wrong, dtype), verbose=0)
    np.testing.assert_array_equal(np.isnan(logits).all(axis=-1), [False, True, False, False, False])
    others = [0, 2, 3, 4]
    close(logits[others], logits_of(shared("none"))[others])


@pytest.mark.parametrize("sizes", [(L,), (L, W, 2), (L, W, 1)], ids=["less", "more", "more_of_size_one"])
def test_another_number_of_axes_is_refused_eagerly_and_symbolically(sizes):
    for ids in (np.zeros((B, *sizes), "int32"), keras.Input(sizes, dtype="int32")):
        with pytest.raises(ValueError, match=r"`inputs` must have 3 axes, `\(B, sentences, words\)`. Received shape"):
            shared("none")(ids)
