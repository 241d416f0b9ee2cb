"""S(t) of `tvm`, `tvm-tuned` and `tvm-bolt` on the graphs that a pool's tasks were cut from.

    taskset -c 0 python benchmarks/tuning/tuned_scores.py POOL --out build/study
    taskset -c 0 python benchmarks/tuning/tuned_scores.py POOL --graphs 1 --compilers tvm tvm-tuned

The graphs are those of which the pool's tasks hold the largest share of the flops, without those
that draw random numbers: its best records are the schedules of `tvm-tuned`. One thread, weights as
parameters, eager beside each. Records go to OUT/tuned-runs, so that the same call goes on. A line
per graph and compiler, and one per compiler with S(t), also in OUT/tuned_scores.jsonl for
`study.py`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphnet_datasets import load_dataset, run
from graphnet_datasets.atomic import write_text
from graphnet_datasets.scores import speedup_score
from graphnet_datasets.timing.pairs import TimingSettings
from graphnet_datasets.tuning.records import read_records

CLASSES = {
    "tvm": "tvm",
    "tvm-tuned": "graphnet_datasets.tuning.compiler:TvmTuned",
    "tvm-bolt": "graphnet_datasets.tuning.bolt_compiler:TvmBolt",
}
TOLERANCES = (-5, -3)


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is missing and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pool", type=Path, help="a dataset with tuning_tasks and tuning_records")
    parser.add_argument("--out", type=Path, default=Path("build/study"))
    parser.add_argument("--graphs", type=int, default=8)
    parser.add_argument("--compilers", nargs="+", choices=CLASSES, default=list(CLASSES))
    parser.add_argument("--tune-s", type=float, default=40.0, help="of `tvm-bolt`, for a graph")
    parser.add_argument("--budget", type=float, default=2.0, help="seconds of timing a graph")
    given = parser.parse_args(argv)
    started = time.monotonic()
    shares = covered(given.pool)
    names = [name for name, _ in shares.most_common(given.graphs)]
    options: dict[str, dict[str, Any]] = {
        "tvm": {"num_threads": 1},
        "tvm-tuned": {"num_threads": 1, "records": str(given.pool.resolve())},
        "tvm-bolt": {"num_threads": 1, "tune_s": given.tune_s},
    }
    lines: list[dict[str, Any]] = []
    for compiler in given.compilers:
        runs = run(
            names,
            compiler=CLASSES[compiler],
            out=given.out / "tuned-runs" / compiler,
            options=options[compiler],
            num_threads=1,
            has_oracle=False,
            has_profile=False,
            timing=TimingSettings(budget_s=given.budget),
        )
        lines += [line_of(row, compiler, shares) for row in runs]
        scores = speedup_score(runs)
        lines.append(
            {
                "experiment": "tuned",
                "compiler": compiler,
                "graphs": len(runs),
                "ok": sum(row["status"] == "ok" for row in runs),
                **{f"S({t})": scores.at(t)["S"] for t in TOLERANCES},
                "seconds_of_compiling": round(sum(row["compile_time_s"] or 0 for row in runs), 1),
            }
        )
    shown = f"python benchmarks/tuning/tuned_scores.py POOL --graphs {given.graphs}"
    header = {"part": "tuned", "shown": shown, "cpu_s": round(time.monotonic() - started, 1)}
    text = "".join(f"{json.dumps(line)}\n" for line in [header, *lines])
    print(text, end="")
    write_text(given.out / "tuned_scores.jsonl", text)


def covered(pool: Path) -> Counter[str]:
    """Return by graph which share of the flops of its tasks in the pool's dataset has a record.

    Graphs that are not in the embedded dataset, or draw random numbers, are left out.
    """
    found = read_records(pool, with_features=False)
    measured = {row.task_id for row in found.measurements if row.is_ok}
    costs = load_dataset("graphnet", "all", split="all", columns=["id", "flops", "op_tags"])
    flops = {row["id"]: row["flops"] for row in costs if "random" not in row["op_tags"]}
    tuned: Counter[str] = Counter()
    for key in measured:
        for source in found.tasks[key].sources:
            tuned[source.sample_id] += found.tasks[key].flops * source.count
    shares = {
        name: min(1.0, value / flops[name]) for name, value in tuned.items() if flops.get(name)
    }
    return Counter(shares)  # type: ignore[arg-type]


def line_of(row: dict[str, Any], compiler: str, shares: Counter[str]) -> dict[str, Any]:
    """Return the line of a graph under a compiler."""
    line = {
        "experiment": "tuned",
        "compiler": compiler,
        "graph": row["sample_id"],
        "flops_with_a_record": round(float(shares[row["sample_id"]]), 2),
        "status": row["status"],
        "speedup": row["speedup"],
        "interval": [row["speedup_low"], row["speedup_high"]],
        "min_t": row["min_t"],
    }
    notes = [text for text in row["warnings"] or () if text.startswith("tuned: ")]
    return {**line, "told": notes[0]} if notes else line


if __name__ == "__main__":
    main()
