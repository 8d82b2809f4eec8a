"""Dates of 15 locales to ISO 8601 with a small Transformer: data, model, training, decoding, export, a served answer.

    python examples/translate_dates.py                # minutes on two cores
    python examples/translate_dates.py --smoke        # the same path in seconds, learning nothing

"mardi 3 mars 2015" -> "2015-03-03". Everything is written into the folder that `--output` names.
"""

import collections
import subprocess
import sys
import time

from command_line import BEGAN, example_parser, jit_compile, run, set_up, strategy_scope
from quiet import data_in

# isort: split

import keras
import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds

from keras_attention import serving
from keras_attention.data import CharacterTokenizer, evaluation_batches, training_batches
from keras_attention.models import Transformer
from keras_attention.tokens import END, START
from keras_attention.training import SequenceAccuracy, SmoothedCrossentropy, TokenAccuracy
from keras_attention.visualization import plot_attention_grid

REQUESTS = ["mardi 3 mars 2015", "2015年3月3日", "Tuesday, March 3, 2015", "3. Februar 1999", "03.03.2015"]
LENGTH = 11  # "2015-03-03" and the end symbol

SERVE = """
import sys
sys.modules["keras"] = sys.modules["keras_attention"] = None  # from here on neither can be imported
import tensorflow as tf
served = tf.saved_model.load(sys.argv[1]).signatures["serving_default"](text=tf.constant(sys.argv[2:]))
for request, text, score in zip(sys.argv[2:], served["text"].numpy(), served["scores"].numpy()):
    print(f"  {request!r:28} -> {text.decode()}   (log-probability {score:.3f})")
"""


def main(argv=None):
    arguments = set_up(example_parser(__doc__, output="dates", epochs=4, batch_size=128), argv)
    output = arguments.output

    # === Data ===
    name = "localized_dates/tiny" if arguments.smoke else "localized_dates"
    with data_in(output / "data"):
        examples = tfds.load(
            name, data_dir=output / "data", batch_size=-1
        )  # split -> feature -> one tensor of all texts
    pairs = {
        split: tf.data.Dataset.from_tensor_slices((features["text"], features["date"]))
        for split, features in examples.items()
    }
    source_tokenizer = CharacterTokenizer.train([examples["train"]["text"]])
    target_tokenizer = CharacterTokenizer.train([examples["train"]["date"]])
    source_tokenizer.save(output / "source_tokenizer.json")
    target_tokenizer.save(output / "target_tokenizer.json")
    tokenizers = (source_tokenizer, target_tokenizer)
    train = training_batches(pairs["train"], *tokenizers, batch_size=arguments.batch_size, seed=1)
    validation = evaluation_batches(pairs["validation"], *tokenizers, batch_size=500)

    # === Model ===
    epochs = 1 if arguments.smoke else arguments.epochs
    warm_up = min(300, len(train))
    learning_rate = keras.optimizers.schedules.CosineDecay(
        0.0, decay_steps=epochs * len(train), warmup_target=4e-3, warmup_steps=warm_up
    )
    with strategy_scope(arguments):
        model = Transformer(
            source_tokenizer.vocabulary_size,
            target_tokenizer.vocabulary_size,
            num_layers=1 if arguments.smoke else 2,
            num_heads=4,
            hidden_dim=64,
            intermediate_dim=256,
            dropout=0.0,
            normalize_first=True,
            seed=1,
        )
        model.compile(
            optimizer=keras.optimizers.Adam(learning_rate, beta_2=0.98),
            loss=SmoothedCrossentropy(label_smoothing=0.0),
            metrics=[TokenAccuracy(), SequenceAccuracy()],
            jit_compile=jit_compile(arguments),
        )

    # === Train ===
    model.fit(train, validation_data=validation, epochs=epochs, shuffle=False)  # the batches come shuffled
    model.save(output / "model.keras")

    # === Use ===
    print_exact_match(model, examples["test"], *tokenizers)
    save_alignment(model, REQUESTS[0], "2015-03-03", *tokenizers, output / "alignment.png")

    # === Export, and serve without Keras ===
    version = serving.export(model, output / "served", *tokenizers, max_length=LENGTH)
    print("Answers of the SavedModel, in a process of its own without Keras:")
    command = [sys.executable, "-X", "utf8", "-c", SERVE, version, *REQUESTS]
    served = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    print(served.stdout, end="")
    if served.returncode:
        sys.exit(served.stderr)

    print(f"From the start to the served answer: {time.monotonic() - BEGAN:.0f} s. Here it all lies:")
    for what, where in (
        ("data set", "data"),
        ("model", "model.keras"),
        ("tokenisers", "source_tokenizer.json, target_tokenizer.json"),
        ("alignment", "alignment.png"),
    ):
        print(f"  {what:10} {output / where}")
    print(f"  SavedModel {version}")


def print_exact_match(model, examples, source_tokenizer, target_tokenizer):
    """Greedy decoding of every text; the share of exactly right dates, by locale and in all."""
    right = collections.defaultdict(list)
    for batch in tf.data.Dataset.from_tensor_slices(examples).batch(500):
        source = source_tokenizer.tokenize(batch["text"]).to_tensor()
        answers = target_tokenizer.detokenize(model.generate(source, max_length=LENGTH))
        for locale, is_right in zip(batch["locale"].numpy(), (answers == batch["date"]).numpy(), strict=True):
            right[locale.decode()].append(is_right)
    print("Exact match on held-out dates:")
    for locale, results in sorted(right.items()):
        print(f"  {locale:6} {np.mean(results):7.2%} of {len(results)}")
    everything = np.concatenate(list(right.values()))
    print(f"  all    {everything.mean():7.2%} of {len(everything)}")


def save_alignment(model, text, date, source_tokenizer, target_tokenizer, path):
    """Heat maps of the attention of the decoder's layers to the source, one for each head."""
    source = source_tokenizer.tokenize([text]).to_tensor()
    target = tf.concat([[[START]], target_tokenizer.tokenize([date]).to_tensor()], axis=1)
    weights = model.attention_weights({"source": source, "target": target})["decoder_cross"]
    grid = np.stack([keras.ops.convert_to_numpy(layer[0]) for layer in weights])  # (layers, N, T, S)
    written = [*date, target_tokenizer.vocabulary[END]]
    plot_attention_grid(grid, query_tokens=written, key_tokens=list(text)).savefig(path, dpi=100)


if __name__ == "__main__":
    run(main)
