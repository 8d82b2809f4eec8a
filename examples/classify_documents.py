"""Documents to classes by attention to words and to sentences: training, pictures of what was attended, raw text served.

    pip install '.[plots]'                                             # in the project's folder
    python examples/classify_documents.py                              # made-up reviews, half a minute on two cores
    python examples/classify_documents.py --data reviews.zip           # a folder or zip file of class folders
    python examples/classify_documents.py --classify FILE [FILE ...]   # each a document, by the model of that run
    python examples/classify_documents.py --smoke                      # the same path in seconds, learning little

A folder of class folders, such as `neg/*.txt` and `pos/*.txt`, is cut into ten folds. Files that are called `cv000` to
`cv999`, as the movie reviews of Pang and Lee are, belong to fold 1 (`cv0..`) to 10 (`cv9..`); others are dealt out in
turn; all but `--test-fold` are trained on.
"""

import pathlib
import time

from argument_types import positive_integer, positive_number, share
from command_line import BEGAN, example_parser, in_words, jit_compile, read_text, run, set_up, strategy_scope
from reviews import read

# isort: split

import keras
import numpy as np
import tensorflow as tf

from keras_attention import data, serving
from keras_attention.models import HierarchicalClassifier
from keras_attention.visualization import plot_document


def main(argv=None):
    parser = example_parser(__doc__, output="documents", epochs=8, batch_size=32)
    add = parser.add_argument
    add("--data", help="folder or .zip file of class folders (default: made-up reviews)")
    add("--classify", metavar="FILE", type=pathlib.Path, nargs="+", help="classify text files with the trained model")
    add("--test-fold", type=int, choices=range(1, 11), default=9, help="of the ten of --data (default: %(default)s)")
    add("--line-sentences", action="store_true", help="a sentence ends at a line break only")
    add("--max-words", type=positive_integer, default=50, help="of a sentence (default: %(default)s)")
    add("--max-sentences", type=positive_integer, default=60, help="of a document (default: %(default)s)")
    add("--minimum-count", type=positive_integer, default=2, help="of a word of the vocabulary (default: %(default)s)")
    encoders = ("gru", "lstm", "convolution", "transformer", "none")
    add("--word-encoder", choices=encoders, default="gru", help="default: %(default)s")
    add("--sentence-encoder", choices=encoders, default="gru", help="default: %(default)s")
    add("--embedding-dim", type=positive_integer, default=64, help="default: %(default)s")
    add("--hidden-dim", type=positive_integer, default=64, help="default: %(default)s")
    add("--dropout", type=share, default=0.0, help="of the features (default: %(default)s)")
    add("--unit-dropout", type=share, default=0.0, help="share of words and sentences left out (default: %(default)s)")
    add("--learning-rate", type=positive_number, default=2e-3, help="default: %(default)s")
    arguments = set_up(parser, argv)
    if arguments.classify:
        classify(arguments, parser)
    else:
        train(arguments)


def train(arguments):
    output = arguments.output

    # === Data ===
    with in_words():
        known, test, class_names = read(arguments.data, arguments.test_fold, arguments.smoke)
        words = data.WordTokenizer.train(known[0], minimum_count=arguments.minimum_count)
    words.save(output / "words.json")
    sentence_end = {"sentence_end": r"\n"} if arguments.line_sentences else {}
    tokenizer = data.DocumentTokenizer(
        words, max_words=arguments.max_words, max_sentences=arguments.max_sentences, **sentence_end
    )
    batches = data.training_document_batches(*known, tokenizer, arguments.batch_size, seed=1)
    test_batches = data.evaluation_document_batches(*test, tokenizer, arguments.batch_size)
    sizes = f"{len(known[0])} to train on, {len(test[0])} to test"
    print(f"Documents: {sizes}; {words.vocabulary_size} words; classes {', '.join(class_names)}")

    # === Model ===
    encoders = [None if each == "none" else each for each in (arguments.word_encoder, arguments.sentence_encoder)]
    epochs = 1 if arguments.smoke else arguments.epochs
    rate = keras.optimizers.schedules.CosineDecay(
        0.0, epochs * len(batches), warmup_target=arguments.learning_rate, warmup_steps=30
    )
    with strategy_scope(arguments):
        model = HierarchicalClassifier(
            words.vocabulary_size,
            len(class_names),
            levels=("word", "sentence"),
            embedding_dim=arguments.embedding_dim,
            encoder=encoders,
            hidden_dim=arguments.hidden_dim,
            dropout=arguments.dropout,
            unit_dropout=arguments.unit_dropout,
            seed=1,
        )
        model.compile(
            optimizer=keras.optimizers.Adam(rate, global_clipnorm=1.0),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
            jit_compile=jit_compile(arguments),
        )

    # === Train ===
    began = time.monotonic()
    model.fit(batches, epochs=epochs, shuffle=False, verbose=2)
    seconds = time.monotonic() - began
    model.save(output / "model.keras")

    # === Use ===
    accuracy = model.evaluate(test_batches, verbose=0, return_dict=True)["accuracy"]
    print(f"Test accuracy: {accuracy:.2%} of {len(test[0])} documents, after {seconds:.0f} s of training")

    # === Export, and serve raw text ===
    version = serving.export_classifier(model, output / "served", tokenizer, class_names)
    served = tf.saved_model.load(version).signatures["serving_default"]
    count = min(50, len(test[0]))
    answer = {name: value.numpy() for name, value in served(text=tf.constant(test[0][:count])).items()}
    predicted = np.argmax(model.predict(test_batches, verbose=0)[:count], axis=-1)
    print(f"The SavedModel gives {(answer['label'] == predicted).sum()} of {count} classes as the model does.")
    for row in range(min(3, count)):
        title = f"{verdict(answer, row)}; in truth {class_names[test[1][row]]}"
        picture(answer, row, title).savefig(output / f"document_{row + 1}.png")
    print(f"{time.monotonic() - BEGAN:.0f} s from the start. Everything lies in {output}.")


def classify(arguments, parser):
    """Classifies text files with the newest version that an earlier run exported, and draws what was attended to."""
    versions = sorted((int(path.name), path) for path in (arguments.output / "served").glob("[0-9]*"))
    if not versions:
        parser.error(f"--classify needs a trained model, and {arguments.output} has none: run without --classify first")
    served = tf.saved_model.load(versions[-1][1]).signatures["serving_default"]
    texts = [read_text(path) for path in arguments.classify]
    answer = {name: value.numpy() for name, value in served(text=tf.constant(texts)).items()}
    for row, path in enumerate(arguments.classify):
        drawing = arguments.output / f"{path.stem}.png"
        picture(answer, row, verdict(answer, row)).savefig(drawing)
        print(f"{path}: {verdict(answer, row)}, attended words in {drawing}")


def verdict(answer, row):
    """`"positive (93%)"`"""
    return f"{answer['class_name'][row].decode()} ({answer['probabilities'][row].max():.0%})"


def picture(answer, row, title):
    """A document of a served answer, coloured by what was attended to."""
    return plot_document(answer["tokens"][row], answer["word_weights"][row], answer["sentence_weights"][row], title)


if __name__ == "__main__":
    run(main)
