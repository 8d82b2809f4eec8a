"""What every model keeps of itself: its config, its file, its parts, its quantization and its random numbers."""

import copy
import functools
import gc
import importlib
import inspect
import json
import pkgutil

import keras
import numpy as np
import pytest
from contract.cases import INTERFACES, LAYER_CASES, SIZES, WRAPPERS, each
from tolerances import EXACT

import keras_attention
from keras_attention import alignments, layers, models, training

MODEL_CASES = [case for case in LAYER_CASES if issubclass(case.kind, keras.Model)]


def recurrent(units=13):
    return keras.layers.RNN(keras.layers.GRUCell(units), return_sequences=True, return_state=True)


def pointer_network_of_layers():
    block = layers.TransformerEncoderBlock(2, 13)
    encoder = keras.Sequential([keras.layers.Dense(14), block])
    glimpse = layers.MultiHeadAttention(2, 3, alignment="entmax")
    return models.PointerNetwork(7, encoder, recurrent(), 14, glimpse=glimpse, score="bilinear", constraint="polygon")


def classifier_of_layers():
    encoders = {"word": keras.layers.Dense(11, name="a-b"), "sentence": "transformer"}
    return models.HierarchicalClassifier(29, 19, encoder=encoders, embedding_dim=7, hidden_dim=16, alignment="sampled")


def reinforce_model():
    query, value = keras.Input((3, 7), name="query"), keras.Input((None, 11), name="value")
    context = layers.HardAttention("bilinear", dropout=0.25)(query, value)
    logits = keras.layers.Dense(5)(keras.layers.GRU(13, return_sequences=True)(context))
    return training.ReinforceModel({"query": query, "value": value}, logits, baseline="learned", num_samples=2)


# Name -> (what makes the model, its inputs). The layers that a user hands a model are parts of it, too.
OF_LAYERS = {
    "PointerNetwork-layers": (pointer_network_of_layers, "PointerNetwork"),
    "HierarchicalClassifier-layers": (classifier_of_layers, "HierarchicalClassifier"),
    "ReinforceModel": (reinforce_model, "SoftAttention-additive"),
}
CASES = {str(case): case for case in LAYER_CASES}
MAKERS = {str(case): (case.make, str(case)) for case in MODEL_CASES} | OF_LAYERS


def inputs_of(name):
    """Inputs of the model called `name`, with padding where it has masks, as `fit` takes them."""
    case = CASES[MAKERS[name][1]]
    arrays = case.masked(case.arrays(), {} if name == "ReinforceModel" else case.padding_masks())
    if "source_mask" in case.masks:
        arrays.setdefault("source_mask", np.ones(arrays["source"].shape[:2], "bool"))
    return arrays if len(arrays) > 1 else next(iter(arrays.values()))


def outputs(model, name):
    """On JAX, which compiles each model for seconds, the weights of a model stand for its outputs."""
    if keras.backend.backend() == "jax":
        return model.get_weights()
    inputs = keras.tree.map_structure(keras.ops.convert_to_tensor, inputs_of(name))
    return [keras.ops.convert_to_numpy(output) for output in keras.tree.flatten(model(inputs))]


def check_equal(first, second):
    for array, expected in zip(first, second, strict=True):
        np.testing.assert_allclose(array, expected, atol=EXACT)


@functools.cache
def shared(name):
    """The model of a name, made once; tests must not change it."""
    return MAKERS[name][0]()


each_model = pytest.mark.parametrize("name", MAKERS)

# One for each class, of a user's layers where it takes such, for what costs a second.
ONE_OF_EACH = (
    "Transformer",
    "PointerNetwork-layers",
    "HierarchicalClassifier-layers",
    "GlimpseClassifier",
    "ReinforceModel",
)
each_class = pytest.mark.parametrize("name", ONE_OF_EACH)


def without_ids(config):
    """A config without the numbers by which Keras tells shared objects apart."""
    if isinstance(config, dict):
        return {key: without_ids(value) for key, value in config.items() if key != "shared_object_id"}
    return [without_ids(value) for value in config] if isinstance(config, list | tuple) else config


