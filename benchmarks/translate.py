"""Embedded torch graphs that translate to paddle and compute the same results, by task.

Prints a JSON line per finished graph, and a table at the end. A graph agrees if all its outputs
agree at t = -5 on the same inputs, with each framework in a separate process on one thread.
`--kept` is a file with the lines of an earlier call, whose graphs are not run again if neither the
graph nor its translation changed. `--docs` writes the table between its markers.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from graphnet_datasets import Sample, translate
from graphnet_datasets.atomic import append_json
from graphnet_datasets.benchmark.judging.equivalence import Comparer
from graphnet_datasets.decoding import read_journal
from graphnet_datasets.errors import TranslationError
from graphnet_datasets.sample.vocabulary import TASKS
from graphnet_datasets.storage.loading import load_dataset

TOLERANCE = -5.0
TORCH = [("framework", "=", "torch")]
MARKERS = ("<!-- translation: benchmarks/translate.py -->", "<!-- end of translation -->")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", default=["cv", "nlp"], help=f"of {', '.join(TASKS)}")
    parser.add_argument("--kept", type=Path, default=Path("build/translate.jsonl"))
    parser.add_argument("--docs", type=Path, help="a text that holds the markers of the table")
    parser.add_argument("--memory", type=float, default=4.0, help="GiB of inputs that may be run")
    options = parser.parse_args()
    lines = list(measure(options.tasks, options.kept, options.memory * 2**30))
    table = tabulate(lines, options.tasks)
    print(table)
    if options.docs is not None:
        write_between(options.docs, table)


def measure(tasks: list[str], kept: Path, memory_bytes: float) -> Iterable[dict[str, Any]]:
    """Yield a line for each graph of the tasks, and add those that are new to `kept`."""
    known = {line["key"]: line for line in read_journal(kept)}
    kept.parent.mkdir(parents=True, exist_ok=True)
    with Comparer() as comparer:
        for task in tasks:
            for row in load_dataset("graphnet", task, "all", filters=TORCH):
                sample = Sample.from_row(row)
                line = {"id": sample.id, "task": task, "operators": sample.num_ops}
                try:
                    translated = translate(sample)
                except TranslationError as error:
                    yield line | {"outcome": "refused", "reason": str(error)}
                    continue
                key = key_of(sample, translated)
                if key not in known:
                    if sample.input_bytes > memory_bytes:
                        found = {"outcome": "too large", "reason": f"{sample.input_bytes} bytes"}
                    else:
                        found = compare(comparer, sample, translated)
                    known[key] = line | found | {"key": key}
                    append_json(kept, known[key])
                print(json.dumps(known[key]), flush=True)
                yield known[key]


def key_of(sample: Sample, translated: Sample) -> str:
    """Return a key of all that decides what comes of running both."""
    parts = (sample.id, sample.inputs, sample.ops, sample.outputs, sample.symbols)
    text = repr((parts, translated.ops, translated.outputs))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def compare(comparer: Comparer, sample: Sample, translated: Sample) -> dict[str, Any]:
    found = comparer.compare(sample, translated)
    if found.min_t is None:
        return {"outcome": "does not run", "reason": found.reason[:500]}
    return {
        "outcome": "agrees" if found.min_t <= TOLERANCE else "differs",
        "min_t": found.min_t,
        "max_abs_error": found.max_abs_error,
    }


def tabulate(lines: list[dict[str, Any]], tasks: list[str]) -> str:
    """Return the counts as a table in Markdown."""
    columns = ("refused", "too large", "does not run", "differs", "agrees")
    head = "| task | graphs of torch | translated | " + " | ".join(columns[1:]) + " | share |"
    rows = [head, "|---" * (head.count("|") - 1) + "|"]
    for name in [*tasks, "all"]:
        mine = [line["outcome"] for line in lines if name in (line["task"], "all")]
        counts = [mine.count(each) for each in columns]
        share = f"{counts[-1] / len(mine):.1%}" if mine else ""
        cells = [name, len(mine), len(mine) - counts[0], *counts[1:], share]
        rows.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(rows)


def write_between(path: Path, table: str) -> None:
    """Put the table between the markers of a text."""
    before, _, rest = path.read_text().partition(MARKERS[0])
    _, _, after = rest.partition(MARKERS[1])
    path.write_text(f"{before}{MARKERS[0]}\n{table}\n{MARKERS[1]}{after}")


if __name__ == "__main__":
    main()
