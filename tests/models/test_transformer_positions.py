"""`Transformer(position=...)`: in the self-attention of every block, shared schemes once for each stack."""

import keras
import numpy as np
import pytest
from keras import ops
from models.conftest import LABELS, SOURCE, TARGET, make_transformer, padded

from keras_attention.decoding import BeamSearch
from keras_attention.layers import MultiHeadAttention
from keras_attention.positions import ALiBi, Rotary, SlidingWindow, T5Bias
from keras_attention.tokens import PAD
from keras_attention.training import SmoothedCrossentropy

INPUTS = {"source": SOURCE, "target": TARGET}


MODELS = {
    "rotary": {"position": "rotary", "position_encoding": None},
    "t5": {"position": "t5", "score": "dot", "position_encoding": None},
    "across": {"position": "rotary", "cross_position": "alibi", "position_encoding": None},
    "t5 in a template": {"attention": MultiHeadAttention(2, 5, position=T5Bias(num_buckets=12)), "num_heads": 8},
}


@pytest.fixture(params=MODELS.values(), ids=MODELS, scope="module")
def model(request):
    return make_transformer(hidden_dim=8, **request.param)


def logits_of(model, source=SOURCE, target=TARGET):
    return ops.convert_to_numpy(model({"source": source, "target": target}))


def test_each_self_attention_has_the_scheme_and_the_attention_to_the_source_what_is_asked_for(model):
    for block in model.encoder_blocks + model.decoder_blocks:
        assert isinstance(block.self_attention.position, Rotary | T5Bias)
    asked = ALiBi if model.get_config()["cross_position"] else type(None)
    assert all(isinstance(block.cross_attention.position, asked) for block in model.decoder_blocks)


@pytest.mark.parametrize(("name", "buckets"), [("t5", 32), ("t5 in a template", 12)])
def test_a_shared_scheme_is_one_table_for_each_stack_and_causal_in_the_decoder(name, buckets):
    model = make_transformer(**MODELS[name])
    tables = [weight for weight in model.weights if tuple(weight.shape) == (buckets, 2)]
    assert len(tables) == 2
    for blocks, bidirectional in ((model.encoder_blocks, True), (model.decoder_blocks, False)):
        (scheme,) = {id(scheme): scheme for block in blocks if (scheme := block.self_attention.position)}.values()
        assert scheme.bidirectional is bidirectional


def test_a_scheme_that_is_not_shared_is_one_for_each_block():
    model = make_transformer(position=SlidingWindow(2))
    blocks = model.encoder_blocks + model.decoder_blocks
    assert len({id(block.self_attention.position) for block in blocks}) == len(blocks)


def test_padding_may_stand_anywhere(model):
    expected = logits_of(model)[TARGET != PAD]
    for kind in ("left", "holes"):
        source, target = padded(SOURCE, kind), padded(TARGET, kind)
        np.testing.assert_allclose(logits_of(model, source, target)[target != PAD], expected, atol=1e-5)


def test_decoding_with_the_cache_equals_the_full_forward_at_every_step(model):
    full, state = logits_of(model), model.initial_state(ops.convert_to_tensor(SOURCE), max_length=7)
    for position in range(3):  # the second target has three real tokens
        logits, state = model.decode_step(ops.convert_to_tensor(TARGET[:, position]), state)
        np.testing.assert_allclose(ops.convert_to_numpy(logits), full[:, position], atol=1e-5)


def test_the_file_gives_the_same_model_back(model, tmp_path):
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    np.testing.assert_array_equal(logits_of(loaded), logits_of(model))


@pytest.mark.parametrize("kind", ["position", "attention"])
def test_what_another_layer_has_built_is_copied_and_the_file_gives_the_model_back(kind, tmp_path):
    scheme, inputs = T5Bias(), ops.ones((1, 3, 8))
    attention = MultiHeadAttention(2, 4, position=scheme)
    attention(inputs, inputs)
    model = make_transformer(
        hidden_dim=8, **{"position": {"position": scheme}, "attention": {"attention": attention, "num_heads": 8}}[kind]
    )
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert len(loaded.weights) == len(model.weights)
    np.testing.assert_array_equal(logits_of(loaded), logits_of(model))


def test_a_compiled_model_with_a_shared_scheme_learns_and_answers():
    model = make_transformer(num_layers=1, dropout=0.0, position="t5")
    jit_compile = keras.backend.backend() != "torch"  # where it takes minutes
    model.compile(keras.optimizers.SGD(0.1), SmoothedCrossentropy(0.1), jit_compile=jit_compile)
    losses = model.fit(INPUTS, LABELS, epochs=2, verbose=0).history["loss"]
    assert losses[1] < losses[0]
    ids, _ = model.search(ops.convert_to_tensor(SOURCE), 3, BeamSearch(2))
    assert ids.shape == (2, 3)


def test_no_position_is_the_default_and_old_configs_load():
    model = make_transformer()
    config = model.get_config()
    assert config.pop("position") is None and config.pop("cross_position") is None
    old = type(model).from_config(config)
    assert [weight.path for weight in old.weights] == [weight.path for weight in model.weights]


def test_a_position_beside_a_template_that_has_one_is_an_error():
    with pytest.raises(ValueError, match=r"`position` must be left out beside an `attention` that has one"):
        make_transformer(attention=MultiHeadAttention(2, 3, position=SlidingWindow(2)), position=SlidingWindow(3))
