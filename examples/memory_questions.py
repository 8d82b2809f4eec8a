"""Questions about a story, answered from a key-value memory that is read in several hops.

    pip install '.[plots]'                                         # in the project's folder
    python examples/memory_questions.py                            # half a minute on two cores
    python examples/memory_questions.py --smoke                    # the same path in seconds, learning little

People walk about and take things from each other. "Where is mary?" needs one fact, the last of mary's ways; "where is the
apple?" needs two: who took it last, and where that one went last. The model is told the answers, not what they rest on.
"""

import time

from argument_types import positive_integer
from command_line import BEGAN, example_parser, jit_compile, run, set_up, strategy_scope

# isort: split

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from keras_attention import visualization
from keras_attention.layers import KeyValueMemory

PEOPLE, THINGS = ("ann", "john", "mary", "sue", "tom"), ("apple", "ball", "book", "key", "milk")
PLACES = ("bedroom", "cellar", "garden", "hall", "kitchen", "office")
MOVES, TAKES = ("came to the", "ran to the", "went to the"), ("got the", "grabbed the", "took the")
WORDS = ("", *PEOPLE, *THINGS, *PLACES, *sorted({*" ".join(MOVES + TAKES).split(), "where", "is"}))  # 0 is padding
FACTS, WIDTH = 20, 32
NORMAL = {"class_name": "RandomNormal", "config": {"stddev": 0.3}}  # of vectors; near zero, training stalls at one fact


