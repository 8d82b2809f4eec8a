"""Translation from two text files with a Transformer: subwords, training, BLEU, beam search, a heat map, a SavedModel.

    pip install '.[plots,translation]'                                       # in the project's folder
    python examples/translate_text.py --data DIR --source en --target de     # Multi30k: 3 to 4 minutes an epoch, two cores
    python examples/translate_text.py --translate FILE                       # with the model of that run, to the screen
    python examples/translate_text.py --interactive
    python examples/translate_text.py --smoke                                # the same path in seconds, learning little

DIR holds `train.en`, `train.de`, `val.en`, `val.de`, or `en.train.txt` and so on, also `.gz`; every further split is a
test set. A training that was interrupted goes on where it was when the same command is run again; run once more after its
end, it goes on with the translations.
"""

import hashlib
import itertools
import pathlib
import sys
import time

from command_line import BEGAN, example_parser, jit_compile, positive_integer, set_up, strategy_scope
from small_text import write_small_text

# isort: split

import keras
import numpy as np
import sacrebleu
import tensorflow as tf
from sacremoses import MosesTokenizer

from keras_attention import serving
from keras_attention.data import SubwordTokenizer, evaluation_batches, load_parallel_text, training_batches
from keras_attention.decoding import BeamSearch
from keras_attention.models import Transformer
from keras_attention.training import (
    AverageCheckpoints,
    EvaluateBleu,
    SeedEachEpoch,
    SmoothedCrossentropy,
    TokenAccuracy,
    translate_texts,
)
from keras_attention.visualization import plot_attention

BEAM = BeamSearch(beam_width=5, length_penalty=1.4)


def main():
    parser = example_parser(__doc__, output="translation", epochs=40, batch_size=128)
    parser.add_argument("--data", help="folder with the text files; --smoke writes one of its own")
    parser.add_argument("--source", default="en", help="language code (default: %(default)s)")
    parser.add_argument("--target", default="de", help="language code (default: %(default)s)")
    parser.add_argument("--validation", default="val", help="split for the BLEU while training (default: %(default)s)")
    parser.add_argument("--vocabulary-size", type=positive_integer, default=6000, help="default: %(default)s")
    parser.add_argument(
        "--max-length",
        type=positive_integer,
        default=100,
        help="longest text in subwords; longer pairs are not learned",
    )
    parser.add_argument(
        "--translate", metavar="FILE", type=pathlib.Path, help="translate the lines of a file with the trained model"
    )
    parser.add_argument("--interactive", action="store_true", help="translate what is typed, line by line")
    arguments = set_up(parser)
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
        output = output / "smoke"  # beside what a real run has written
        arguments.source, arguments.target, arguments.validation = "en", "de", "val"
        arguments.data, arguments.vocabulary_size, arguments.epochs = write_small_text(output / "text"), 300, 1
    try:
        pairs = load_parallel_text(arguments.data, arguments.source, arguments.target, data_dir=output / "data")
    except (FileNotFoundError, ValueError) as error:
        parser.error(str(error))
    if not {"train", arguments.validation} <= set(pairs):
        parser.error(
            f"there must be the splits train and {arguments.validation} (--validation), not {', '.join(pairs)}"
        )
    texts = {split: both_sides(each) for split, each in pairs.items()}
    tokenizer = SubwordTokenizer.train(itertools.chain(*texts["train"]), vocabulary_size=arguments.vocabulary_size)
    epoch = tf.Variable(0)
    batches = training_batches(
        pairs["train"], tokenizer, tokenizer, arguments.batch_size, max_length, max_length, seed=1, epoch=epoch
    )
    validation = evaluation_batches(pairs[arguments.validation], tokenizer, tokenizer)

    # === Model ===
    steps = arguments.epochs * len(batches)
    warm_up = min(1000, steps // 4)
    learning_rate = keras.optimizers.schedules.CosineDecay(
        0.0, decay_steps=steps - warm_up, warmup_target=4e-3, warmup_steps=warm_up
    )
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
            optimizer=keras.optimizers.Adam(learning_rate, beta_2=0.98, global_clipnorm=1.0),
            loss=SmoothedCrossentropy(),
            metrics=[TokenAccuracy()],
            jit_compile=jit_compile(arguments),
        )
    print(f"{model.count_params():,} parameters, {len(texts['train'][0]):,} pairs, {steps:,} steps")

    # === Train ===
    settings = tokenizer.vocabulary, arguments.source, arguments.target, arguments.epochs, arguments.batch_size
    run = output / f"run-{hashlib.sha256(repr(settings).encode()).hexdigest()[:8]}"  # only the same run is resumed
    every = min(4, arguments.epochs)
    callbacks = [
        SeedEachEpoch(epoch),
        EvaluateBleu(
            *texts[arguments.validation], tokenizer, tokenizer, max_length=max_length, every=every, lowercase=True
        ),
        AverageCheckpoints(run / "checkpoints", last=5),
        # The last, so that an epoch counts as done when its files are there.
        keras.callbacks.BackupAndRestore(run / "backup", delete_checkpoint=False),
    ]
    options = {"epochs": arguments.epochs, "callbacks": callbacks, "shuffle": False}  # the batches come shuffled
    model.fit(batches, validation_data=validation, **options)
    tokenizer.save(output / "subwords.model")
    model.save(output / "model.keras")

    # === Use ===
    for split in sorted(set(texts) - {"train"}):
        for name, sampler in (("greedy", "greedy"), ("beam 5", BEAM)):
            print_bleu(f"{split}, {name}", model, texts[split], tokenizer, sampler, max_length, arguments.target)
    first = next(text for text in texts[arguments.validation][0] if text)
    save_alignment(model, first, tokenizer, max_length, output / "alignment.png")

    # === Export ===
    version = serving.export(model, output / "served", tokenizer, tokenizer, max_length, sampler=BEAM)
    requests = [*texts[arguments.validation][0][:100], "", "A dog 🐕 runs."]
    served = tf.saved_model.load(version).signatures["serving_default"](text=tf.constant(requests))["text"]
    expected = translate_texts(model, requests, tokenizer, tokenizer, BEAM, max_length, verbose=0)
    equal = sum(text.decode() == other for text, other in zip(served.numpy(), expected, strict=True))
    print(f"The SavedModel in {version} gives {equal} of {len(requests)} translations as the model does.")
    print(f"{time.monotonic() - BEGAN:.0f} s from the start. Everything lies in {output}.")


