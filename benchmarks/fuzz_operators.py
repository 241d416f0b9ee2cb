"""Call every operator of the tables with wrong operands, and list the operators that crash.

    python benchmarks/fuzz_operators.py [--framework torch] [--calls 500] [--limit N]
        [--operators REGEX] [--only checked|unchecked] [--as-checked] [--seed 0] [--out FILE]
        [--smallest SHARE] [--no-guards] [--rows]
    python benchmarks/fuzz_operators.py --framework torch --what walks|programs [...]

Each call starts as a valid call and receives up to five random changes: shapes, dtypes, elements
(negative, huge, the smallest integer, zero divisors, NaN), layouts, numbers, lists, text, flags, or
the order of operands. It runs in a forked process whose tensors end at inaccessible pages
(`fuzzing/guard_allocator.c`, if there is a C compiler), so that a read or write beyond an operand
raises a signal. `--smallest` is the share of calls whose operands have the smallest storages that
their strides allow. `--what walks` fuzzes the computations for writing and inspecting a row
instead: the walk over the shapes of each call, checked or not. `--what programs` creates samples of
one to four checked operators, materializes them under a memory limit and runs them; their process
may use a fifth more than that limit. `--no-guards` calls kernels without the checks of
`materialize`, and `--rows` adds the smallest row that crashes each operator
(`fuzzing/killed_kernels.jsonl` lists the known ones). Prints one JSON object per operator and a
summary. `--out FILE` stores them; a run with the same file continues after the last one, and
repeats operators that crashed or were slow. The exit status is 1 if an operator crashed that
`materialize` accepts by default.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from fuzzing.guard import build_guard
from fuzzing.minimise import minimise
from fuzzing.processes import ending, run_operators
from fuzzing.samples import row_of, sample_of

from graphnet_datasets.atomic import append_json
from graphnet_datasets.decoding import read_journal
from graphnet_datasets.errors import GraphNetError

FRAMEWORKS = ("torch", "paddle")


def main() -> int:
    """Fuzz both frameworks in separate processes, or one of them in this process."""
    options = _options()
    if options.inside:
        return _fuzz(options)
    given = FRAMEWORKS if options.framework == "both" else (options.framework,)
    with tempfile.TemporaryDirectory() as directory:
        guard = build_guard(Path(directory))
        codes = []
        for framework in given:
            environment = {
                **os.environ,
                "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "FLAGS_call_stack_level": "0",
                "FLAGS_use_system_allocator": "1", "GLOG_minloglevel": "4",
                "GRAPHNET_GUARD": "1" if guard else "",
                **({"LD_PRELOAD": str(guard)} if guard else {}),
            }  # fmt: skip
            arguments = [*sys.argv[1:], "--inside", "--framework", framework]
            command = [sys.executable, __file__, *arguments]
            codes.append(subprocess.run(command, env=environment, check=False).returncode)  # noqa: S603
    return max(codes)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--framework", default="both", choices=(*FRAMEWORKS, "both"))
    parser.add_argument("--limit", type=int, help="so many operators, drawn by the seed")
    parser.add_argument("--calls", type=int, default=500, help="calls of each operator and round")
    parser.add_argument("--operators", default="", help="only those whose name matches")
    parser.add_argument("--only", choices=("checked", "unchecked"))
    parser.add_argument("--what", default="calls", choices=("calls", "walks", "programs"))
    parser.add_argument(
        "--as-checked", action="store_true", help="count whatever is fuzzed as checked"
    )
    parser.add_argument("--smallest", type=float, help="share of calls on smallest storages")
    parser.add_argument("--no-guards", action="store_true", help="call the kernels unchecked")
    parser.add_argument("--rows", action="store_true", help="add a minimal row for each death")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--quiet", action="store_true", help="print the summary alone")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _fuzz(options: argparse.Namespace) -> int:
    suffix = "target" if options.what == "calls" else options.what
    target = importlib.import_module(f"fuzzing.{options.framework}_{suffix}")
    target.set_up()
    if options.smallest is not None and hasattr(target, "SMALLEST_SHARE"):
        target.SMALLEST_SHARE = options.smallest
    chosen = [
        name
        for name in target.names()
        if re.search(options.operators, name)
        and (not options.only or target.is_checked(name) == (options.only == "checked"))
    ]
    random.Random(options.seed).shuffle(chosen)  # noqa: S311 - no secret
    chosen = chosen[: options.limit]
    if options.no_guards:
        target.HAS_GUARDS = False
    lines = _earlier(options)
    lines = {name: lines[name] for name in chosen if name in lines}
    left = [name for name in chosen if name not in lines]

    def attempt(name: str, number: int) -> Any:
        call, run = target.attempt(name, f"{options.seed}:{name}:{number}")
        return repr(call), run

    for name, outcome in run_operators(left, attempt, options.calls):
        is_checked = options.as_checked or target.is_checked(name)
        lines[name] = {
            "key": _key(options, name),
            "operator": name,
            "checked": is_checked,
            **dataclasses.asdict(outcome),
        }
        if options.rows and outcome.deaths:
            lines[name]["minimal"] = _minimal_row(options, target, name, outcome.deaths)
        _write(lines[name], options, is_shown=not options.quiet)
    found = list(lines.values())
    checked = [line for line in found if line["checked"]]
    died = [line["operator"] for line in checked if line["deaths"]]
    summary = {
        "benchmark": "fuzz_operators",
        "framework": options.framework,
        "fuzzed": options.what,
        "seed": options.seed,
        "guarded": bool(os.environ.get("GRAPHNET_GUARD")),
        "chosen": len(chosen),
        "operators": len(found),
        "calls": sum(line["calls"] for line in found),
        "accepted": sum(line["accepted"] for line in found),
        "slow": sum(len(line["slow"]) for line in found),
        "deaths": sum(len(line["deaths"]) for line in found),
        "cpu_s": round(sum(os.times()[:4]), 1),
        "checked_that_died": died,
        "checked_that_were_slow": [line["operator"] for line in checked if line["slow"]],
    }
    _write(summary, options, is_shown=True)
    return int(bool(died))


def _minimal_row(
    options: argparse.Namespace, target: Any, name: str, deaths: list[dict[str, Any]]
) -> dict[str, Any] | None:
    """Return the smallest call found that dies, as text and as what a row holds of it."""
    death = next((death for death in deaths if death["alone"]), None)
    if death is None:
        return None
    seed = f"{options.seed}:{name}:{death['number']}"
    call, _ = target.attempt(name, seed)

    def dies(smaller: Any) -> bool:
        status = ending(repr(smaller), target.again(smaller, seed))
        return status < 0 and -status not in (signal.SIGALRM, signal.SIGPROF)

    if not dies(call):
        return None
    call = minimise(call, dies)
    row = {"framework": options.framework, "signal": death["signal"], "call": repr(call)}
    try:
        sample = sample_of(call, random.Random(seed), options.framework)  # noqa: S311 - no secret
    except GraphNetError:
        return row  # a call that no row can hold
    return {**row, "row": row_of(sample)}


def _key(options: argparse.Namespace, name: str) -> list[Any]:
    return [options.framework, options.what, name, options.seed, options.calls]


def _earlier(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return what a run with the same file found, but of operators that died or were slow."""
    lines = [] if options.out is None else read_journal(options.out)
    known = [line for line in lines if "key" in line]
    return {
        line["operator"]: line
        for line in known
        if line["key"] == _key(options, line["operator"]) and not (line["deaths"] or line["slow"])
    }


def _write(line: dict[str, Any], options: argparse.Namespace, *, is_shown: bool) -> None:
    if is_shown:
        print(json.dumps(line), flush=True)
    if options.out is not None:
        append_json(options.out, line)


if __name__ == "__main__":
    sys.exit(main())
