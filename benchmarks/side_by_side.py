"""Contenders for the same work, side by side: each in a process of its own, with two threads, taking turns.

A contender is a function of the sizes that gets everything ready and returns the work, a function without arguments.
Only the work is timed. A round calls it a few times in every process in turn, so that a slow minute of the machine
meets all of them; the first round, in which graphs are compiled and files read, is not counted.
"""

import contextlib
import dataclasses
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time

ENVIRONMENT = {
    "KERAS_BACKEND": "tensorflow",
    "OMP_NUM_THREADS": "2",
    "TF_NUM_INTRAOP_THREADS": "2",
    "TF_NUM_INTEROP_THREADS": "2",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}
LIBRARIES = ("keras_attention", "keras", "tensorflow", "torch", "numpy")


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What is compared.

    Args:
        title: String, may name the sizes: "batch {B}".
        contenders: Functions of the sizes by name; ours first.
        sizes: `{"default": ..., "smoke": ..., "paper": ...}`, keyword arguments of the contenders.
        targets: `{"default": {peer: ratio}}`, our time over the peer's that is to be reached at these sizes.
        calls: Integer, calls of the work in a round.
        fresh: Boolean, a new process for each round instead of warm ones.
    """

    title: str
    contenders: dict
    sizes: dict
    targets: dict = dataclasses.field(default_factory=dict)
    calls: int = 1
    fresh: bool = False


def compare(comparison, size, rounds, pythons):
    """Runs `rounds` rounds at the sizes named `size`; `pythons` gives the interpreters of contenders by name, if not this one.

    Returns `(times, missing)`: of each contender the answers `{"seconds", "cpu", "versions"}` of the rounds, both times
    for one call of the work; and of those whose library is not installed the reason.
    """
    times, missing = {}, {}

    def start(name):
        python = pythons.get(name, sys.executable)
        return Contender(comparison.contenders[name], comparison.sizes[size], comparison.calls, python)

    with contextlib.ExitStack() as stack:
        warm = {} if comparison.fresh else {name: stack.enter_context(start(name)) for name in comparison.contenders}
        for _ in range(1 + rounds):
            for name in comparison.contenders:
                if name in missing:
                    continue
                with contextlib.nullcontext(warm.get(name)) if warm else start(name) as contender:
                    answer = contender.time_round()
                if "missing" in answer:
                    missing[name] = answer["missing"]
                else:
                    times.setdefault(name, []).append(answer)
    return {name: answers[1:] for name, answers in times.items()}, missing


class Contender:
    """One contender's process, seen from outside. Leaving the context ends it."""

    def __init__(self, function, sizes, calls, python):
        self.name = f"{function.__module__}.{function.__name__}"
        command = [python, __file__, function.__module__, function.__name__, json.dumps(sizes), str(calls)]
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (open as long as the process runs)
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env={**os.environ, **ENVIRONMENT},
        )

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.communicate()
        self.errors.close()

    def time_round(self):
        with contextlib.suppress(BrokenPipeError):  # of a process that has failed: it gives no answer either
            print("round", file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            status = self.process.wait()
            self.errors.seek(0)
            raise SystemExit(f"{self.errors.read()}\n{self.name} failed with exit status {status}, as written above.")
        return json.loads(answer)


def answer_rounds(module, function, sizes, calls):
    """The inside of a contender's process: gets ready, then times a round for each line that it reads."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    try:
        work = getattr(importlib.import_module(module), function)(**json.loads(sizes))
    except ModuleNotFoundError as error:
        print(json.dumps({"missing": f"{error} in {sys.executable}"}), file=answers, flush=True)
        return
    for _ in sys.stdin:
        seconds, cpu = time.perf_counter(), time.process_time()
        for _ in range(calls):
            work()
        seconds, cpu = (time.perf_counter() - seconds) / calls, (time.process_time() - cpu) / calls
        versions = {name: sys.modules[name].__version__ for name in LIBRARIES if name in sys.modules}
        print(json.dumps({"seconds": seconds, "cpu": cpu, "versions": versions}), file=answers, flush=True)


if __name__ == "__main__":
    answer_rounds(*sys.argv[1:4], calls=int(sys.argv[4]))