def translate_lines(arguments, parser):
    """Translates a file, or what is typed, with the model of an earlier run."""
    try:
        tokenizer = SubwordTokenizer.load(arguments.output / "subwords.model")
        model = keras.saving.load_model(arguments.output / "model.keras")
        content = arguments.translate and arguments.translate.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        parser.error(f"{error} (A model comes from an earlier run with --data and the same --output.)")

    def translate(texts):
        translations = translate_texts(model, texts, tokenizer, tokenizer, BEAM, arguments.max_length, verbose=0)
        for text, translation in zip(texts, translations, strict=True):
            print(translation if text.strip() else "")  # a model writes something for nothing, too

    if arguments.translate:
        translate(content.removesuffix("\n").split("\n"))
    else:
        print("A line of text, please; an empty one ends.", file=sys.stderr)
        while text := sys.stdin.readline().strip():
            translate([text])


def print_bleu(name, model, texts, tokenizer, sampler, max_length, language):
    """BLEU as sacrebleu computes it, cased and in lower case, and of Moses tokens in lower case, as papers print it."""
    sources, references = texts
    translations = translate_texts(model, sources, tokenizer, tokenizer, sampler, max_length)
    cased = sacrebleu.corpus_bleu(translations, [references])
    lower = sacrebleu.corpus_bleu(translations, [references], lowercase=True)
    moses = MosesTokenizer(lang=language)
    tokens, reference_tokens = (
        [moses.tokenize(text.lower(), return_str=True, escape=False) for text in side]
        for side in (translations, references)
    )
    tokenized = sacrebleu.corpus_bleu(tokens, [reference_tokens], tokenize="none", force=True)
    print(
        f"{name}: BLEU {tokenized.score:.2f} (tokenised, lower case); sacreBLEU {cased.score:.2f}, "
        f"in lower case {lower.score:.2f}; {len(sources)} texts"
    )


def save_alignment(model, text, tokenizer, max_length, path):
    """Heat map of what the model attends to in the text while it writes the translation."""
    source = tokenizer.tokenize([text]).to_tensor()
    target = model.generate(source, max_length, sampler=BEAM)
    target = target[:, : np.count_nonzero(target)]  # without padding
    weights = model.alignment({"source": source, "target": target})[0]  # (T, S)
    tokens = [tokenizer.token_strings(ids[0]).numpy() for ids in (target, source)]
    plot_attention(weights, *tokens).savefig(path, dpi=100)


def both_sides(pairs):
    """A data set of pairs  ->  the list of its source texts and the list of its target texts"""
    return [[text.decode() for text in side] for side in zip(*pairs.as_numpy_iterator(), strict=True)]


if __name__ == "__main__":
    main()