# === Config ===


@functools.cache
def made_of_config(name):
    """The config of the model of a name, what a model made of it has left of it, and that model."""
    model = shared(name)
    config = model.get_config()
    before = copy.deepcopy(config)
    return before, config, type(model).from_config(config)


@each_model
def test_a_config_gives_a_model_of_the_same_config(name):
    config, _, copied = made_of_config(name)
    assert type(copied) is type(shared(name))
    assert without_ids(json.loads(json.dumps(copied.get_config()))) == without_ids(json.loads(json.dumps(config)))


@each_model
def test_a_model_made_from_a_config_leaves_it_as_it_is(name):
    before, config, _ = made_of_config(name)
    assert config == before


LAYERS_OF_RECURRENT_ONES = {
    "glimpse": lambda: layers.Pointer(glimpse=keras.layers.TimeDistributed(recurrent())),
    "encoders": lambda: layers.HierarchicalAttention(("word",), {"word": recurrent()}),
    "network": lambda: training.LearnedBaseline(recurrent()),
}


@pytest.mark.parametrize("make", LAYERS_OF_RECURRENT_ONES.values(), ids=LAYERS_OF_RECURRENT_ONES)
def test_a_layer_made_from_a_config_leaves_it_as_it_is(make):
    config = make().get_config()
    before = copy.deepcopy(config)
    keras_class = type(make())
    keras_class.from_config(config)
    assert config == before


def classes_of_the_package():
    for module in pkgutil.walk_packages(keras_attention.__path__, "keras_attention."):
        if module.name.split(".")[1] in ("alignments", "decoding", "layers", "models", "scores", "training"):
            yield from vars(importlib.import_module(module.name)).values()


# Bases, and what never stands in a graph.
NOT_IN_A_GRAPH = {
    "SeededModel",
    "TokenModel",
    "_NumberOfTokens",
    "AttentionLayer",
    "OnOffAlignment",
    "SparseAlignment",
    "TransformerBlock",
    "SequenceModel",
    "Rows",
    "Search",
}
LAYER_CLASSES = {
    each
    for each in classes_of_the_package()
    if inspect.isclass(each) and issubclass(each, keras.layers.Layer) and each.__module__.startswith("keras_attention")
}


@pytest.mark.parametrize("kind", sorted(LAYER_CLASSES - INTERFACES, key=str), ids=lambda kind: kind.__name__)
def test_every_layer_of_a_graph_is_registered(kind):
    if kind.__name__ not in NOT_IN_A_GRAPH:
        assert keras.saving.get_registered_object(keras.saving.get_registered_name(kind)) is kind


# === Parts and copies ===


def cut(model):
    """A functional model of all that the layers of `model` return."""
    parts = [layer for layer in model.layers if not isinstance(layer, keras.layers.InputLayer)]
    return keras.Model(model.input, keras.tree.flatten([layer.output for layer in parts]))


# Keras' `Sequential` forgets, when it is copied, that it was told to take masks.
forgetful = pytest.mark.filterwarnings("ignore:Layer 'sequential.*was passed an input with a mask:UserWarning")


@forgetful
@each_class
def test_what_is_cut_out_of_a_model_is_saved_and_loaded(name, tmp_path):
    part = cut(shared(name))
    part.save(tmp_path / "part.keras")
    check_equal(outputs(keras.saving.load_model(tmp_path / "part.keras"), name), outputs(part, name))


@forgetful
@pytest.mark.parametrize("name", [name for name in ONE_OF_EACH if name != "ReinforceModel"])
def test_clone_model_says_how_to_copy_a_model(name):
    kind = type(shared(name)).__name__
    for options in ({}, {"clone_function": lambda layer: layer}, {"input_tensors": shared(name).input}):
        with pytest.raises(ValueError, match=rf"`{kind}.from_config\(model.get_config\(\)\)`"):
            keras.models.clone_model(shared(name), **options)


