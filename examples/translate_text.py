"""Translation from two text files with a Transformer: subwords, training, BLEU, beam search, a heat map, a SavedModel.

    pip install '.[plots,translation]'                                       # in the project's folder
    python examples/translate_text.py --data DIR --source en --target de     # Multi30k: 3 to 4 minutes an epoch, two cores
    python examples/translate_text.py --translate FILE                       # with the model of that run, to the screen
    python examples/translate_text.py --interactive
    python examples/translate_text.py --smoke                                # the same path in seconds, learning little

DIR holds `train.en`, `train.de`, `val.en`, `val.de`, or `en.train.txt` and so on, also `.gz`; every further split is a
test set. A training that was interrupted goes on after its last whole epoch when the same command is run again. The folder
of the results holds one run: another text or other settings need another `--output`; more `--epochs` train it further.
"""

import pathlib
import time

from argument_types import positive_integer
from command_line import BEGAN, example_parser, in_words, jit_compile, run, set_up, strategy_scope
from quiet import data_in, without_noise
from resuming import claim, digest, resume
from small_text import write_small_text
from translations import BEAM, both_sides, learn_subwords, print_bleu, save_alignment, translate_lines, translations_of

# isort: split

import keras
import tensorflow as tf

from keras_attention import serving, training
from keras_attention.data import evaluation_batches, load_parallel_text, training_batches
from keras_attention.models import Transformer
from keras_attention.training import AverageCheckpoints, EvaluateBleu, SeedEachEpoch

NOT_OF_A_RUN = {"output", "data", "validation", "epochs", "translate", "interactive", "smoke"}  # of the arguments


def main(argv=None):
    parser = example_parser(__doc__, output="translation", epochs=40, batch_size=128)
    add = parser.add_argument
    add("--data", metavar="DIR", help="folder with the text files; --smoke writes one of its own")
    add("--source", default="en", help="language code (default: %(default)s)")
    add("--target", default="de", help="language code (default: %(default)s)")
    add("--validation", default="val", help="split for the BLEU while training (default: %(default)s)")
    add("--vocabulary-size", type=positive_integer, default=6000, help="at most (default: %(default)s)")
    add("--max-length", type=positive_integer, default=100, help="of a text, in subwords; longer pairs are not learned")
    add("--translate", metavar="FILE", type=pathlib.Path, help="translate the lines of a file with the trained model")
    add("--interactive", action="store_true", help="translate what is typed, line by line")
    arguments = set_up(parser, argv)
    if (bool(arguments.data), bool(arguments.translate), arguments.interactive, arguments.smoke).count(True) != 1:
        parser.error("one of --data DIR, --translate FILE, --interactive and --smoke is needed")
    if arguments.translate or arguments.interactive:
        translate_lines(arguments, parser)
    else:
        train(arguments, parser)


def train(arguments, parser):
    output, max_length = arguments.output, arguments.max_length

    # === Data ===
    if arguments.smoke:
        arguments.source, arguments.target, arguments.validation = "en", "de", "val"
        arguments.data, arguments.vocabulary_size, arguments.epochs = write_small_text(output / "text"), 300, 1
    with in_words(), data_in(output / "data"):
        pairs = load_parallel_text(arguments.data, arguments.source, arguments.target, data_dir=output / "data")
    if not {"train", arguments.validation} <= set(pairs):
        parser.error(f"the splits must have train and {arguments.validation} (--validation), not {', '.join(pairs)}")
    texts = {split: both_sides(each) for split, each in pairs.items()}
    epoch = tf.Variable(0)
    with in_words():
        tokenizer = learn_subwords(texts["train"], arguments.vocabulary_size)
        batches = training_batches(
            pairs["train"], tokenizer, tokenizer, arguments.batch_size, max_length, max_length, seed=1, epoch=epoch
        )
        validation = evaluation_batches(pairs[arguments.validation], tokenizer, tokenizer)
    settings = {name: value for name, value in vars(arguments).items() if name not in NOT_OF_A_RUN}
    data, program = digest(texts["train"], tokenizer.vocabulary), digest(pathlib.Path(__file__).read_text("utf-8"))
    claim(output, {**settings, "data": data, "program": program}, arguments.smoke)

    # === Model ===
    steps = arguments.epochs * len(batches)
    warm_up = min(1000, steps // 4)
    rate = keras.optimizers.schedules.CosineDecay(0.0, steps - warm_up, warmup_target=4e-3, warmup_steps=warm_up)
    averaging = AverageCheckpoints(output / "checkpoints", last=5)
    with strategy_scope(arguments):
        model = Transformer(
            tokenizer.vocabulary_size,
            num_layers=1 if arguments.smoke else 4,
            num_heads=4,
            hidden_dim=128,
            intermediate_dim=256,
            dropout=0.3,
            attention_dropout=0.0,
            normalize_first=True,
            tie_embeddings=True,
            seed=1,
        )
        model.compile(
            optimizer=keras.optimizers.Adam(rate, beta_2=0.98, global_clipnorm=1.0),
            loss=training.SmoothedCrossentropy(label_smoothing=0.1),
            metrics=[training.TokenAccuracy()],
            jit_compile=jit_compile(arguments),
        )
        trained = resume(model, averaging)
    learned = sum(len(labels) for _, labels in batches)
    print(f"{model.count_params():,} parameters, {learned:,} pairs, {steps:,} steps")
    if left_out := len(texts["train"][0]) - learned:
        print(f"Left out: {left_out:,} pairs with an empty side or more than {max_length} subwords (--max-length)")

    # === Train ===
    if trained >= arguments.epochs:
        print(f"Already trained, for {trained} epochs: nothing to do. A larger --epochs trains on.")
    elif trained:
        print(f"Goes on after epoch {trained}.")
    bleu = {"max_length": max_length, "every": min(4, arguments.epochs), "lowercase": True}
    callbacks = [
        SeedEachEpoch(epoch),
        EvaluateBleu(*texts[arguments.validation], tokenizer, tokenizer, **bleu),
        averaging,  # the last, so that an epoch counts as done when everything of it is
    ]
    options = {"epochs": arguments.epochs, "initial_epoch": trained, "shuffle": False}  # the batches come shuffled
    model.fit(batches, validation_data=validation, callbacks=callbacks, **options)
    tokenizer.save(output / "subwords.model")
    model.save(output / "model.keras")
    use(model, tokenizer, texts, arguments)


def use(model, tokenizer, texts, arguments):
    output, max_length = arguments.output, arguments.max_length

    # === Use ===
    for split in sorted(set(texts) - {"train"}):
        for name, sampler in (("greedy", "greedy"), ("beam 5", BEAM)):
            print_bleu(f"{split}, {name}", model, texts[split], tokenizer, sampler, max_length, arguments.target)
    save_alignment(model, texts[arguments.validation][0], tokenizer, max_length, output / "alignment.png")

    # === Export ===
    version = serving.export(model, output / "served", tokenizer, tokenizer, max_length, sampler=BEAM)
    requests = [*texts[arguments.validation][0][:100], "", "A dog 🐕 runs."]
    with without_noise():
        served = tf.saved_model.load(version).signatures["serving_default"](text=tf.constant(requests))["text"]
    expected = translations_of(requests, model, tokenizer, max_length)
    equal = sum(text.decode() == other for text, other in zip(served.numpy(), expected, strict=True))
    print(f"The SavedModel in {version} gives {equal} of {len(requests)} translations as the model does.")
    print(f"{time.monotonic() - BEGAN:.0f} s from the start. Everything lies in {output}.")


if __name__ == "__main__":
    run(main, "A training goes on after its last whole epoch when the same command is run again.")