def main(argv=None):
    parser = example_parser(__doc__, output="memory_questions", epochs=12, batch_size=128)
    parser.add_argument("--hops", type=positive_integer, default=2, help="how often the memory is read (default: 2)")
    arguments = set_up(parser, argv)
    train_size, test_size, epochs = (256, 70, 1) if arguments.smoke else (20_000, 4000, arguments.epochs)

    # === Data ===
    inputs, answers, _ = examples(train_size, seed=1)
    test_inputs, test_answers, needed = examples(test_size, seed=3)

    # === Model ===
    with strategy_scope(arguments):
        model, attention_weights = reader(arguments.hops)
        rate = keras.optimizers.schedules.CosineDecay(1e-2, epochs * -(-train_size // arguments.batch_size))
        adam, loss = keras.optimizers.Adam(rate, clipnorm=1.0), keras.losses.SparseCategoricalCrossentropy(True)
        model.compile(adam, loss, metrics=["accuracy"], jit_compile=jit_compile(arguments))

    # === Train ===
    model.fit(inputs, answers, batch_size=arguments.batch_size, epochs=epochs, verbose=2)

    # === Use ===
    predicted = model.predict(test_inputs, verbose=0).argmax(axis=-1)
    attended = attention_weights.predict(test_inputs, verbose=0)[:, :, 0].argmax(axis=-1)  # (B, hops)
    looked_right = np.array([set(facts) <= set(hops) for facts, hops in zip(needed, attended, strict=True)])
    for count in (1, 2):
        rows = np.array([len(facts) == count for facts in needed])
        right, looked = np.mean(predicted[rows] == test_answers[rows]), looked_right[rows].mean()
        print(f"{count} needed: {right:.2%} of {rows.sum()} questions right, all needed facts attended in {looked:.2%}")
    facts = story(np.random.default_rng(3))
    asked = sorted(questions_about(facts), key=len)[-4:]  # first those that need one fact
    inputs = {"facts": word_ids([facts]), "questions": word_ids([asked])}
    answered = model.predict(inputs, verbose=0)[0].argmax(axis=-1)
    weights = attention_weights.predict(inputs, verbose=0)[0].swapaxes(0, 1)  # (questions, hops, facts)
    titles = [f"{question}? {PLACES[answer]}" for question, answer in zip(asked, answered, strict=True)]
    for title, rows in zip(titles, weights, strict=True):
        print(title, *[f"{row.max():.2f} {facts[row.argmax()]}" for row in rows], sep="\n    ")
    figure = visualization.plot_attention_grid(weights[:, None], range(1, arguments.hops + 1), facts, titles)
    figure.axes[-2].set_xticklabels(facts)  # their spaces as spaces
    figure.savefig(arguments.output / "attended.png", dpi=120)

    # === Export ===
    model.save(arguments.output / "model.keras")
    keras.saving.load_model(arguments.output / "model.keras").export(arguments.output / "served", verbose=False)
    served = tf.saved_model.load(arguments.output / "served")
    same = (served.serve(test_inputs).numpy().argmax(axis=-1) == predicted).sum()
    print(f"Saved, loaded and served, the model gives {same} of {test_size} answers as before.")
    print(f"{time.monotonic() - BEGAN:.0f} s from the start. Everything lies in {arguments.output}.")


def story(rng):
    """From 5 to 20 facts, such as `["mary went to the hall", "tom took the milk", ...]`."""
    kinds = rng.choice(["move", "take"], size=rng.integers(5, FACTS + 1), p=[0.6, 0.4])
    words = {"move": (PEOPLE, MOVES, PLACES), "take": (PEOPLE, TAKES, THINGS)}
    return [" ".join(map(rng.choice, words[kind])) for kind in kinds]


def questions_about(facts):
    """`{question: (answer, numbers of the facts it needs)}` for all that a story tells."""
    latest = {}  # the last fact of where each one went, and of who took each thing
    for number, fact in enumerate(facts):
        who, *_, what = fact.split()
        latest[who if what in PLACES else what] = number
    questions = {}
    for name, number in latest.items():
        who, *_, what = facts[number].split()
        if name in PEOPLE:
            questions[f"where is {name}"] = what, [number]
        elif who in latest:
            questions[f"where is the {name}"] = facts[latest[who]].split()[-1], [number, latest[who]]
    return questions


def examples(count, seed):
    """`({"facts": (B, S, W), "questions": (B, 1, W)}, places (B, 1), facts needed)`; every second one needs two."""
    rng, rows = np.random.default_rng(seed), []
    while len(rows) < count:
        facts = story(rng)
        found = [(facts, question, *answer) for question, answer in questions_about(facts).items()]
        found = [row for row in found if len(row[-1]) == 1 + len(rows) % 2]
        rows += [found[rng.integers(len(found))]] if found else []
    facts, questions, answers, needed = zip(*rows, strict=True)
    inputs = {"facts": word_ids(facts), "questions": word_ids([[question] for question in questions])}
    return inputs, np.array([[PLACES.index(answer)] for answer in answers]), needed


def word_ids(texts):
    """Ids `(B, S, 5)` of the words of lists of sentences, padded by zeros."""
    ids = np.zeros((len(texts), max(map(len, texts)), 5), "int32")
    for row, sentences in enumerate(texts):
        for place, words in enumerate(map(str.split, sentences)):
            ids[row, place, : len(words)] = [WORDS.index(word) for word in words]
    return ids


def reader(num_hops):
    """The model that answers, and one of the same layers that gives its attention weights `(B, hops, T, S)`."""
    facts = keras.Input((None, 5), dtype="int32", name="facts")
    questions = keras.Input((None, 5), dtype="int32", name="questions")
    is_fact = ops.any(facts != 0, axis=-1)  # (B, S)
    count = ops.cumsum(ops.cast(is_fact, "int32"), axis=1)
    age = count[:, -1:] - count  # how many facts come after each
    key, value = (sentences(facts) + keras.layers.Embedding(FACTS, WIDTH, NORMAL)(age) for _ in range(2))
    query, memory = sentences(questions), KeyValueMemory(num_hops)
    found, weights = memory(query, value, key, value_mask=is_fact, return_attention_scores=True)
    logits = keras.layers.Dense(len(PLACES), dtype="float32", name="answers")(found)  # (B, T, places)
    return [keras.Model({"facts": facts, "questions": questions}, outputs) for outputs in (logits, weights)]


def sentences(ids):
    """`(..., W)` -> `(..., D)`: embedded words, weighted by their place (Sukhbaatar et al. 2015, section 4.1)."""
    j, k = np.arange(1, 6)[:, None] / 5, np.arange(1, WIDTH + 1) / WIDTH
    weighting = ops.cast(ops.expand_dims(ids != 0, -1), "float32") * (1 - j - k * (1 - 2 * j)).astype("float32")
    return ops.sum(keras.layers.Embedding(len(WORDS), WIDTH, NORMAL)(ids) * weighting, axis=-2)


if __name__ == "__main__":
    run(main)