@forgetful
@each_class
def test_the_graph_of_a_model_can_be_cloned(name):
    model = shared(name)
    graph = keras.models.clone_model(keras.Model(model.input, model.output))
    assert graph.count_params() == cut(model).count_params()


@each(MODEL_CASES)
def test_the_signature_of_a_constructor_shows_its_arguments(case):
    class Heir(case.kind):
        def __init__(self, size):
            super().__init__(size)

    class HeirOfArguments(case.kind):
        pass

    assert set(case.options) <= set(inspect.signature(case.kind).parameters)
    assert set(case.options) <= set(inspect.signature(HeirOfArguments).parameters)
    assert list(inspect.signature(Heir).parameters) == ["size"]


# === Files of another kind ===


@each_model
@pytest.mark.parametrize("ending", ["h5", "hdf5"])
def test_a_whole_model_is_not_saved_as_h5(name, ending, tmp_path):
    with pytest.raises(ValueError, match=r"saved as a `.keras` file.*Received: .*model\.h"):
        shared(name).save(tmp_path / f"model.{ending}")
    assert not list(tmp_path.iterdir())


# === Quantization ===


def quantize(model, *arguments, **options):
    gc.freeze()  # Keras collects garbage for every weight that it replaces: seconds where there are many objects
    with pytest.warns(UserWarning, match="quantize"):  # of every layer that it leaves as it is
        model.quantize(*arguments, **options)


@functools.cache
def quantized(name, mode):
    model = MAKERS[name][0]()
    quantize(model, mode)
    return model


def modes_of_parts(model):
    return [part.quantization_mode for part in model._flatten_layers() if part.quantization_mode]


@pytest.mark.parametrize(("name", "mode"), [*((name, "int8") for name in ONE_OF_EACH), ("Transformer", "int4")])
def test_a_quantized_model_comes_back_from_its_file_again_and_again(name, mode, tmp_path):
    model = quantized(name, mode)
    expected = outputs(model, name)
    assert modes_of_parts(model)
    for _ in range(2):
        model.save(tmp_path / "model.keras")
        model = keras.saving.load_model(tmp_path / "model.keras")
        check_equal(outputs(model, name), expected)
    assert modes_of_parts(model) == modes_of_parts(quantized(name, mode))


BLOCKS = {
    "MultiHeadAttention": lambda: layers.MultiHeadAttention(2, 3),
    "FeedForward": lambda: layers.FeedForward(13, dtype="mixed_bfloat16"),
    "TransformerEncoderBlock": lambda: layers.TransformerEncoderBlock(2, 13),
    "TransformerDecoderBlock": lambda: layers.TransformerDecoderBlock(2, 13),
}


@pytest.mark.parametrize("block", BLOCKS)
def test_a_quantized_block_in_a_users_model_comes_back_from_its_file(block, rng, tmp_path):
    inputs, layer = keras.Input((None, 6)), BLOCKS[block]()
    is_self_attention = block in ("FeedForward", "TransformerEncoderBlock")
    model = keras.Model(inputs, layer(inputs) if is_self_attention else layer(inputs, inputs))
    quantize(model, "int8")
    model.save(tmp_path / "model.keras")
    array = rng.normal(size=(2, 5, 6)).astype("float32")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    check_equal([loaded.predict(array, verbose=0)], [model.predict(array, verbose=0)])


def test_a_quantized_block_comes_back_inside_of_wrappers(rng, tmp_path):
    model = keras.Sequential([keras.Input((3, 5, 7)), keras.layers.TimeDistributed(layers.FeedForward(13))])
    quantize(model, "int8")
    model.save(tmp_path / "model.keras")
    array = rng.normal(size=(2, 3, 5, 7)).astype("float32")
    check_equal([keras.saving.load_model(tmp_path / "model.keras")(array)], [model(array)])


