"""The documents of `classify_documents.py`: class folders in ten folds, or made-up film reviews.

A made-up review has a few sentences with an opinion, often negated, among many that have none.
"""

import random
import re

import numpy as np

from keras_attention.data import load_documents

GOOD = ["good", "great", "wonderful", "clever", "charming", "funny", "moving", "superb"]
BAD = ["bad", "awful", "boring", "clumsy", "tedious", "dull", "weak", "terrible"]
WHAT = ["acting", "plot", "music", "dialogue", "ending", "camera", "work", "script"]
# An adjective of the same kind as the review where there is "{same}", of the other kind where there is "{other}".
OPINIONS = [
    "The {what} was {same}.",
    "The {what} is really {same}!",
    "I must say that the {what} was {same}.",
    "The {what} was not {other}.",
    "Nobody can call the {what} {other}.",
    "The {what} wasn't {other} at all, it was {same}.",
    "I expected {other} {what}, but it was {same}.",
]
# Adjectives of either kind stand in these as well: a good doctor makes no good film.
NEUTRAL = [
    "The film begins in {place}.",
    "A {any} doctor meets a {any} lawyer in {place}.",
    "It was shot in {place} in {number} days.",
    "She plays the {any} sister of the mayor.",
    "Most of it takes place at night.",
    "We saw it in {place} with {number} friends.",
    "Does the {any} lawyer find the money?",
    "He says that the soup in {place} is {any}.",
    "It runs for {number} minutes.",
    "The director was born in {place}.",
]
PLACES = ["Paris", "Rome", "Lagos", "Lima", "Oslo", "Delhi", "Kyoto", "Quito"]


def read(folder, test_fold, smoke):
    """`(texts, labels)` to train on and to test, and the names of the classes; made up where there is no folder."""
    if folder is None:
        sizes = (96, 24) if smoke else (3000, 500)
        return *(made_up_reviews(size, seed) for seed, size in enumerate(sizes)), ["negative", "positive"]
    documents = load_documents(folder)
    matches = [re.match(r"cv(\d)\d\d", name) for name in documents.names]
    folds = np.array([int(match[1]) + 1 if match else row % 10 + 1 for row, match in enumerate(matches)])
    # The classes come one after the other; mixed, the first few of the test are of all of them.
    mix = np.random.default_rng(1).permutation
    parts = [mix(np.flatnonzero(part)) for part in (folds != test_fold, folds == test_fold)]
    if not all(map(len, parts)):
        raise ValueError(
            f"--test-fold must leave documents on both sides. Received {test_fold} of {set(folds.tolist())}."
        )
    return *(documents.take(rows)[:2] for rows in parts), documents.class_names


def made_up_reviews(count, seed):
    """`(texts, labels)`, 0 for negative and 1 for positive: 4 to 9 sentences, one to three of them with the opinion."""
    draw = random.Random(seed)
    labels = [draw.randrange(2) for _ in range(count)]
    return [review(draw, label) for label in labels], labels


def review(draw, label):
    same, other = (GOOD, BAD) if label else (BAD, GOOD)
    kinds = draw.choices(OPINIONS, k=draw.randint(1, 3)) + draw.choices(NEUTRAL, k=draw.randint(3, 6))
    draw.shuffle(kinds)
    return " ".join(
        kind.format(
            what=draw.choice(WHAT),
            same=draw.choice(same),
            other=draw.choice(other),
            any=draw.choice(GOOD + BAD),
            place=draw.choice(PLACES),
            number=draw.randint(2, 99),
        )
        for kind in kinds
    )
