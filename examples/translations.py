"""The parts of `translate_text.py` that are not the way from data to a model: subwords, measures, a picture, a prompt."""

import itertools
import re
import sys

from command_line import in_words, read_text
from quiet import without_noise

# isort: split

import keras
import numpy as np
import sacrebleu
from sacremoses import MosesTokenizer

from keras_attention.data import SubwordTokenizer
from keras_attention.decoding import BeamSearch
from keras_attention.evaluation import translate_texts
from keras_attention.visualization import plot_attention

BEAM = BeamSearch(beam_width=5, length_penalty=1.4)


def both_sides(pairs):
    """A data set of pairs  ->  the list of its source texts and the list of its target texts"""
    return [[text.decode() for text in side] for side in zip(*pairs.as_numpy_iterator(), strict=True)]


def learn_subwords(texts, size):
    """A tokeniser of both sides, of `size` subwords or as many as the texts have."""
    try:
        with without_noise():
            return SubwordTokenizer.train(itertools.chain(*texts), size, verbose=0)
    except ValueError as error:
        largest = re.search(r"a value <= (\d+)", str(error))
        if largest is None:
            raise
        print(f"{largest[1]} subwords: the texts do not have the {size:,} of --vocabulary-size.")
        return learn_subwords(texts, int(largest[1]))


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


def save_alignment(model, texts, tokenizer, max_length, path):
    """Heat map of what the model attends to in the first text that is not empty while it writes the translation."""
    text = next(text for text in texts if text)
    source = tokenizer.tokenize([text]).to_tensor()
    target = model.generate(source, max_length, sampler=BEAM)
    target = target[:, : np.count_nonzero(target)]  # without padding
    weights = model.alignment({"source": source, "target": target})[0]  # (T, S)
    tokens = [tokenizer.token_strings(ids[0]).numpy() for ids in (target, source)]
    plot_attention(weights, *tokens).savefig(path, dpi=100)


def translations_of(texts, model, tokenizer, max_length):
    return translate_texts(model, texts, tokenizer, tokenizer, BEAM, max_length, verbose=0)


def translate_lines(arguments, parser):
    """Translates a file, or what is typed, with the model of an earlier run."""
    if not (arguments.output / "model.keras").exists():
        parser.error(f"a trained model is needed, and {arguments.output} has none: run with --data first")
    content = read_text(arguments.translate) if arguments.translate else None
    with in_words(), without_noise():
        tokenizer = SubwordTokenizer.load(arguments.output / "subwords.model")
        model = keras.saving.load_model(arguments.output / "model.keras")

    def translate(texts):
        translations = translations_of(texts, model, tokenizer, arguments.max_length)
        for text, translation in zip(texts, translations, strict=True):
            print(translation if text.strip() else "", flush=True)  # a model writes something for nothing, too

    if arguments.translate:
        translate(content.removesuffix("\n").split("\n"))
    else:
        print("A line of text, please; an empty one ends.", file=sys.stderr)
        while text := sys.stdin.readline().strip():
            translate([text])
