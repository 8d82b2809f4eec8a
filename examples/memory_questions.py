"""Questions about a story, answered from a key-value memory that is read in several hops.

    pip install '.[plots]'                                         # in the project's folder
    python examples/memory_questions.py                            # a minute or two on two cores
    python examples/memory_questions.py --hops 1                   # finds one fact, but not the second
    python examples/memory_questions.py --smoke                    # the same path in seconds, learning little

People walk about and take things from each other. "Where is mary?" needs one fact, the last of mary's ways; "where is the
apple?" needs two: who took it last, and where that one went last. The model is told the answer, never the facts it needs.
"""

import time

from command_line import BEGAN, example_parser, jit_compile, positive_integer, set_up, strategy_scope

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


def main():
    parser = example_parser(__doc__, output="memory_questions", epochs=12, batch_size=128)
    parser.add_argument("--hops", type=positive_integer, default=2, help="how often the memory is read (default: 2)")
    arguments = set_up(parser)
    train_size, test_size = (256, 70) if arguments.smoke else (20_000, 4000)
    epochs = 1 if arguments.smoke else arguments.epochs

    # === Data ===
    inputs, answers, _ = examples(train_size, seed=1)
    test_inputs, test_answers, needed = examples(test_size, seed=2)

    # === Model ===
    with strategy_scope(arguments):
        model, attention_weights = reader(arguments.hops)
        rate = keras.optimizers.schedules.CosineDecay(1e-2, epochs * -(-train_size // arguments.batch_size))
        model.compile(
            optimizer=keras.optimizers.Adam(rate, clipnorm=1.0),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
            jit_compile=jit_compile(arguments),
        )

    # === Train ===
    model.fit(inputs, answers, batch_size=arguments.batch_size, epochs=epochs, verbose=2)

    # === Use ===
    predicted = model.predict(test_inputs, verbose=0).argmax(axis=-1)
    attended = attention_weights.predict(test_inputs, verbose=0)[:, :, 0].argmax(axis=-1)  # (B, hops)
    looked_right = np.array([set(facts) <= set(hops) for facts, hops in zip(needed, attended, strict=True)])
    for count in (1, 2):
        rows = np.array([len(facts) == count for facts in needed])
        right, looked = np.mean(predicted[rows] == test_answers[rows]), looked_right[rows].mean()
        print(
            f"{count} supporting: {right:.2%} of {rows.sum()} questions right, all needed facts attended in {looked:.2%}"
        )

    facts = story(np.random.default_rng(3))
    asked = sorted(questions_about(facts), key=len)[-4:]  # first those that need one fact
    inputs = {"facts": word_ids([facts] * len(asked)), "question": word_ids(asked)}
    answered = model.predict(inputs, verbose=0).argmax(axis=-1)
    weights = attention_weights.predict(inputs, verbose=0)  # (B, hops, 1, S)
    titles = [f"{question}? {PLACES[answer]}" for question, answer in zip(asked, answered, strict=True)]
    for title, hops in zip(titles, weights[:, :, 0], strict=True):
        print(title, *[f"{row.max():.2f} {facts[row.argmax()]}" for row in hops], sep="\n    ")
    names = [f"hop {hop + 1}" for hop in range(arguments.hops)]
    figure = visualization.plot_attention_grid(weights.transpose(0, 2, 1, 3), names, facts, titles)
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
    choices = {"move": (PEOPLE, MOVES, PLACES), "take": (PEOPLE, TAKES, THINGS)}
    return [" ".join(map(rng.choice, choices[kind])) for kind in kinds]


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
    """`({"facts": (B, S, W), "question": (B, W)}, places (B,), facts needed)`; every second question needs two."""
    rng, rows = np.random.default_rng(seed), []
    while len(rows) < count:
        facts = story(rng)
        choices = [(facts, question, *answer) for question, answer in questions_about(facts).items()]
        choices = [choice for choice in choices if len(choice[-1]) == 1 + len(rows) % 2]
        rows += [choices[rng.integers(len(choices))]] if choices else []
    facts, questions, answers, needed = zip(*rows, strict=True)
    facts = word_ids([[*story, *[""] * (FACTS - len(story))] for story in facts])
    return {"facts": facts, "question": word_ids(questions)}, np.array([*map(PLACES.index, answers)]), needed


def word_ids(texts):
    """Ids `(..., 5)` of the words of sentences, padded by zeros."""
    ids = [[WORDS.index(word) for word in text.split()] for text in np.ravel(texts)]
    return np.reshape([row + [0] * (5 - len(row)) for row in ids], (*np.shape(texts), 5)).astype("int32")


def reader(num_hops):
    """The model that answers, and one of the same layers that gives its attention weights `(B, hops, 1, S)`."""
    facts = keras.Input((None, 5), dtype="int32", name="facts")
    question = keras.Input((5,), dtype="int32", name="question")
    is_fact = ops.any(facts != 0, axis=-1)  # (B, S)
    count = ops.cumsum(ops.cast(is_fact, "int32"), axis=1)
    age = count[:, -1:] - count  # how many facts come after each
    key, value = (sentence(facts, name) + vectors(age, FACTS, f"{name}_age") for name in ("key", "value"))  # (B, S, D)
    query = ops.expand_dims(sentence(question, "query"), 1)  # (B, 1, D)
    found, weights = KeyValueMemory(num_hops)(query, value, key, value_mask=is_fact, return_attention_scores=True)
    logits = keras.layers.Dense(len(PLACES), dtype="float32", name="answer")(found[:, 0])
    return [keras.Model({"facts": facts, "question": question}, outputs) for outputs in (logits, weights)]


def sentence(ids, name):
    """`(..., W)` -> `(..., D)`: embedded words, weighted by their place (Sukhbaatar et al. 2015, section 4.1)."""
    j, k = np.arange(1, 6)[:, None] / 5, np.arange(1, WIDTH + 1) / WIDTH
    weighting = (1 - j - k * (1 - 2 * j)).astype("float32")
    is_word = ops.cast(ops.expand_dims(ids != 0, -1), "float32")  # padding with a vector of its own is hard to learn
    return ops.sum(vectors(ids, len(WORDS), name) * weighting * is_word, axis=-2)


def vectors(ids, count, name):
    return keras.layers.Embedding(count, WIDTH, keras.initializers.RandomNormal(stddev=0.3), name=name)(ids)


if __name__ == "__main__":
    main()
