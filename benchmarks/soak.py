"""Isolation that survives anything: a compiler that fails at random, and a parent that is killed.

First `--runs` samples run under a compiler whose failures are drawn from a seed. There must be
exactly one record for each, with the status of that failure, and afterwards no process and no
temporary file. Then runs of `--samples` samples are killed with SIGKILL at random moments,
`--kills` times in all, and continued by the same command; the tables must be that of an undisturbed
run, apart from times. Prints a JSON line per figure and exits with 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

MODULE = Path(__file__).stem if __name__ == "__main__" else __name__
MARK = "GRAPHNET_SOAK"
SEED = "GRAPHNET_SOAK_SEED"
HANG_S = 4.0

FAULTS: Mapping[str, tuple[float, str, frozenset[str]]] = {
    "none": (20, "ok", frozenset({""})),
    "prints_garbage": (10, "ok", frozenset({""})),
    "leaves_a_process": (10, "ok", frozenset({""})),
    "raises_in_compile": (10, "compile_failed", frozenset({"exception"})),
    "raises_unpicklable": (10, "run_failed", frozenset({"exception"})),
    "segfaults_in_compile": (8, "compile_failed", frozenset({"crash"})),
    "segfaults_in_run": (8, "run_failed", frozenset({"crash"})),
    "exits_in_compile": (8, "compile_failed", frozenset({"crash"})),
    "exits_in_run": (8, "run_failed", frozenset({"crash"})),
    "allocates": (8, "run_failed", frozenset({"out_of_memory"})),
    "forges_messages": (8, "run_failed", frozenset({"crash"})),
    "hangs_in_compile": (3, "compile_failed", frozenset({"timeout"})),
    "hangs_in_run": (3, "run_failed", frozenset({"timeout"})),
    # Whichever of the limits on processes, memory and time is reached first: on a busy machine the
    # two hundred and fifty forks that are allowed take longer than a hang may.
    "forks_without_end": (2, "run_failed", frozenset({"crash", "out_of_memory", "timeout"})),
    # Landlock refuses the signal from Linux 6.12 on.
    "kills_the_server": (1, "compile_failed", frozenset({"crash", "exception"})),
}
"""Weight, and the status and the reasons that the record of the failure has to have."""

SAME = (
    "run_id", "sample_id", "compiler", "status", "reason", "phase", "error_code", "error_type",
    "error_message", "min_t", "null_t", "is_deterministic", "settings_hash", "environment_id",
)  # fmt: skip
"""Columns that do not depend on when a run was made."""


def fault_of(index: int) -> str:
    """Return how the run of sample `index` fails; the seed comes from the environment."""
    draw = random.Random(f"{os.environ.get(SEED, '0')}-{index}")  # noqa: S311
    return draw.choices([*FAULTS], [weight for weight, _, _ in FAULTS.values()])[0]


class UnpicklableError(Exception):
    """An error that can be neither pickled nor printed."""

    def __init__(self) -> None:
        self.function = lambda: None

    def __str__(self) -> str:
        raise RuntimeError("no text")


def fails_at_random(module: Any, example_inputs: Mapping[str, Any]) -> Callable[..., Any]:
    """Compile nothing; the number of rows of the input says which failure it is."""
    import torch

    (example,) = example_inputs.values()
    fault = fault_of(example.shape[0])
    if fault == "raises_in_compile":
        raise RuntimeError("status: success")
    if fault == "segfaults_in_compile":
        ctypes.string_at(0)
    if fault == "exits_in_compile":
        os._exit(0)
    if fault == "hangs_in_compile":
        time.sleep(1000)
    if fault == "kills_the_server":
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(1000)

    def call(**inputs: Any) -> Any:
        if fault == "segfaults_in_run":
            ctypes.string_at(0)
        elif fault == "exits_in_run":
            os._exit(0)
        elif fault == "hangs_in_run":
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            time.sleep(1000)
        elif fault == "raises_unpicklable":
            raise UnpicklableError
        elif fault == "allocates":
            torch.ones(2**33)
        elif fault == "prints_garbage":
            os.write(1, bytes(range(256)) * 16)
        elif fault == "forges_messages":
            for fd in range(3, 64):
                try:
                    os.write(fd, b"\x80\x00 no message\n")
                except OSError:
                    continue
        elif fault == "leaves_a_process" and os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(1000)
            os._exit(0)
        elif fault == "forks_without_end":
            while True:
                if os.fork() == 0:
                    time.sleep(1000)
        return module(**inputs)

    return call


def fails_quickly(module: Any, example_inputs: Mapping[str, Any]) -> Callable[..., Any]:
    """Fail as above, but not in the ways that take seconds."""
    (example,) = example_inputs.values()
    if fault_of(example.shape[0]).startswith(("hangs", "forks", "kills")):
        return module
    return fails_at_random(module, example_inputs)


def make_samples(count: int) -> list[Any]:
    """Return samples that a run of takes a tenth of a second, each of another shape."""
    from graphnet_datasets.sample import Input, Op, Sample, Value
    from graphnet_datasets.sample.arguments import Ref

    return [
        Sample(
            f"soak/{index}", "torch", "other",
            (Input("input", Value("float32", (index, 4))),),
            (Op("torch.relu", (Ref(0),)),), Ref(1),
        )
        for index in range(1, count + 1)
    ]  # fmt: skip


def run_samples(count: int, compiler: str, out: Path | None) -> list[dict[str, Any]]:
    """Run the samples and return their records."""
    from graphnet_datasets.benchmark import Settings, TimingSettings, run

    settings = Settings(
        num_threads=1,
        alone_calls=1,
        memory_limit_bytes=2 * 2**30,
        # A busy machine takes its time to begin a process; only hangs are ended early.
        phase_timeouts_s={"compile": HANG_S, "run": HANG_S},
        timing=TimingSettings(
            min_pairs=9, max_pairs=9, budget_s=0, hard_budget_s=2, warmup_s=0, min_warmup_calls=1
        ),
    )
    return run(make_samples(count), f"{MODULE}:{compiler}", out=out, settings=settings).to_list()


def survive_faults(num_runs: int) -> dict[str, Any]:
    """Run a compiler that fails at random; return the figures, `problems` among them."""
    started_s = time.monotonic()
    with _watched() as left:
        records = run_samples(num_runs, "fails_at_random", None)
    problems = [f"{len(records)} records"] if len(records) != num_runs else []
    if len({record["sample_id"] for record in records}) != num_runs:
        problems.append("a sample has not exactly one record")
    for record in records:
        fault = fault_of(int(record["sample_id"].partition("/")[2]))
        _, status, reasons = FAULTS[fault]
        if record["status"] != status or record["reason"] not in reasons:
            problems.append(
                f"{record['sample_id']} ({fault}): {record['status']} {record['reason']}: "
                f"{record['error_message']}"
            )
    return {
        "figure": "faults",
        "runs": num_runs,
        "records": len(records),
        "statuses": dict(collections.Counter(record["status"] for record in records)),
        **left,
        "problems": problems,
        "seconds": round(time.monotonic() - started_s, 1),
    }


def survive_kills(num_kills: int, num_samples: int) -> dict[str, Any]:
    """Kill a run again and again; return the figures, `problems` among them."""
    started_s = time.monotonic()
    draw = random.Random(os.environ.get(SEED, "0"))  # noqa: S311
    with _watched() as left, tempfile.TemporaryDirectory() as directory:
        expected = run_samples(num_samples, "fails_quickly", Path(directory, "undisturbed"))
        whole_s = _time_child(num_samples, Path(directory, "timed"), None)[1]
        num_killed = 0
        for attempt in range(num_kills):
            out = Path(directory, f"killed{attempt % 5}")  # five runs, killed in turn
            was_killed, _ = _time_child(num_samples, out, draw.uniform(0.0, whole_s))
            num_killed += was_killed
        tables = []
        for number in range(min(num_kills, 5)):
            out = Path(directory, f"killed{number}")
            tables.append(run_samples(num_samples, "fails_quickly", out))
    problems = []
    wanted = [{name: record[name] for name in SAME} for record in expected]
    for number, table in enumerate(tables):
        if [{name: record[name] for name in SAME} for record in table] != wanted:
            problems.append(f"the table of run {number} is another one than the undisturbed one")
    return {
        "figure": "kills",
        "kills": num_kills,
        "killed_before_the_end": num_killed,
        "samples": num_samples,
        "undisturbed_seconds": round(whole_s, 1),
        **left,
        "problems": problems,
        "seconds": round(time.monotonic() - started_s, 1),
    }


def _time_child(num_samples: int, out: Path, kill_after_s: float | None) -> tuple[bool, float]:
    """Run the samples in another process; return whether it was killed, and how long it ran."""
    started_s = time.monotonic()
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", f"from {MODULE} import run_samples; from pathlib import Path; "
         f"run_samples({num_samples}, 'fails_quickly', Path({str(out)!r}))"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        _, said = process.communicate(timeout=kill_after_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return True, time.monotonic() - started_s
    if process.returncode:
        raise RuntimeError(said.decode(errors="replace"))
    return False, time.monotonic() - started_s


@contextlib.contextmanager
def _watched() -> Iterator[dict[str, int]]:
    """Give all temporary files a directory, all processes a mark, and count what is left."""
    left: dict[str, int] = {}
    before = tempfile.tempdir, os.environ.get("TMPDIR")
    with tempfile.TemporaryDirectory(prefix="soak-") as directory:
        os.environ.update({"TMPDIR": directory, MARK: uuid.uuid4().hex})
        tempfile.tempdir = None
        try:
            yield left
            deadline = time.monotonic() + 30  # the processes of a killed parent need a moment
            while (processes := _marked()) and time.monotonic() < deadline:
                time.sleep(0.05)
            files = [*Path(directory).iterdir()]
            left |= {"processes_left": len(processes), "temporary_files_left": len(files)}
            for path in files:
                print(f"left: {path}", file=sys.stderr)
        finally:
            tempfile.tempdir = before[0]
            os.environ.pop("TMPDIR")
            if before[1] is not None:
                os.environ["TMPDIR"] = before[1]


def _marked() -> list[int]:
    """Return the processes, this one aside, that carry this soak's mark."""
    mark = f"{MARK}={os.environ[MARK]}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if int(path.parent.name) != os.getpid() and mark in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


def is_clean(figures: Mapping[str, Any]) -> bool:
    """Tell whether nothing was wrong and nothing was left."""
    left = figures["processes_left"] + figures["temporary_files_left"]
    return not figures["problems"] and not left


def main() -> int:
    """Print one JSON line per figure; return 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    os.environ[SEED] = str(options.seed)
    is_all_clean = True
    for survive in (
        lambda: survive_faults(options.runs),
        lambda: survive_kills(options.kills, options.samples),
    ):
        figures = survive()
        print(json.dumps({"benchmark": "soak", "seed": options.seed, **figures}), flush=True)
        is_all_clean &= is_clean(figures)
    return 0 if is_all_clean else 1


if __name__ == "__main__":
    sys.exit(main())
