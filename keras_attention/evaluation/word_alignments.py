"""Word alignments: how well links agree with links made by people."""

import numpy as np

from keras_attention.checks.arguments import check_same_number
from keras_attention.checks.links import link_set
from keras_attention.checks.messages import naming


def evaluate_word_alignments(sure, possible, alignments):
    """Alignment error rate, precision, recall and F1 of links, over all sentence pairs together.

    With A the links, S the sure and P the possible links, S among them:

        precision            = |A ∩ P| / |A|
        recall               = |A ∩ S| / |S|
        f1                   = 2 · precision · recall / (precision + recall)
        alignment_error_rate = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)

    The rate is 0 where all sure links are found and all that is found is possible. If S = P it is 1 - f1. Otherwise a low
    rate can hide a low recall (Fraser and Marcu): look at precision and recall, too.

    Args:
        sure: Iterable of N sets of links `(source, target)`, as `keras_attention.data.read_gold_alignments` returns them
            first.
        possible: Iterable of N sets of links. The sure ones may be missing there, since they always count as possible;
            pass `sure` twice if there are no others.
        alignments: Iterable of N sets of links, those to be evaluated.

    Returns:
        Dictionary of Python floats in [0, 1]: `"alignment_error_rate"`, `"precision"`, `"recall"`, `"f1"`. A share of
        nothing is nan: the precision without a link, the recall without a sure link.

    Raises:
        ValueError: If there is no sentence pair, the numbers of sets differ, or a link is not a pair of positions.

    Example:
        >>> scores = evaluate_word_alignments([{(0, 0), (1, 1)}], [{(2, 1)}], [{(0, 0), (2, 1), (3, 2)}])
        >>> {name: round(score, 3) for name, score in scores.items()}
        {'alignment_error_rate': 0.4, 'precision': 0.667, 'recall': 0.5, 'f1': 0.571}

    References:
        Och and Ney, 2003, "A systematic comparison of various statistical alignment models", section 5.
        Fraser and Marcu, 2007, "Measuring word alignment quality for statistical machine translation".
    """
    sure, possible, alignments = list(sure), list(possible), list(alignments)
    check_same_number(
        "Pass an empty set for a pair without links.", sure=sure, possible=possible, alignments=alignments
    )
    counts = np.zeros(4, "int64")
    for number, sets in enumerate(zip(sure, possible, alignments, strict=True)):
        with naming(f"Sentence pair {number}"):
            gold, allowed, links = map(link_set, ("sure", "possible", "alignments"), sets)
        counts += [len(links & (gold | allowed)), len(links), len(links & gold), len(gold)]
    right_possible, found, right_sure, wanted = counts.tolist()
    precision, recall = ratio(right_possible, found), ratio(right_sure, wanted)
    return {
        "alignment_error_rate": 1 - ratio(right_sure + right_possible, found + wanted),
        "precision": precision,
        "recall": recall,
        "f1": 0.0 if precision + recall == 0 else 2 * precision * recall / (precision + recall),
    }


def ratio(part, whole):
    """1, 4  ->  0.25; nan of nothing."""
    return part / whole if whole else float("nan")
