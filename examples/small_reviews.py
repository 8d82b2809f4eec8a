"""Made-up film reviews: a few sentences with an opinion, often negated, among many that have none."""

import random

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


def small_reviews(count, seed):
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
