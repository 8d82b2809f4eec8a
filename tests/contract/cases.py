"""One line for each public class: how to make it and how to call it.

The contract tests run every check on every line and fail when a public class has none.
"""

import dataclasses
import inspect

import keras
import numpy as np
import pytest

from keras_attention import alignments, layers, models, positions, scores, training

# Sizes of the axes, all different. W, the width of a Transformer block, is N heads of size two. Beside them the axis P,
# the choices of a pointer network: the end and S positions. Y are the two axes of an image.
SIZES = {"B": 2, "T": 3, "S": 5, "D": 7, "E": 11, "F": 23, "N": 17, "W": 34, "V": 19, "Y": 2}
OTHER_SIZES = {**SIZES, "B": 3, "T": 8, "S": 2}
UNKNOWN_SIZES = {**SIZES, "B": None, "T": None, "S": None}

# Base classes, which users subclass and nothing calls, and the recorder, which no model holds.
INTERFACES = {
    scores.Score,
    positions.PositionScheme,
    alignments.Alignment,
    alignments.Estimator,
    training.Baseline,
    training.Recorder,
}

# Models around a graph that the user gives; tests/training/test_reinforce.py asks of them what is asked here.
WRAPPERS = {training.ReinforceModel}

PACKAGES = (scores, positions, alignments, layers, models, training)


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """How to make and call one public class. Axes are letters of `SIZES`.

    Attributes:
        kind: The class.
        options: Arguments of its constructor.
        inputs: Call argument -> its axes. Empty for what is no layer.
        output: Axes of the output.
        weights: Axes of the attention weights, in the structure in which the layer returns them.
        masks: Call argument -> axes, after the batch, of the positions that it masks. An argument of `vocabularies`
            masks itself: its zeros are padding.
        vocabularies: Argument that holds integer ids -> how many; or the axis of which they are positions, from 1 on.
        masked_by: The argument whose implicit mask the output carries on.
        causal: The arguments whose positions come in order; a later one must not change an earlier output.
        is_context: Whether the output is zero where nothing may be attended.
        without_gradient: The arguments that get no gradient, because a hard choice lets none through, and the weights, by
            a part of their path, that get none from the output.
        output_type: Type of the output where it is not the compute type.
        right_padded: The axes whose padding stands on the right by definition: behind the end of a pointer's answer.
        learning: Options of a call that has gradients: in training where inference takes the mode.
        variant: Tells two lines of one class apart.
    """

    kind: type
    options: dict = dataclasses.field(default_factory=dict)
    inputs: dict = dataclasses.field(default_factory=dict)
    output: str = ""
    weights: str | dict | None = None
    masks: dict = dataclasses.field(default_factory=dict)
    vocabularies: dict = dataclasses.field(default_factory=dict)
    masked_by: str | None = None
    causal: tuple = ()
    is_context: bool = False
    without_gradient: tuple = ()
    output_type: str | None = None
    right_padded: str = ""
    learning: dict = dataclasses.field(default_factory=dict)
    variant: str = ""

    def __str__(self):
        return f"{self.kind.__name__}-{self.variant}" if self.variant else self.kind.__name__

    @property
    def self_weights(self):
        """Axes of the weights of self-attention where the layer has several kinds, of the scores where it returns those."""
        return self.weights["self"] if isinstance(self.weights, dict) else self.weights or self.output

    def make(self, **options):
        return self.kind(**{**self.options, **options})

    def arrays(self, sizes=SIZES, seed=7):
        """Random inputs, real at every position."""
        rng = np.random.default_rng(seed)
        return {
            name: rng.integers(*self.id_range(name, sizes), shape_of(axes, sizes), dtype="int32", endpoint=True)
            if name in self.vocabularies
            else rng.normal(size=shape_of(axes, sizes)).astype("float32")
            for name, axes in self.inputs.items()
        }

    def id_range(self, name, sizes):
        """The least and the largest id of an argument, without the special ones."""
        vocabulary = self.vocabularies[name]
        return (min(1, sizes[vocabulary]), sizes[vocabulary]) if vocabulary in sizes else (4, vocabulary - 1)

    def full_masks(self, sizes=SIZES):
        """Masks that keep everything."""
        return {name: np.ones(shape_of("B" + axes, sizes), "bool") for name, axes in self.masks.items()}

    def padding_masks(self, sizes=SIZES):
        """Masks that drop the last position in the first row of the batch and the last but one in the others."""
        masks = self.full_masks(sizes)
        for mask in masks.values():
            mask[0, ..., -1] = False
            mask[1:, ..., -2] = False
        return masks

    def masked(self, arrays, masks):
        """The call arguments: `arrays` under `masks`."""
        arguments = dict(arrays)
        for name, mask in masks.items():
            arguments[name] = np.where(mask, arrays[name], 0).astype("int32") if name in self.vocabularies else mask
        return arguments

    def fill(self, arrays, name, mask, content):
        """`arrays` with `content`, one number or one for each row, at the positions that the mask called `name` drops."""
        axes = self.masks[name]
        return {
            argument: np.where(
                mask.reshape(mask.shape + (1,) * (array.ndim - mask.ndim)),
                array,
                np.reshape(content, (-1,) + (1,) * (array.ndim - 1)),
            )
            if axes in self.inputs[argument]
            else array
            for argument, array in arrays.items()
        }

    def positions(self, arrays, name, mask):
        """Of each array the positions of which the mask called `name` speaks, where `mask` is True."""
        return [arrays[argument][mask] for argument, axes in self.inputs.items() if self.masks[name] in axes]

    @staticmethod
    def argument_of(mask_name):
        """The argument whose implicit mask arrives under `mask_name`."""
        return "inputs" if mask_name == "mask" else mask_name.removesuffix("_mask")

    def real_positions(self, masks):
        """Mask that broadcasts to the output: True where the output belongs to a real position."""
        real = np.ones((1,) * len(self.output), "bool")
        for name, mask in masks.items():
            axes = "B" + self.masks[name]
            if set(axes) <= set(self.output):
                real = real & mask.reshape(
                    [mask.shape[axes.index(axis)] if axis in axes else 1 for axis in self.output]
                )
        return real


