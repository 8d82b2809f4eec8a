"""Models with random choices, trained by REINFORCE under plain `compile` and `fit`."""

import copy
import threading

import keras
from keras import ops

from keras_attention.alignments.estimators import Recorder, is_recording, record_choice
from keras_attention.checks.arguments import check_number
from keras_attention.saving.lookup import config_of
from keras_attention.training.reinforce import baselines, samples
from keras_attention.training.reinforce.credit import CreditedLoss, open_credit
from keras_attention.training.token_means import wrapped
from keras_attention.training.token_model import TokenModel


@keras.saving.register_keras_serializable(package="keras_attention")
class RecordedOutput(keras.layers.Layer):
    """An output as it is; on the way the log-probability that belongs to it goes to the open recorder.

    Args:
        output_name: String, what the model calls the output.
    """

    def __init__(self, output_name, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        self.output_name = output_name

    def build(self, inputs_shape):
        self.built = True

    def call(self, inputs):
        output, log_prob = inputs
        record_choice(log_prob)
        return output

    def compute_output_spec(self, inputs):
        return keras.KerasTensor(inputs[0].shape, dtype=inputs[0].dtype)

    def compute_mask(self, inputs, previous_mask):
        return previous_mask[0] if isinstance(previous_mask, list | tuple) else previous_mask

    def get_config(self):
        return {**super().get_config(), "output_name": self.output_name}


class Rows(keras.layers.Layer):
    """Some rows of a tensor, with their mask: `[tensor (B, ...), rows (B',)]` -> `(B', ...)`."""

    def __init__(self):
        super().__init__(autocast=False)
        self.supports_masking = True
        self.built = True

    def call(self, inputs):
        tensor, rows = inputs
        return ops.take(tensor, rows, axis=0)

    def compute_mask(self, inputs, previous_mask):
        mask = previous_mask[0] if isinstance(previous_mask, list | tuple) else previous_mask
        return None if mask is None else ops.take(mask, inputs[1], axis=0)


def check_entropy_weight(weight):
    return check_number("entropy_weight", weight, "a finite number, 0.0 for none")


def repeat_rows(nest, count):
    """`(B, ...)` -> `(B · count, ...)` in all tensors of a nest: each row, `count` times."""
    if count == 1:
        return nest
    return keras.tree.map_structure(lambda leaf: None if leaf is None else ops.repeat(leaf, count, axis=0), nest)


def record_output(inputs, outputs, log_probs):
    """The outputs of a functional graph, the first of which records `log_probs` whenever it is computed."""
    name = keras.Model(inputs, outputs).output_names[0]
    first, *others = keras.tree.flatten(outputs)
    return keras.tree.pack_sequence_as(outputs, [RecordedOutput(name)([first, log_probs]), *others])


@keras.saving.register_keras_serializable(package="keras_attention")
class ReinforceModel(TokenModel):
    """A functional model whose random choices learn by REINFORCE.

        loss     = as compiled: the reported number of a batch is unchanged
        gradient = gradient of loss + (loss - baseline) · gradient of log p(choices)

    for each element of each loss, so that Keras' masks, sample weights and reduction apply to both terms. The
    estimate is unbiased for the gradient of the expected loss. `log p` is the sum over all choices of an example, in
    all layers of the graph, nested ones too (`HardAttention`, the alignments "sampled" and `Sampled`): a choice is
    credited with everything that the example costs, also with tokens before it. Regularizers and the losses of `add_loss`
    are trained as always, but choices are not credited with them.

    In the paper loss is -r, baseline is b, and `gradient of log p` is the characteristic eligibility.

    `ReinforceModel.from_config(model.get_config())` is a copy with fresh weights. `keras.models.clone_model(model)` is one of
    the graph alone: a `keras.Model` without baseline and samples, whose choices do not learn.

    Args:
        inputs, outputs: Symbolic tensors, as of `keras.Model`. A model written as a subclass takes part as a layer:
            `ReinforceModel(inputs, my_model(inputs))`.
        baseline: "moving_average", "leave_one_out", "learned", "per_step", `None` or a `training.Baseline`.
        num_samples: Integer M. In training every example is repeated M times, each with choices of its own: outputs then have
            M adjacent rows for each example. Metrics see the first. Or `training.Enumeration(count)`: each joint choice
            once, weighted by its probability, which is exact and needs no baseline; metrics see the most probable.
        entropy_weight: Number; `entropy_weight · entropy of the choices` is taken off the objective (not off the reported
            loss) for each element of each loss, which keeps choices from becoming certain too soon. The entropy is that
            which layers record; `log_probs` has none.
        log_probs: Symbolic tensor of the graph, `(B, ...)`: log-probability of choices that a layer makes in a compiled
            loop. (Tensors recorded inside such a loop can't be read outside: the layer opens a `training.Recorder` there,
            carries the log-probability on in the loop's state and returns it.) Or `None`. It becomes part of the graph, so
            that it isn't needed again on loading.

    Call arguments:
        inputs: As those of the graph.
        training: Boolean, whether choices are made at random; otherwise the most probable ones are made.

    Returns:
        The outputs of the graph.

    Raises:
        ValueError: If a loss returns a scalar, which doesn't say what an example cost; if arguments don't fit together.

    Example:
        >>> query, value = keras.Input((1, 5)), keras.Input((None, 5))
        >>> context = HardAttention("bilinear")(query, value)
        >>> model = ReinforceModel([query, value], keras.layers.Dense(3)(context))
        >>> model.compile(optimizer="adam", loss="mse")
        >>> data = [np.ones((2, 1, 5)), np.ones((2, 7, 5))]
        >>> history = model.fit(data, np.zeros((2, 1, 3)), verbose=0)
        >>> model.predict(data, verbose=0).shape
        (2, 1, 3)

    References:
        Williams, 1992, "Simple statistical gradient-following algorithms for connectionist reinforcement learning".
        Mnih, Heess, Graves and Kavukcuoglu, 2014, section 3, arXiv:1406.6247.
        Xu et al., 2015, section 4.1, arXiv:1502.03044.
    """

    def __init__(
        self,
        inputs,
        outputs,
        baseline="moving_average",
        num_samples=1,
        entropy_weight=0.0,
        log_probs=None,
        **kwargs,
    ):
        outputs = outputs if log_probs is None else record_output(inputs, outputs, log_probs)
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)
        recorded = {layer.name: layer.output_name for layer in self.layers if isinstance(layer, RecordedOutput)}
        self.output_names = [recorded.get(name, name) for name in self.output_names]
        self.baseline = baselines.get(baseline)
        self.samples = samples.get(num_samples)
        self.entropy_weight = check_entropy_weight(entropy_weight)
        self.baseline.prepare(self.input, len(self.outputs), self.samples.count)
        self.rows = Rows()
        # Keras calls the model and computes its loss in two steps; each replica takes them in a thread of its own.
        self._step = threading.local()

    def train_step(self, *args, **kwargs):
        self._step.is_own = True
        try:
            return super().train_step(*args, **kwargs)
        finally:
            self._step.is_own = False

    def call(self, inputs, training=None, mask=None):
        # As a layer of another model, which computes its own loss, it makes its choices once.
        is_own = getattr(self._step, "is_own", False)
        self._step.is_training = is_own and bool(training) and not is_recording()
        if not self._step.is_training:
            return super().call(inputs, training=training, mask=mask)
        inputs, mask = repeat_rows((inputs, mask), self.samples.count)
        with Recorder(self.samples.numbers(ops.shape(keras.tree.flatten(inputs)[0])[0])) as recorder:
            outputs = super().call(inputs, training=training, mask=mask)
        self.samples.check(recorder.count)
        batch_size = ops.shape(keras.tree.flatten(outputs)[0])[0]
        self._step.log_prob, self._step.entropy = recorder.log_prob(batch_size), recorder.entropy(batch_size)
        self._step.predicted = recorder.predicted(batch_size)
        return outputs

    def objective(self, x, y, y_pred, sample_weight, training):
        if not (training and self._is_training):
            return super().objective(x, y, y_pred, sample_weight, training)
        step = vars(self._step)
        log_prob, entropy, predictions = (step.pop(name, None) for name in ("log_prob", "entropy", "predicted"))
        y, sample_weight = repeat_rows((y, sample_weight), self.samples.count)
        if log_prob is None:
            return super().objective(x, y, y_pred, sample_weight, training)
        self._step.shown = self.samples.shown(log_prob)
        if not self.baseline.reads_choices:
            predictions = repeat_rows(self.baseline.predict(x), self.samples.count)
        entropy = ops.zeros_like(log_prob) if entropy is None else entropy
        with open_credit(
            self.samples.credit(log_prob, entropy, self.entropy_weight, self.baseline, predictions)
        ) as credit:
            loss = super().objective(x, y, y_pred, sample_weight, training)
        if not credit.measures:
            raise ValueError(
                "Choices learn from the losses given to `compile`. Received none. Pass `loss=`: what `add_loss` adds says "
                "nothing about single examples."
            )
        self.baseline.update(credit.measures)
        return loss

    def shown(self, y_pred):
        if not self._is_training or self.samples.count == 1:
            return y_pred
        shown = vars(self._step).pop("shown", None)
        if shown is None:  # nothing was chosen
            shown = samples.MonteCarlo(self.samples.count).shown(keras.tree.flatten(y_pred)[0])
        return keras.tree.map_structure(lambda tensor: self.rows([tensor, shown]), y_pred)

    @property
    def _is_training(self):
        return getattr(self._step, "is_training", False)

    def wrapped_loss(self, loss):
        return wrapped(loss, CreditedLoss)

    def get_config(self):
        graph = keras.Model(self.input, self.output, name=self.name)
        return {
            **graph.get_config(),
            "trainable": self.trainable,
            "baseline": config_of(self.baseline),
            "num_samples": self.samples.config(),
            "entropy_weight": self.entropy_weight,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        if "output_layers" not in config:  # a subclass with a constructor of its own
            return cls(**config)
        config = copy.deepcopy(config)  # Keras takes the configs of some layers apart
        options = {name: config.pop(name) for name in ("trainable", "baseline", "num_samples", "entropy_weight")}
        graph = keras.Model.from_config(config, custom_objects)
        return cls(graph.input, graph.output, name=graph.name, **options)