def test_what_a_file_left_unquantized_can_be_quantized_after_loading(tmp_path):
    name = "Transformer"
    model = MAKERS[name][0](dtype="mixed_bfloat16")
    model.logits_dense.quantize("int8")
    model.save(tmp_path / "model.keras")
    model = keras.saving.load_model(tmp_path / "model.keras")
    assert modes_of_parts(model) == ["int8"]
    quantize(model, "int8", filters=lambda layer: layer.quantization_mode is None)
    assert model.encoder_blocks[0].feed_forward.output_dense.quantization_mode == "int8"


def test_a_map_of_policies_reaches_all_parts_of_a_transformer():
    name = "Transformer"
    config = quantized(name, "int8").get_config()
    policies = keras.dtype_policies.deserialize(config["dtype"])
    assert isinstance(policies, keras.dtype_policies.DTypePolicyMap)
    model = MAKERS[name][0](dtype=policies)
    assert model.logits_dense.quantization_mode == "int8"
    assert modes_of_parts(model) == modes_of_parts(quantized(name, "int8"))


def test_logits_are_float32_whatever_a_map_says():
    policies = keras.dtype_policies.DTypePolicyMap("float32", {"logits": keras.DTypePolicy("mixed_bfloat16")})
    assert MAKERS["Transformer"][0](dtype=policies).logits_dense.compute_dtype == "float32"


def test_a_loss_is_scaled_in_float16_under_a_map_too():
    policies = keras.dtype_policies.DTypePolicyMap("mixed_float16")
    model = MAKERS["Transformer"][0](dtype=policies)
    model.compile("adam", "mse")
    assert isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)


def test_an_activation_quantizer_that_would_not_come_back_is_refused_at_saving(tmp_path):
    model = MAKERS["Transformer"][0]()
    model.logits_dense.quantize(config=keras.quantizers.Int8QuantizationConfig(activation_quantizer=None))
    with pytest.raises(ValueError, match=r"activation quantizer of its own.*`quantize\('int8'\)`"):
        model.save(tmp_path / "model.keras")


# === Random numbers ===

TRAINED = {
    "Transformer": lambda: CASES["Transformer"].make(alignment=alignments.SampledCategorical("gumbel_softmax")),
    "PointerNetwork": lambda: CASES["PointerNetwork"].make(
        glimpse=layers.HardAttention("dot", "straight_through", 0.25)
    ),
    "HierarchicalClassifier": lambda: CASES["HierarchicalClassifier"].make(
        unit_dropout=0.25, alignment=alignments.SampledCategorical("gumbel_softmax")
    ),
    "GlimpseClassifier": CASES["GlimpseClassifier"].make,
    "ReinforceModel": reinforce_model,
}


@pytest.mark.parametrize("name", TRAINED)
def test_training_continued_from_a_file_draws_what_it_would_have_drawn(name, rng, tmp_path):
    model, inputs = TRAINED[name](), inputs_of(name)
    shape = model.compute_output_shape(keras.tree.map_structure(np.shape, inputs))
    labels = rng.integers(1, min(shape[-1], SIZES["S"]), shape[:-1])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, run_eagerly=keras.backend.backend() != "jax")
    model.train_on_batch(inputs, labels)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for each_of_both in (model, loaded):
        each_of_both.train_on_batch(inputs, labels)
    check_equal(loaded.get_weights(), model.get_weights())


def test_weights_of_a_model_with_dropout_load_into_one_without(tmp_path):
    saved, model = CASES["Transformer"].make(), CASES["Transformer"].make(dropout=0.0)
    saved.save_weights(tmp_path / "model.weights.h5")
    model.load_weights(tmp_path / "model.weights.h5")
    convert = keras.ops.convert_to_numpy
    check_equal(map(convert, model.trainable_weights), map(convert, saved.trainable_weights))


def test_every_class_has_a_model_here():
    kinds = [type(shared(name)) for name in ONE_OF_EACH]
    assert sorted(kinds, key=str) == sorted(WRAPPERS | {case.kind for case in MODEL_CASES}, key=str)