def shape_of(axes, sizes=SIZES):
    choices = None if sizes["S"] is None else sizes["S"] + 1
    return tuple({**sizes, "P": choices}[axis] for axis in axes)


_ATTENTION = {"masks": {"query_mask": "T", "value_mask": "S"}, "masked_by": "query", "causal": ("query", "value")}
_POINTER = {
    "inputs": {"query": "BTD", "value": "BSE"},
    "output": "BTS",
    "output_type": "float32",
    "masks": _ATTENTION["masks"],
    "masked_by": "query",
}
_SCORE = {"inputs": {"query": "BTD", "key": "BSD"}, "output": "BTS", "output_type": "float32"}
_WIDE_SCORE = {**_SCORE, "inputs": {"query": "BTD", "key": "BSE"}}
_ALIGNMENT = {
    "inputs": {"scores": "BTS"},
    "output": "BTS",
    "masks": {"mask": "TS"},
    "is_context": True,
    "output_type": "float32",
}
_POSITIONWISE = {"inputs": {"inputs": "BTD"}, "output": "BTD", "masked_by": "inputs"}
_PIXELWISE = {"inputs": {"inputs": "BTSW"}, "output": "BTSW", "masks": {"mask": "TS"}, "masked_by": "inputs"}
_ENCODER_BLOCK = {
    "inputs": {"inputs": "BTW"},
    "output": "BTW",
    "weights": "BNTT",
    "masks": {"mask": "T"},
    "masked_by": "inputs",
    "causal": ("inputs",),
}
_DECODER_BLOCK = {
    "inputs": {"target": "BTW", "source": "BSE"},
    "output": "BTW",
    "weights": {"self": "BNTT", "cross": "BNTS"},
    "masks": {"target_mask": "T", "source_mask": "S"},
    "masked_by": "target",
    "causal": ("target",),
}
_TRANSFORMER = {
    "inputs": {"source": "BS", "target": "BT"},
    "output": "BTV",
    "masks": {"source": "S", "target": "T"},
    "masked_by": "target",
    "causal": ("target",),
    "output_type": "float32",
}
_POINTER_NETWORK = {
    "inputs": {"source": "BSD", "target": "BT"},
    "output": "BTP",
    "masks": {"source_mask": "S", "target": "T"},
    "vocabularies": {"target": "S"},
    "masked_by": "target",
    "causal": ("target",),
    "output_type": "float32",
    "right_padded": "T",
}
# As its config, of which every call of `make` gets a layer of its own.
_GLIMPSE = keras.saving.serialize_keras_object(layers.SoftAttention("concat"))
_CONVOLUTION = keras.saving.serialize_keras_object(keras.layers.Conv1D(11, 3, padding="same"))
_AVERAGE_OF_SEGMENT = keras.saving.serialize_keras_object(alignments.LinearChain(normalize="l1"))  # sums to one
_BILINEAR = keras.saving.serialize_keras_object(scores.BilinearScore())
_ENTMAX = keras.saving.serialize_keras_object(alignments.Entmax(1.25))
# Its regularizer trains it where no choice does.
_CHAIN = keras.saving.serialize_keras_object(
    alignments.LinearChain(pairwise_initializer="identity", pairwise_regularizer="l2")
)

