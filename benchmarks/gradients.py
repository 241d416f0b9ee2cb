"""Differentiate embedded graphs, and list the rejected graphs with their reasons.

    python benchmarks/gradients.py [--max-gib 0.2] [--limit N] [--config cv ...] [--framework torch]
        [--id ID ...] [--order size|hash] [--seconds 900] [--graph-seconds 120] [--out FILE]

Prints a JSON line for each graph and, at the end, one per task with the numbers of differentiated
and of differentiable graphs. Each graph runs in a separate process. `--out FILE` stores the lines,
and a run with the same file continues after the last line.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import multiprocessing
import re
import sys
import time
from pathlib import Path
from typing import Any

from graphnet_datasets import load_dataset
from graphnet_datasets.atomic import append_json
from graphnet_datasets.decoding import read_journal
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.sample import Sample

NO_GRADIENT = re.compile(
    r"has no (inputs|parameters)|No output of|is not implemented|Eager autograd (fails|gives)"
)
"""Refusals of what eager autograd does not differentiate either, or not to finite numbers."""


def main() -> None:
    """Try the graphs and print what came out."""
    options = _options()
    lines = [] if options.out is None else read_journal(options.out)
    known = {line["id"]: line for line in lines}
    rows = load_dataset("graphnet", "all", split="all")
    facts = rows.select_columns(["id", "framework", "task", "num_ops"])
    order = sorted(range(len(rows)), key=lambda place: _rank(facts[place], options.order))
    end = time.monotonic() + options.seconds
    tried = 0
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["graphnet_datasets.frameworks.torch.gradients"])
    for place in order:
        fact = facts[place]
        if options.framework != fact["framework"] or (
            options.config and fact["task"] not in options.config
        ):
            continue
        if fact["id"] in known or (options.id and fact["id"] not in options.id):
            continue
        sample = Sample.from_row(rows[place])
        if sample.input_bytes > options.max_gib * 2**30:
            continue
        if time.monotonic() > end or tried == options.limit:
            break
        tried += 1
        line = {**fact, **_try(context, sample, options.graph_seconds)}
        known[fact["id"]] = line
        print(json.dumps(line), flush=True)
        if options.out:
            append_json(options.out, line)
    _summarise(known)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--max-gib", type=float, default=0.2, help="of the inputs of a graph")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--config", nargs="*")
    parser.add_argument("--framework", default="torch")
    parser.add_argument("--id", nargs="*")
    parser.add_argument("--order", default="size", choices=("size", "hash"))
    parser.add_argument("--seconds", type=float, default=900.0)
    parser.add_argument("--graph-seconds", type=float, default=120.0)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def _rank(fact: dict[str, Any], order: str) -> Any:
    """By size, or by a hash of the name: then the first ones speak for all."""
    return fact["num_ops"] if order == "size" else hashlib.sha256(fact["id"].encode()).hexdigest()


def _try(context: Any, sample: Sample, seconds: float) -> dict[str, Any]:
    parent, child = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sample, child), daemon=True)
    start = time.monotonic()
    process.start()
    child.close()
    try:
        found = parent.recv() if parent.poll(seconds) else {"refused": "Time ran out."}
    except EOFError:
        found = {"refused": "The process died."}
    process.kill()
    process.join()
    return {**found, "seconds": round(time.monotonic() - start, 2)}


def _work(sample: Sample, pipe: Any) -> None:
    import torch

    from graphnet_datasets.transforms import differentiate

    torch.set_num_threads(1)
    try:
        made = differentiate(sample)
        pipe.send(
            {
                "joint_ops": made.joint.num_ops,
                "forward_ops": made.forward.num_ops,
                "backward_ops": made.backward.num_ops,
                "largest_t": made.largest_t if made.largest_t != float("-inf") else "-inf",
            }
        )
    except GraphNetError as error:
        pipe.send({"refused": str(error), "error": type(error).__name__})
    except Exception as error:
        pipe.send({"refused": f"{type(error).__name__}: {error}", "error": "bug"})


def _summarise(lines: dict[str, dict[str, Any]]) -> None:
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for line in lines.values():
        refused = line.get("refused", "")
        key = "made" if not refused else "refused"
        if NO_GRADIENT.search(refused):
            key = "not differentiable"
        for task in (line["task"], "all"):
            counts[task][key] += 1
    for task, found in sorted(counts.items()):
        total = found["made"] + found["refused"]
        share = round(found["made"] / total, 4) if total else None
        print(json.dumps({"task": task, **found, "share": share}))


if __name__ == "__main__":
    sys.exit(main())
