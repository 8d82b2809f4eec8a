"""Times this package beside others: python benchmarks/run.py [NAME ...]

Names: import_time, attention, training_step, greedy_decoding, pointer_network, linear_chain; without one, all of them. Every
contender runs in a process of its own, with two threads, and they take turns. "ours / its" is the median over the
rounds of our time over the contender's in the same round: below 1 we are faster. "CPU" is the time of all threads
together.
"""

import argparse
import importlib
import os
import pathlib
import platform
import shutil
import statistics
import sys

from side_by_side import ENVIRONMENT, compare

NAMES = ("import_time", "attention", "training_step", "greedy_decoding", "pointer_network", "linear_chain")
VARIABLES = (*ENVIRONMENT, "TF_ENABLE_ONEDNN_OPTS", "TF_XLA_FLAGS", "XLA_FLAGS", "MALLOC_MMAP_THRESHOLD_", "LD_PRELOAD")


def main(argv=None):
    arguments = parse_arguments(argv)
    size = "smoke" if arguments.smoke else arguments.size
    rounds = 1 if arguments.smoke else arguments.rounds
    print(f"{machine()}, Python {platform.python_version()}, {rounds} rounds")
    print(" ".join(f"{name}={value_of(name)}" for name in VARIABLES))
    for name in arguments.names or NAMES:
        for comparison in importlib.import_module(name).COMPARISONS:
            if size not in comparison.sizes:
                continue
            print(f"\n{name}: {comparison.title.format(**comparison.sizes[size])}", flush=True)
            pythons = {name: arguments.torch_python for name in comparison.contenders if name.startswith("torch")}
            times, missing = compare(comparison, size, rounds, pythons)
            print(table(comparison, size, times, missing), flush=True)


def parse_arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("names", nargs="*", type=comparison_name, metavar="NAME", help="what to compare (default: everything)")
    add("--rounds", type=positive_integer, default=5, help="rounds that count (default: %(default)s)")
    add("--size", choices=("default", "paper"), default="default", help="paper: only what has a paper-sized model")
    add("--smoke", action="store_true", help="tiny sizes and one round, to see that everything runs")
    add("--torch-python", type=interpreter, default=sys.executable, metavar="PATH", help="a Python that has torch")
    if (backend := os.environ.get("KERAS_BACKEND") or "tensorflow") != "tensorflow":
        parser.error(f"it compares on TensorFlow; run it with KERAS_BACKEND=tensorflow, not {backend}")
    return parser.parse_args(argv)


def table(comparison, size, times, missing):
    """The times of each contender, and a line for those left out."""
    ours, *peers = comparison.contenders
    if ours in missing:
        raise SystemExit(
            f"{ours} cannot run: {missing[ours]}. Install the package in the project's folder: pip install -e ."
        )
    lines = [f"{'':24}{'median':>10}{'fastest':>10}{'slowest':>10}{'CPU':>10}{'ours / its':>13}{'target':>10}"]
    for name, answers in times.items():
        seconds = [answer["seconds"] for answer in answers]
        cpu = statistics.median(answer["cpu"] for answer in answers)
        columns = (statistics.median(seconds), min(seconds), max(seconds), cpu)
        line = f"{name:24}" + "".join(f"{duration(column):>10}" for column in columns)
        if name != ours:
            pairs = zip(times[ours], answers, strict=True)
            ratio = statistics.median(our["seconds"] / its["seconds"] for our, its in pairs)
            target = comparison.targets.get(size, {}).get(name)
            line += f"{ratio:>13.2f}{'-' if target is None else f'≤ {target}':>10}"
        lines.append(line)
    lines.extend(f"{name:24}  left out: {missing[name]}" for name in peers if name in missing)
    versions = {name: version for answers in times.values() for name, version in answers[-1]["versions"].items()}
    return "\n".join([*lines, ", ".join(f"{name} {version}" for name, version in versions.items())])


def duration(seconds):
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.2f} ms"


def machine():
    """Name of the processor and number of cores."""
    information = pathlib.Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.is_file() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor() or platform.machine()}, {os.cpu_count()} cores"


def value_of(variable):
    return ENVIRONMENT.get(variable) or os.environ.get(variable) or "(unset)"


def comparison_name(text):
    if text not in NAMES:
        raise argparse.ArgumentTypeError(f"{text!r} is not among {', '.join(NAMES)}")
    return text


def positive_integer(text):
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be a positive integer. Received: {text}")
    return int(text)


def interpreter(text):
    if shutil.which(text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a program; give the path of a Python interpreter")
    return text


if __name__ == "__main__":
    main()