CASES = (
    Case(scores.DotScore, **_SCORE),
    Case(scores.ScaledDotScore, **_SCORE),
    Case(scores.BilinearScore, {"kernel_initializer": "he_normal"}, **_WIDE_SCORE),
    Case(scores.ConcatScore, {"units": 13}, **_WIDE_SCORE),
    Case(scores.AdditiveScore, {"units": 13}, **_WIDE_SCORE),
    Case(scores.SoftCap, {"score": _BILINEAR, "cap": 2.0}, **_WIDE_SCORE),
    Case(alignments.Sparsemax, **_ALIGNMENT),
    Case(alignments.Entmax, {"alpha": 1.25}, **_ALIGNMENT),
    Case(alignments.AdaptiveEntmax, {"initial_alpha": 1.25}, **_ALIGNMENT),
    Case(alignments.Bernoulli, {"normalize": "l1", "scale": 2.0}, **_ALIGNMENT),
    Case(alignments.LinearChain, {"pairwise_regularizer": "l2", "scale": 0.5}, **_ALIGNMENT),
    Case(alignments.Monotonic, {"initial_offset": 0.5, "seed": 5}, learning={"training": True}, **_ALIGNMENT),
    Case(
        alignments.DependencyTree,
        {"single_root": False},
        **{**_ALIGNMENT, "inputs": {"scores": "BTT"}, "output": "BTT", "masks": {"mask": "TT"}},
    ),
    Case(
        alignments.Categorical,
        inputs={"scores": "BTS"},
        output="BTS",
        masks={"mask": "TS"},
        is_context=True,
        output_type="float32",
    ),
    Case(alignments.AttentionSink, {"alignment": _ENTMAX}, **_ALIGNMENT),
    Case(
        alignments.Sampled,
        {"alignment": _CHAIN, "seed": 5},
        without_gradient=("scores", "pairwise"),
        **_ALIGNMENT,
    ),
    Case(
        alignments.SampledCategorical,
        {"seed": 5},
        inputs={"scores": "BTS"},
        output="BTS",
        masks={"mask": "TS"},
        is_context=True,
        output_type="float32",
        without_gradient=("scores",),
    ),
    Case(positions.ALiBi),
    Case(positions.Rotary, {"rotary_dim": 4, "interleaved": True, "grid": [3, 5]}),
    Case(positions.ShawRelative, {"max_distance": 3, "use_values": False, "value_dim": 5}),
    Case(positions.SlidingWindow, {"width": 2}),
    Case(positions.T5Bias, {"num_buckets": 6, "bidirectional": False, "embeddings_initializer": "zeros"}),
    Case(positions.TransformerXLRelative, {"sinusoid_dim": 6, "max_wavelength": 500.0}),
    Case(alignments.Argmax),
    Case(alignments.Reinforce),
    Case(alignments.GumbelSoftmax, {"temperature": 0.5}),
    Case(alignments.StraightThrough, {"temperature": 0.5}),
    Case(
        layers.HardAttention,
        {"selection": "straight_through", "dropout": 0.25, "seed": 5},
        inputs={"query": "BTD", "value": "BSE", "key": "BSD"},
        output="BTE",
        weights="BTS",
        is_context=True,
        without_gradient=("query", "key"),
        **{**_ATTENTION, "masks": {**_ATTENTION["masks"], "key_mask": "S"}, "causal": ("query", "value", "key")},
    ),
    Case(
        layers.SoftAttention,
        inputs={"query": "BTD", "value": "BSE", "key": "BSD"},
        output="BTE",
        weights="BTS",
        is_context=True,
        **{**_ATTENTION, "masks": {**_ATTENTION["masks"], "key_mask": "S"}, "causal": ("query", "value", "key")},
    ),
    Case(
        layers.SoftAttention,
        {"score": "additive", "dropout": 0.25, "seed": 5},
        inputs={"query": "BTD", "value": "BSE"},
        output="BTE",
        weights="BTS",
        is_context=True,
        variant="additive",
        **_ATTENTION,
    ),
    Case(
        layers.StructuredAttention,
        {"alignment": _AVERAGE_OF_SEGMENT},
        inputs={"query": "BTD", "value": "BSE", "key": "BSD"},
        output="BTE",
        weights="BTS",
        is_context=True,
        **{**_ATTENTION, "masks": {**_ATTENTION["masks"], "key_mask": "S"}, "causal": ("query", "value", "key")},
    ),
    Case(
        layers.MultiHeadAttention,
        {"num_heads": 17, "key_dim": 3},
        inputs={"query": "BTD", "value": "BSE"},
        output="BTD",
        weights="BNTS",
        is_context=True,
        **_ATTENTION,
    ),
    Case(
        layers.MultiHeadAttention,
        {"num_heads": 17, "key_dim": 3, "value_dim": 5, "output_shape": 23, "use_gate": True, "score": "concat"},
        inputs={"query": "BTD", "value": "BSE", "key": "BSD"},
        output="BTF",
        weights="BNTS",
        is_context=True,
        variant="gate-concat",
        **{**_ATTENTION, "causal": ("query", "value", "key")},
    ),
    Case(
        layers.MultiHeadAttention,
        {"num_heads": 34, "key_dim": 3, "num_key_value_heads": 2, "use_query_key_norm": True},
        inputs={"query": "BTD", "value": "BSE"},
        output="BTD",
        weights="BWTS",
        is_context=True,
        variant="grouped",
        **_ATTENTION,
    ),
    Case(
        layers.KeyValueAttention,
        {"score": "bilinear", "dropout": 0.25, "seed": 5},
        inputs={"query": "BTD", "value": "BSE", "key": "BSN"},
        output="BTE",
        weights="BTS",
        is_context=True,
        **{**_ATTENTION, "masks": {**_ATTENTION["masks"], "key_mask": "S"}, "causal": ("query", "value", "key")},
    ),
    Case(
        layers.KeyValueMemory,
        {"num_hops": SIZES["Y"], "score": "bilinear"},
        inputs={"query": "BTD", "value": "BSD", "key": "BSE"},
        output="BTD",
        weights="BYTS",
        **{**_ATTENTION, "masks": {**_ATTENTION["masks"], "key_mask": "S"}, "causal": ("query", "value", "key")},
    ),
    Case(
        layers.KeyValueSplitAttention,
        {"window": 2, "num_parts": 2},
        inputs={"inputs": "BSW"},
        output="BSN",
        masks={"mask": "S"},
        masked_by="inputs",
        causal=("inputs",),
    ),
    Case(layers.Pointer, **_POINTER),
    Case(
        layers.Pointer,
        {"score": "bilinear", "tanh_clipping": 5.0, "glimpse": _GLIMPSE},
        variant="clipped-glimpse",
        **_POINTER,
    ),
    Case(
        layers.AttentionPooling,
        {"units": 13},
        inputs={"inputs": "BSD"},
        output="BD",
        weights="BS",
        masks={"mask": "S"},
        is_context=True,
    ),
    Case(
        layers.AttentionPooling,
        {"score": "bilinear"},
        inputs={"inputs": "BSD"},
        output="BD",
        weights="BS",
        masks={"mask": "S"},
        is_context=True,
        variant="bilinear",
    ),
    Case(
        layers.HierarchicalAttention,
        {"encoders": {"word": _CONVOLUTION}, "units": 13, "unit_dropout": {"word": 0.25}, "seed": 5},
        inputs={"inputs": "BTSD"},
        output="BE",
        weights={"word": "BTS", "sentence": "BT"},
        masks={"mask": "TS"},
        is_context=True,
    ),
    Case(
        layers.GlimpseSensor,
        {"size": 11, "num_scales": 2, "scale_factor": 3},
        inputs={"images": "BSTN", "locations": "BY"},
        output="BEEW",
        without_gradient=("locations",),
    ),
    Case(layers.FeedForward, {"intermediate_dim": 13, "activation": "gelu"}, **_POSITIONWISE),
    Case(layers.SinusoidalPositionEncoding, {"max_wavelength": 500.0}, **_POSITIONWISE, masks={"mask": "T"}),
    Case(layers.LearnedPositionEmbedding, {"max_length": 29}, **_POSITIONWISE, masks={"mask": "T"}),
    Case(layers.SinusoidalPositionEncoding2D, {"max_wavelength": 500.0}, **_PIXELWISE),
    Case(layers.LearnedPositionEmbedding2D, {"max_height": 29, "max_width": 31}, **_PIXELWISE),
    Case(
        layers.TokenEmbedding,
        {"vocabulary_size": 19, "embedding_dim": 7},
        inputs={"inputs": "BT"},
        output="BTD",
        masks={"inputs": "T"},
        vocabularies={"inputs": 19},
        masked_by="inputs",
    ),
    Case(layers.TransformerEncoderBlock, {"num_heads": 17, "intermediate_dim": 13}, **_ENCODER_BLOCK),
    Case(
        layers.TransformerEncoderBlock,
        {"num_heads": 17, "intermediate_dim": 13, "normalize_first": True, "score": "bilinear", "activation": "gelu"},
        variant="first-bilinear",
        **_ENCODER_BLOCK,
    ),
    Case(layers.TransformerDecoderBlock, {"num_heads": 17, "intermediate_dim": 13}, **_DECODER_BLOCK),
    Case(
        layers.TransformerDecoderBlock,
        {"num_heads": 17, "intermediate_dim": 13, "normalize_first": True, "score": "additive", "seed": 5},
        variant="first-additive",
        **_DECODER_BLOCK,
    ),
    Case(
        models.Transformer,
        {
            "source_vocabulary_size": 29,
            "target_vocabulary_size": 19,
            "num_layers": 1,
            "num_heads": 17,
            "hidden_dim": 34,
            "intermediate_dim": 13,
            "dropout": 0.25,
        },
        vocabularies={"source": 29, "target": 19},
        **_TRANSFORMER,
    ),
    Case(
        models.Transformer,
        {
            "source_vocabulary_size": 19,
            "num_layers": 1,
            "num_heads": 17,
            "hidden_dim": 34,
            "intermediate_dim": 13,
            "normalize_first": True,
            "tie_embeddings": True,
            "score": "additive",
        },
        vocabularies={"source": 19, "target": 19},
        variant="first-tied-additive",
        **_TRANSFORMER,
    ),
    Case(models.PointerNetwork, {"feature_dim": 7, "hidden_dim": 13, "dropout": 0.25}, **_POINTER_NETWORK),
    Case(
        models.PointerNetwork,
        {"feature_dim": 7, "encoder": "transformer", "decoder": "gru", "hidden_dim": 16, "tanh_clipping": 5.0},
        variant="transformer-gru",
        **_POINTER_NETWORK,
    ),
    Case(
        models.GlimpseClassifier,
        {
            "num_classes": 19,
            "image_shape": (None, None, 7),
            "num_glimpses": 3,
            "glimpse_size": 3,
            "num_scales": 2,
            "hidden_dim": 13,
            "seed": 5,
        },
        inputs={"images": "BSTD"},
        output="BV",
        output_type="float32",
        without_gradient=("prediction",),
    ),
    Case(
        models.HierarchicalClassifier,
        {
            "vocabulary_size": 29,
            "num_classes": 19,
            "embedding_dim": 7,
            "encoder": {"word": "gru"},
            "hidden_dim": 14,
            "dropout": 0.25,
        },
        inputs={"ids": "BTS"},
        output="BV",
        masks={"ids": "TS"},
        vocabularies={"ids": 29},
        output_type="float32",
    ),
    Case(training.PerStepBaseline),
    Case(training.LearnedBaseline, {"network": None}),
    Case(training.LeaveOneOut),
    Case(training.Enumeration, {"count": 3}),
    Case(training.MovingAverage, {"decay": 0.75, "num_losses": 3}),
    Case(training.NoBaseline),
    Case(training.SmoothedCrossentropy, {"label_smoothing": 0.1, "reduction": "none", "name": "loss"}),
    Case(training.TokenAccuracy, {"name": "tokens"}),
    Case(training.SequenceAccuracy, {"name": "sequences"}),
    Case(training.WarmupInverseSquareRoot, {"hidden_dim": 34, "warmup_steps": 13, "scale": 0.5}),
)

