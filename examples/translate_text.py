"""Translation from two text files with a Transformer: subwords, training, BLEU, beam search, a heat map, a SavedModel.

    python examples/translate_text.py --data DIR --source en --target de     # an hour and a half on two cores
    python examples/translate_text.py --translate FILE                       # with the model of that run, to the screen
    python examples/translate_text.py --interactive
    python examples/translate_text.py --smoke                                # the same path in seconds, learning little

DIR holds `train.en`, `train.de`, `val.en`, `val.de`, or `en.train.txt` and so on, also `.gz`; every further split is a
test set. A training that was interrupted goes on where it was when the same command is run again.
"""

import itertools
import sys
import time

from command_line import BEGAN, example_parser, jit_compile, set_up, strategy_scope

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
    parser = example_parser(__doc__, output="translation", epochs=20, batch_size=128)
    parser.add_argument("--data", help="folder with the text files; --smoke writes one of its own")
    parser.add_argument("--source", default="en", help="language code (default: %(default)s)")
    parser.add_argument("--target", default="de", help="language code (default: %(default)s)")
    parser.add_argument("--validation", default="val", help="split for the BLEU while training (default: %(default)s)")
    parser.add_argument("--vocabulary-size", type=int, default=6000, help="default: %(default)s")
    parser.add_argument("--translate", metavar="FILE", help="translate the lines of a file with the trained model")
    parser.add_argument("--interactive", action="store_true", help="translate what is typed, line by line")
    arguments = set_up(parser)
    if arguments.translate or arguments.interactive:
        translate_lines(arguments)
    elif arguments.data or arguments.smoke:
        train(arguments)
    else:
        parser.error("one of --data DIR, --translate FILE, --interactive and --smoke is needed")


def train(arguments):
    output = arguments.output

    # === Data ===
    if arguments.smoke:
        arguments.data, arguments.vocabulary_size, arguments.epochs = write_small_text(output / "text"), 300, 2
    pairs = load_parallel_text(arguments.data, arguments.source, arguments.target, data_dir=output / "data")
    if not {"train", arguments.validation} <= set(pairs):
        sys.exit(f"{arguments.data} must have the splits train and {arguments.validation}. It has: {', '.join(pairs)}.")
    texts = {split: both_sides(each) for split, each in pairs.items()}
    tokenizer = SubwordTokenizer.train(itertools.chain(*texts["train"]), vocabulary_size=arguments.vocabulary_size)
    tokenizer.save(output / "subwords.model")
    epoch = tf.Variable(0)
    batches = training_batches(
        pairs["train"], tokenizer, tokenizer, batch_size=arguments.batch_size, seed=1, epoch=epoch
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
            num_layers=4,
            num_heads=4,
            hidden_dim=128,
            intermediate_dim=256,
            dropout=0.25,
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
    callbacks = [
        SeedEachEpoch(epoch),
        keras.callbacks.BackupAndRestore(output / "backup"),
        EvaluateBleu(*texts[arguments.validation], tokenizer, tokenizer, lowercase=True, every=4),
        AverageCheckpoints(output / "checkpoints", last=5),
    ]
    model.fit(
        batches, validation_data=validation, epochs=arguments.epochs, callbacks=callbacks, shuffle=False
    )  # the batches come shuffled
    model.save(output / "model.keras")

    # === Use ===
    for split in sorted(set(texts) - {"train"}):
        for name, sampler in (("greedy", "greedy"), ("beam 5", BEAM)):
            print_bleu(f"{split}, {name}", model, texts[split], tokenizer, sampler, arguments.target)
    save_alignment(model, texts[arguments.validation][0][0], tokenizer, output / "alignment.png")

    # === Export ===
    version = serving.export(model, output / "served", tokenizer, tokenizer, sampler=BEAM)
    requests = [*texts[arguments.validation][0][:100], "", "A dog 🐕 runs."]
    served = tf.saved_model.load(version).signatures["serving_default"](text=tf.constant(requests))["text"]
    expected = translate_texts(model, requests, tokenizer, tokenizer, BEAM, batch_size=len(requests), verbose=0)
    equal = sum(text.decode() == other for text, other in zip(served.numpy(), expected, strict=True))
    print(f"The SavedModel in {version} gives {equal} of {len(requests)} translations as the model does.")
    print(f"{time.monotonic() - BEGAN:.0f} s from the start. Everything lies in {output}.")


def translate_lines(arguments):
    """Translates a file, or what is typed, with the model of an earlier run."""
    tokenizer = SubwordTokenizer.load(arguments.output / "subwords.model")
    model = keras.saving.load_model(arguments.output / "model.keras")
    if arguments.translate:
        with open(arguments.translate, encoding="utf-8", newline="\n") as file:
            lines = [line.rstrip("\r\n") for line in file]
        print(*translate_texts(model, lines, tokenizer, tokenizer, BEAM, verbose=0), sep="\n")
    else:
        print(f"A line in {arguments.source}, please; an empty one ends.")
        while line := input(f"{arguments.source}> "):
            print(*translate_texts(model, [line], tokenizer, tokenizer, BEAM, verbose=0))


def print_bleu(name, model, texts, tokenizer, sampler, language):
    """BLEU as sacrebleu computes it, cased and in lower case, and of Moses tokens in lower case, as papers print it."""
    sources, references = texts
    translations = translate_texts(model, sources, tokenizer, tokenizer, sampler)
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


def save_alignment(model, text, tokenizer, path):
    """Heat map of what the model attends to in the text while it writes the translation."""
    source = tokenizer.tokenize([text]).to_tensor()
    target = model.generate(source, sampler=BEAM)
    target = target[:, : np.count_nonzero(target)]  # without padding
    weights = model.alignment({"source": source, "target": target})[0]  # (T, S)
    tokens = [tokenizer.token_strings(ids[0]).numpy() for ids in (target, source)]
    plot_attention(weights, *tokens).savefig(path, dpi=100)


def both_sides(pairs):
    """A data set of pairs  ->  the list of its source texts and the list of its target texts"""
    return [[text.decode() for text in side] for side in zip(*pairs.as_numpy_iterator(), strict=True)]


def write_small_text(folder):
    """A few hundred pairs such as "two dogs see a cat" and "zwei Hunde sehen eine Katze"."""
    subjects = {"a dog": "ein Hund", "a cat": "eine Katze", "a man": "ein Mann", "a woman": "eine Frau"}
    verbs = {"sees": "sieht", "looks for": "sucht", "knows": "kennt"}
    objects = {"a house": "ein Haus", "a horse": "ein Pferd", "a book": "ein Buch", "water": "Wasser"}
    ends = {".": ".", " today.": " heute.", " there.": " dort.", "!": "!"}
    pairs = [
        (f"{a.capitalize()} {b} {c}{d}", f"{a2[0].upper()}{a2[1:]} {b2} {c2}{d2}")
        for (a, a2), (b, b2), (c, c2), (d, d2) in itertools.product(
            *(each.items() for each in (subjects, verbs, objects, ends))
        )
    ]
    folder.mkdir(parents=True, exist_ok=True)
    for split, rows in {"train": pairs[:-20], "val": pairs[-20:-7], "test": pairs[-7:]}.items():
        for language, side in zip(("en", "de"), zip(*rows, strict=True), strict=True):
            (folder / f"{split}.{language}").write_text("".join(f"{line}\n" for line in side), encoding="utf-8")
    return folder


if __name__ == "__main__":
    main()
