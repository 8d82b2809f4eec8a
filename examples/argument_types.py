"""What the numbers of a command line may be; argparse makes a message of what they refuse."""

import argparse
import contextlib


def positive_integer(text):
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be a positive integer. Received: {text}")
    return int(text)


def natural_number(text):
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be 0 or a positive integer. Received: {text}")
    return int(text)


def positive_number(text):
    return number_in(text, lambda value: 0 < value < float("inf"), "positive")


def share(text):
    return number_in(text, lambda value: 0 <= value < 1, "from 0 on and below 1")


def number_in(text, is_right, rule):
    with contextlib.suppress(ValueError):
        if is_right(float(text)):
            return float(text)
    raise argparse.ArgumentTypeError(f"must be a number, {rule}. Received: {text}")