# Other ways to count positions, of which only padding is asked.
POSITION_CASES = (
    Case(
        layers.MultiHeadAttention,
        {"num_heads": 17, "key_dim": 3, "sliding_window": 2},
        inputs={"query": "BTD", "value": "BSE"},
        output="BTD",
        weights="BNTS",
        is_context=True,
        variant="window",
        **_ATTENTION,
    ),
    Case(
        layers.TransformerDecoderBlock,
        {"num_heads": 17, "intermediate_dim": 13, "position": "transformer_xl"},
        variant="transformer_xl",
        **_DECODER_BLOCK,
    ),
    Case(
        models.PointerNetwork,
        {"feature_dim": 7, "encoder": _CONVOLUTION, "hidden_dim": 13, "constraint": "permutation"},
        variant="convolution",
        **_POINTER_NETWORK,
    ),
    Case(
        models.HierarchicalClassifier,
        {
            "vocabulary_size": 29,
            "num_classes": 19,
            "embedding_dim": 7,
            "encoder": ["transformer", "convolution"],
            "hidden_dim": 8,
        },
        inputs={"ids": "BTS"},
        output="BV",
        masks={"ids": "TS"},
        vocabularies={"ids": 29},
        output_type="float32",
        variant="transformer-convolution",
    ),
)

LAYER_CASES = tuple(case for case in CASES if case.inputs)
ONE_OF_EACH = tuple(case for case in LAYER_CASES if not case.variant)
MASKED_CASES = tuple(case for case in LAYER_CASES if case.masks)
WEIGHTS_CASES = tuple(case for case in LAYER_CASES if case.weights)
CAUSAL_CASES = tuple(case for case in LAYER_CASES if case.causal)
DROPOUT_CASES = tuple(case for case in LAYER_CASES if "dropout" in inspect.signature(case.kind).parameters)


def each(cases):
    """Runs a test once for each of the cases."""
    return pytest.mark.parametrize("case", list(cases), ids=str)
