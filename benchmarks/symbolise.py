"""Dimensions of the embedded graphs that can vary, by task and kind of dimension.

    python benchmarks/symbolise.py [cv nlp ...] [--framework torch] [--seconds 900] [--time 120]
    python benchmarks/symbolise.py --report --docs docs/transforms.md

Prints a JSON line per finished graph, and tables at the end. Each graph is walked, and run on the
CPU at three other sizes, in a separate process on one thread, within `--time` seconds of processor
time. Graphs are ordered by a hash of their names, so that the first ones are representative.
`--kept` is a file with the lines of an earlier call, whose graphs are not tried again. `--docs`
writes the tables between their markers.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import multiprocessing
import re
import resource
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from graphnet_datasets import Sample
from graphnet_datasets.atomic import append_json
from graphnet_datasets.decoding import read_journal
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.frameworks import module
from graphnet_datasets.sample.vocabulary import TASKS
from graphnet_datasets.storage.loading import load_dataset
from graphnet_datasets.transforms.symbolic import FixedSizesError, Refused, symbolise
from graphnet_datasets.transforms.symbolic.dimensions import find_dimensions

MARKERS = ("<!-- symbols: benchmarks/symbolise.py -->", "<!-- end of symbols -->")
KINDS = ("batch", "sequence", "spatial")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", default=list(TASKS), help=f"of {', '.join(TASKS)}")
    parser.add_argument("--framework", default="torch", choices=("torch", "paddle"))
    parser.add_argument("--kept", type=Path, default=Path("build/symbolise.jsonl"))
    parser.add_argument("--docs", type=Path, help="a text that holds the markers of the tables")
    parser.add_argument("--memory", type=float, default=0.2, help="GiB of inputs at most")
    parser.add_argument("--time", type=int, default=120, help="CPU seconds a graph may take")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no graph after these")
    parser.add_argument("--no-check", action="store_true", help="walk the graphs alone")
    parser.add_argument("--only", default="", help="a regular expression of ids")
    parser.add_argument("--report", action="store_true", help="tables of the kept lines alone")
    options = parser.parse_args()
    kept = options.kept.open() if options.report else ()
    lines = list(map(json.loads, kept)) or list(measure(options))
    tables = tabulate(lines)
    print(tables)
    if options.docs is not None:
        before, _, rest = options.docs.read_text().partition(MARKERS[0])
        _, _, after = rest.partition(MARKERS[1])
        options.docs.write_text(f"{before}{MARKERS[0]}\n{tables}\n{MARKERS[1]}{after}")


def measure(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield a line for each graph, and add those that are new to `--kept`."""
    known = {line["id"]: line for line in read_journal(options.kept)}
    options.kept.parent.mkdir(parents=True, exist_ok=True)
    if options.framework == "torch":  # before processes are forked, which then have it
        module("torch", "probing")
        module("torch", "observing")
    end = time.monotonic() + options.seconds
    for row in _rows(options):
        if time.monotonic() > end:
            return
        sample = Sample.from_row(row)
        if sample.id not in known:
            known[sample.id] = in_a_process(sample, options)
            append_json(options.kept, known[sample.id])
            print(json.dumps(known[sample.id]), flush=True)
        yield known[sample.id]


def _rows(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the rows of the graphs that are asked for, by a hash of their ids."""
    filters = [
        ("framework", "=", options.framework),
        ("input_bytes", "<=", int(options.memory * 2**30)),
    ]
    yield from sorted(
        (
            row
            for task in options.tasks
            for row in load_dataset("graphnet", task, "all", filters=filters)
            if re.search(options.only, row["id"])
        ),
        key=lambda row: hashlib.sha256(row["id"].encode()).hexdigest(),
    )


def in_a_process(sample: Sample, options: argparse.Namespace) -> dict[str, Any]:
    """Symbolise a graph in a process that is ended after the time it may take.

    That is time of the processor, which other processes do not take away.
    """
    # Threads of paddle do not live on in a forked process.
    context = multiprocessing.get_context("fork" if sample.framework == "torch" else "spawn")
    mine, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(theirs, sample, options))
    started = time.monotonic()
    process.start()
    theirs.close()
    try:
        found = mine.recv() if mine.poll(10 * options.time) else {"error": "TimeLimitError"}
    except EOFError:
        process.join()
        is_late = process.exitcode in (-signal.SIGXCPU, -signal.SIGKILL)
        found = {"error": "TimeLimitError" if is_late else "the process ended"}
    process.kill()
    process.join()
    kinds = sorted({each.kind for each in find_dimensions(sample)} | set(found.get("kinds", ())))
    known = {"id": sample.id, "task": sample.task, "framework": sample.framework}
    seconds = round(time.monotonic() - started, 2)
    return known | {"operators": sample.num_ops, "wanted": kinds, "seconds": seconds} | found


def _child(pipe: Any, sample: Sample, options: argparse.Namespace) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (options.time, options.time + 5))
    if sample.framework == "torch":
        import torch

        torch.set_num_threads(1)
    pipe.send(describe(sample, check=not options.no_check))


def describe(sample: Sample, *, check: bool) -> dict[str, Any]:
    """Return what came of a graph."""
    try:
        found = symbolise(
            sample, check=check, memory_limit_bytes=2**32, allow_unchecked_operators=True
        )
    except FixedSizesError as error:
        return {"error": str(error)[:600], "refused": list(map(_refusal, error.refused))}
    except GraphNetError as error:
        return {"error": f"{type(error).__name__}: {error}"[:600]}
    return {
        "kinds": sorted(set(found.kinds.values())),
        "symbols": [
            [each.name, each.hint, each.lower, each.upper] for each in found.sample.symbols
        ],
        "constraints": [f"{c.left} {c.relation} {c.right}" for c in found.sample.constraints],
        "checked": [dict(sizes) for sizes in found.checked],
        "refused": list(map(_refusal, found.refused)),
    }


def _refusal(each: Refused) -> list[Any]:
    return [each.kind, each.name, each.hint, each.operator, each.position, each.reason[:300]]


def tabulate(lines: list[dict[str, Any]]) -> str:
    """Return counts by task and kind of dimension, and the operators that stand in the way."""
    rows = [
        "| framework, task | graphs | batch | share | sequence | share | spatial | share |",
        "|---" * 8 + "|",
    ]
    for framework in ("torch", "paddle"):
        for task in (*TASKS, "all"):
            mine = [
                line
                for line in lines
                if line["framework"] == framework and task in (line["task"], "all")
            ]
            if mine:
                cells = [f"{framework}, {task}", str(len(mine))]
                for kind in KINDS:
                    wanted = [line for line in mine if kind in line["wanted"]]
                    varies = sum(kind in line.get("kinds", ()) for line in wanted)
                    share = f"{varies / len(wanted):.1%}" if wanted else ""
                    cells += [f"{varies} of {len(wanted)}", share]
                rows.append("| " + " | ".join(cells) + " |")
    rows += ["", "| fixed dimension | blocking operator | dimensions |", "|---|---|---|"]
    counts = collections.Counter(_reasons(lines))
    rows += [f"| {kind} | {what} | {count} |" for (kind, what), count in counts.most_common(25)]
    return "\n".join(rows)


def _reasons(lines: Iterable[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for line in lines:
        for kind, _, _, operator, *_ in line.get("refused", ()):
            yield kind, f"`{operator}`" if operator else "none alone"
        if "error" in line and not line.get("refused"):
            yield "all", line.get("reason") or line["error"].partition(":")[0]


if __name__ == "__main__":
    main()
